"""Full MMD: a generator fitted to the bare rows, batch against batch; the papers' reference.

It trains the generator of the private methods without their noise and without their finite features.
What it scores shows how much of a private score is lost to these, and how much to the generator.
MMD is the maximum mean discrepancy, the distance of two distributions' mean embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...draws import normal
from ...errors import choice, positive
from ...features import default_length_scales, unbiased_square
from ...nets import GENERATORS, Generator, build_generator, fit
from ...privacy import Asked, BareRows, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress
from ..class_counts import class_weights
from ..part import Auto
from ..source import trained_source
from .dp_merf import check_length_scales
from .embedding import generator_settings

ROWS = BareRows().name


@dataclass(frozen=True, kw_only=True)
class FullMMD(AbstractMethod):
    """A generator trained with Gaussian kernels on the rows themselves, class by class.

    Privacy:
        None. It reads the bare rows and runs at epsilon = infinity only.
    """

    name: ClassVar[str] = "full-mmd"
    good_for: ClassVar[str] = "a yardstick without privacy, for generators"
    papers: ClassVar[tuple[str, ...]] = (
        "Y. Li, K. Swersky, R. Zemel. Generative Moment Matching Networks. ICML 2015.",
    )
    needs_bare_rows: ClassVar[bool] = True

    length_scales: tuple[float, ...] | Auto = "auto"
    """Widths of the Gaussian kernels that are added up, as distances between encoded rows; auto: they
    follow from the schema."""
    steps: int = 1000
    """Updates of the generator."""
    batch: int = 500
    """Rows per update, real ones and as many generated ones, evenly from all classes."""
    learning_rate: float = 0.01
    """Step size of Adam, at the start."""
    code: int = 10
    """Latent numbers that the generator makes a row from."""
    hidden: tuple[int, ...] = (200, 200)
    """Widths of the generator's dense layers."""
    generator: str = "auto"
    """The generator's network: auto, dense or residual, as for the other generator methods."""

    def __post_init__(self) -> None:
        choice(generator=(self.generator, GENERATORS))
        positive(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        positive(code=self.code, hidden=len(self.hidden))
        check_length_scales(self.length_scales)

    def questions(self, schema: Schema) -> list[Asked]:
        return [Asked(question=BareRows(), share=1.0)]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema, private_rows = private.schema, private.ask(ROWS).values
        classes = len(schema.classes)
        members = [np.flatnonzero(private_rows.labels == c) for c in range(classes)]
        weights, size = class_weights(np.asarray([len(m) for m in members]))
        build_key, fit_key, norm_key = jax.random.split(jax.random.key(seed), 3)
        settings = generator_settings(self.code, self.hidden, self.generator)
        generator = build_generator(schema, settings, key=build_key)
        scales = self.length_scales
        scales = default_length_scales(schema) if scales == "auto" else scales
        present = [m for m in members if len(m)]
        labels = np.asarray([c for c, m in enumerate(members) if len(m)])
        rng, each = np.random.default_rng(seed), max(2, self.batch // classes)

        def batches() -> Iterator[Any]:
            while True:
                picked = np.concatenate([rng.choice(m, each) for m in present])
                yield schema.expand(np.asarray(private_rows.cells[picked]))

        if present:
            generator = fit(
                generator,
                generator_loss(jnp.repeat(labels, each), weights[labels], scales),
                batches=batches(),
                steps=self.steps,
                learning_rate=self.learning_rate,
                key=fit_key,
                progress=lambda done: progress("generator", done),
            )
        source = trained_source(generator, settings, weights, key=norm_key)
        return Product(source=source, rows=schema.rows or max(1, round(size)))


def generator_loss(
    labels: Array, weights: np.ndarray, scales: tuple[float, ...]
) -> Callable[[Generator, Array, Any], Array]:
    """The squared MMD between generated and real rows of each class, weighted by class and added up.

    Args:
        labels: Class codes of the generated rows, class after class, as many of each.
        weights: Share of each of these classes.
        scales: Length scales of the kernels.
    """

    def loss(generator: Generator, key: Array, real: Array) -> Array:
        codes = normal(key, (len(labels), generator.code))
        generated = generator(codes, labels, []).reshape(len(weights), -1, real.shape[1])
        there = real.reshape(generated.shape)
        each = jax.vmap(lambda a, b: discrepancy(a, b, scales))(generated, there)
        return (weights * each).sum()

    return loss


def discrepancy(
    generated: Float[Array, "rows slots"],
    real: Float[Array, "others slots"],
    scales: tuple[float, ...],
) -> Array:
    """An unbiased estimate of the squared MMD between two samples, with the mean of Gaussian kernels of
    the given length scales; the term that only the real rows make is left out."""
    own, across = (_kernel(generated, other, scales) for other in (generated, real))
    square = unbiased_square(own.mean(), jnp.diagonal(own).mean(), len(generated))
    return square - 2 * across.mean()


def _kernel(left: Array, right: Array, scales: tuple[float, ...]) -> Array:
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
    squares = jnp.maximum(squares, 0.0)
    return sum(jnp.exp(-squares / (2 * s * s)) for s in scales) / len(scales)  # type: ignore[return-value]
