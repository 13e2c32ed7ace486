"""KIP: kernel inducing points (Nguyen, Chen and Lee 2021; Nguyen et al. 2021). Not private."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, choice, not_negative, positive, unless_auto
from ...features import centred, features_of, with_ridge
from ...nets import fit
from ...privacy import Asked, BareRows, Private
from ...schema import Schema
from ..base import Product, Progress
from ..part import Auto
from ..source import Distilled
from .kernel import InnerProducts
from .kernel_method import AbstractKernelMethod

ROWS = BareRows().name
CHUNK_ROWS = 2048
"""Rows whose features are made at once."""
SOLVED_ROWS = 1000
"""Rows whose kernel values are made at once, where targets are solved for."""
MOST_FEATURES = 6000
"""Largest number of features whose second moments (a square matrix) are worth holding."""


class Learned(NamedTuple):
    """What is learned: rows as the kernel sees them, and their targets."""

    rows: Array
    targets: Array


class RegressionMoments(NamedTuple):
    """All that the regression's loss over the whole data needs to know of them: means over rows of
    features phi and targets y."""

    second: Array
    """Mean of phi phi^T."""
    cross: Array
    """Mean of phi y^T."""
    square: float
    """Mean of |y|^2."""


@dataclass(frozen=True, kw_only=True)
class KIP(AbstractKernelMethod):
    """A few rows per class, learned so that kernel regression on them fits the data. Not private.

    Privacy:
        None: the bare rows are read, epsilon is infinite, and the result is for comparison within
        the house. One charge without noise says so in the certificate.
    """

    name: ClassVar[str] = "kip"
    family: ClassVar[str] = "kernel inducing points"
    good_for: ClassVar[str] = "a yardstick without privacy, for small sets"
    needs_bare_rows: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = (
        "T. Nguyen, Z. Chen, J. Lee. Dataset Meta-Learning from Kernel Ridge-Regression. ICLR 2021.",
        "T. Nguyen, R. Novak, L. Xiao, J. Lee. Dataset Distillation with Infinitely Wide "
        "Convolutional Networks. NeurIPS 2021.",
    )

    steps: int = 300
    """Updates of the learned rows."""
    epochs: float | Auto = "auto"
    """Passes over the declared rows, in updates of `batch` rows, in place of `steps`; auto: as many as
    `steps` updates make."""
    batch: int = 5000
    """Rows that an update looks at, as many of each class. Where the kernel has few enough
    features, and no augmentation is wanted, every update sees all rows at no more cost."""
    learning_rate: float = 0.04
    """Step size of Adam, at the start."""
    decay: bool = True
    """Whether it falls to nothing along half a cosine: small batches then end as well as large."""
    start: str = "rows"
    """What learned rows start from: rows of the data, or noise."""
    targets: str = "fixed"
    """What the learned rows are regressed to: their labels (fixed); numbers learned with the rows
    (learned); or numbers solved for by least squares, once the rows are learned (solved)."""
    augment: int = 0
    """Pixels by which images are moved at most, at random, whenever an update looks at them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        not_negative(augment=self.augment)
        epochs = unless_auto(epochs=self.epochs)
        if epochs is not None:
            positive(epochs=epochs)
        choice(
            start=(self.start, ("rows", "noise")),
            targets=(self.targets, ("fixed", "learned", "solved")),
        )

    def questions(self, schema: Schema) -> list[Asked]:
        self.support_size(schema)
        self.view(schema)
        self.kernel.function(schema, 0)
        self._steps(schema.rows)
        return [Asked(question=BareRows(), share=1.0)]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        private_rows = private.ask(ROWS).values
        view, rng = self.view(schema), np.random.default_rng(seed)
        known = private_rows.labels >= 0
        rows = view(schema.expand(private_rows.cells[known])).astype(np.float32)
        labels = private_rows.labels[known]
        codes = self.balanced_labels(schema)
        kernel = self.kernel.function(schema, seed)
        classes = len(schema.classes)
        with jax.enable_x64(True):
            first = Learned(
                jnp.asarray(self._start(rows, labels, codes, rng), jnp.float64),
                jnp.asarray(centred(codes, classes), jnp.float64),
            )
            data: Iterator[Any]
            if self._by_moments(kernel):
                moments = moments_of(kernel.features, rows, labels, classes)
                loss, data = _moment_loss(kernel, self.ridge), itertools.repeat(moments)
            else:
                loss = _batch_loss(kernel, self.ridge)
                data = self._batches(schema, rows, labels, rng)
            learned = self._learn(first, loss, data, schema.rows, progress)
            if self.targets == "solved":
                learned = self._solved(kernel, learned, rows, labels)
        targets = None
        if self.targets != "fixed":
            targets = np.asarray(learned.targets, np.float32) + np.float32(1 / classes)
        source = Distilled(slots=view.back(np.asarray(learned.rows)), labels=codes, targets=targets)
        return Product(source=source, rows=len(codes))

    def _by_moments(self, kernel: Any) -> bool:
        if self.augment or not isinstance(kernel, InnerProducts):
            return False
        return kernel.features.size <= MOST_FEATURES

    def _start(
        self, rows: np.ndarray, labels: np.ndarray, codes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Rows of each class, or noise; a class of which there are too few gets noise."""
        start = rng.standard_normal((len(codes), rows.shape[1]))
        if self.start == "rows":
            for code in np.unique(codes):
                there, wanted = np.flatnonzero(labels == code), np.flatnonzero(codes == code)
                picked = rng.permutation(there)[: len(wanted)]
                start[wanted[: len(picked)]] = rows[picked]
        return start

    def _batches(
        self, schema: Schema, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows and targets, the same number of each class that there is."""
        classes = len(schema.classes)
        of_class = [np.flatnonzero(labels == c) for c in range(classes)]
        of_class = [members for members in of_class if len(members)]
        while True:
            if not of_class:
                yield np.zeros((1, rows.shape[1]), np.float32), np.zeros((1, classes))
                continue
            each = max(1, self.batch // len(of_class))
            picked = np.concatenate([rng.choice(m, min(each, len(m)), False) for m in of_class])
            wanted = np.eye(classes)[labels[picked]] - 1 / classes
            yield self._moved(schema, rows[picked], rng), wanted

    def _moved(self, schema: Schema, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not self.augment or not schema.image:
            return rows
        pictures = rows.reshape(len(rows), *schema.image.shape)
        width = [(0, 0), (self.augment,) * 2, (self.augment,) * 2, (0, 0)]
        padded = np.pad(pictures, width, mode="edge")
        height, breadth, _ = schema.image.shape
        moves = rng.integers(0, 2 * self.augment + 1, (len(rows), 2))
        moved = [
            p[a : a + height, b : b + breadth] for p, (a, b) in zip(padded, moves, strict=True)
        ]
        return np.stack(moved).reshape(rows.shape)

    def _learn(
        self,
        learned: Learned,
        loss: Any,
        data: Iterator[Any],
        rows: int | None,
        progress: Progress,
    ) -> Learned:
        def of_batch(learned: Learned, key: Array, batch: Any) -> Array:
            if self.targets != "learned":
                learned = learned._replace(targets=jax.lax.stop_gradient(learned.targets))
            return loss(learned, batch)

        return fit(
            learned,
            of_batch,
            batches=data,
            steps=self._steps(rows),
            learning_rate=self.learning_rate,
            falling=self.decay,
            memory=0.999,
            key=jax.random.key(0),  # the loss draws nothing
            progress=lambda done: progress("learning", done),
        )

    def _steps(self, rows: int | None) -> int:
        if self.epochs == "auto":
            return self.steps
        if rows is None:
            raise LimbeckError("Epochs are passes over the rows that the schema declares (rows).")
        return max(1, round(self.epochs * rows / self.batch))

    def _solved(
        self, kernel: Any, learned: Learned, rows: np.ndarray, labels: np.ndarray
    ) -> Learned:
        """The best targets for the learned rows, by least squares over all the data."""
        classes = learned.targets.shape[1]
        value = jax.jit(lambda x, s: kernel(x, s))
        inner, outer = 0.0, 0.0
        for at in range(0, len(rows), SOLVED_ROWS):
            values = np.asarray(
                value(jnp.asarray(rows[at : at + SOLVED_ROWS], jnp.float64), learned.rows)
            )
            inner = inner + values.T @ values
            wanted = np.eye(classes)[labels[at : at + SOLVED_ROWS]] - 1 / classes
            outer = outer + values.T @ wanted
        gram = np.asarray(with_ridge(value(learned.rows, learned.rows), self.ridge))
        solved = gram @ np.linalg.lstsq(inner, outer)[0] if len(rows) else learned.targets
        return Learned(learned.rows, jnp.asarray(solved))


def moments_of(
    features: Any, rows: np.ndarray, labels: np.ndarray, classes: int
) -> RegressionMoments:
    """Second and cross moments over the rows, chunk by chunk."""
    second = jnp.zeros((features.size, features.size), jnp.float32)
    cross, square = np.zeros((features.size, classes)), 0.0
    add = jax.jit(lambda total, phi: total + phi.T @ phi, donate_argnums=0)
    for at in range(0, len(rows), CHUNK_ROWS):
        phi = features_of(features, rows[at : at + CHUNK_ROWS])
        wanted = np.eye(classes)[labels[at : at + CHUNK_ROWS]] - 1 / classes
        second = add(second, jnp.asarray(phi))
        cross += phi.T.astype(np.float64) @ wanted
        square += float((wanted**2).sum())
    count = max(1, len(rows))
    return RegressionMoments(second / np.float32(count), jnp.asarray(cross / count), square / count)


def _weights(gram: Array, targets: Array, ridge: float) -> Array:
    factor = jax.scipy.linalg.cho_factor(with_ridge(gram, ridge))
    return jax.scipy.linalg.cho_solve(factor, targets)


def _batch_loss(kernel: Any, ridge: float) -> Any:
    def loss(learned: Learned, data: tuple[Array, Array]) -> Array:
        rows, wanted = data
        weights = _weights(kernel(learned.rows, learned.rows), learned.targets, ridge)
        error = wanted - kernel(rows.astype(learned.rows.dtype), learned.rows) @ weights
        return 0.5 * (error**2).mean()

    return loss


def _moment_loss(kernel: InnerProducts, ridge: float) -> Any:
    """The same over all rows: they enter by their moments alone."""

    def loss(learned: Learned, data: RegressionMoments) -> Array:
        phi = kernel.features(learned.rows.astype(jnp.float32)).astype(jnp.float64)
        head = phi.T @ _weights(phi @ phi.T, learned.targets, ridge)
        # The large product in float32; its error is that of the features.
        through = (data.second @ head.astype(jnp.float32)).astype(jnp.float64)
        total = data.square - 2 * (head * data.cross).sum() + (head * through).sum()
        return 0.5 * total / learned.targets.shape[1]

    return loss
