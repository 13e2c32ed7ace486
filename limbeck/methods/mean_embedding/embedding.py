"""Mean embeddings: measure each class's sum of features once, then fit a generator to it freely.

DP-MERF, DP-HP and DP-NTK are this algorithm with different features. Two things are measured under
one budget: how many rows each class has, and the sum of their features. The second over the first is
the class's noisy mean embedding. A generator is then trained until its rows have the same means:
post-processing, which costs no privacy.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...draws import normal
from ...errors import choice, fraction, positive
from ...features import unbiased_square
from ...nets import GENERATORS, Generator, build_generator, fit
from ...privacy import Asked, Histogram, Measurement, Private, Question, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from ..class_counts import COUNTS, class_means, class_weights
from ..source import trained_source

Module = TypeVar("Module")
EMBEDDING = "mean embedding"
"""Name of the question for each class's sum of features."""


@dataclass(frozen=True, kw_only=True)
class AbstractMeanEmbedding(AbstractMeasureOnce):
    """A method that measures mean embeddings; those that derive from it say which features."""

    free: ClassVar[frozenset[str]] = frozenset(
        {"steps", "batch", "learning_rate", "code", "hidden", "generator"}
    )

    count_share: float = 0.05
    """Share of the budget for the class counts; the rest measures the embedding."""
    steps: int = 1000
    """Updates of the generator. Free."""
    batch: int = 500
    """Generated rows per update, as many of each class. Free."""
    learning_rate: float = 0.01
    """Step size of the generator's Adam. Free."""
    code: int = 10
    """Latent numbers that the generator makes a row from. Free."""
    hidden: tuple[int, ...] = (200, 200)
    """Widths of the generator's dense layers. Free."""
    generator: str = "auto"
    """The generator's network: as suits the data (auto); dense layers alone (dense); for colour
    images, residual blocks, the first of which have as many channels as the first width in `hidden`
    says (residual); or, for images, transposed convolutions with the label beside every layer
    (deconvolution). Free."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share)
        choice(generator=(self.generator, GENERATORS))
        widths = {f"hidden[{i}]": h for i, h in enumerate(self.hidden)}
        positive(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        positive(code=self.code, hidden=len(self.hidden), **widths)

    @abc.abstractmethod
    def feature_map(self, schema: Schema, seed: int) -> Any:
        """The features to measure; what is random in them follows from the public seed."""

    @abc.abstractmethod
    def feature_size(self, schema: Schema) -> tuple[int, float]:
        """Number of features, and the largest norm that a row's can have."""

    def questions(self, schema: Schema) -> list[Asked]:
        counts = Histogram.of_classes(COUNTS, schema)
        return [
            Asked(question=counts, share=self.count_share),
            Asked(question=self.embedding_of(schema), share=1 - self.count_share),
        ]

    def embedding_of(self, schema: Schema) -> Question:
        """The question for each class's sum of features."""
        size, bound = self.feature_size(schema)
        return Sum(name=EMBEDDING, bound=bound, size=size, groups=len(schema.classes))

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        counts = private.ask(COUNTS)
        return {
            COUNTS: counts,
            EMBEDDING: private.ask(EMBEDDING, self.map_spec("feature_map", seed)),
        }

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        measurements = values_of(measured)
        weights, size = class_weights(measurements[COUNTS])
        build_key, fit_key, norm_key = jax.random.split(jax.random.key(seed), 3)
        settings = generator_settings(self.code, self.hidden, self.generator)
        generator = build_generator(schema, settings, key=build_key)
        target = self._target(schema, measurements, seed)
        generator = self._fitted(generator, target, fit_key, progress)
        return Product(
            source=trained_source(generator, settings, weights, key=norm_key),
            rows=schema.rows or max(1, round(size)),
            measurements=measurements,
        )

    def _fitted(
        self, generator: Generator, target: Any, key: Array, progress: Progress
    ) -> Generator:
        """The generator after all updates."""
        return self._improved(generator, self._loss, target, key, progress)

    def _improved(
        self,
        module: Module,
        loss: Callable[..., Array],
        target: Any,
        key: Array,
        progress: Progress,
    ) -> Module:
        """A generator, or what holds one, after all updates by a loss."""
        return fit(
            module,
            loss,
            data=target,
            steps=self.steps,
            learning_rate=self.learning_rate,
            key=key,
            progress=lambda done: progress("generator", done),
        )

    def _target(self, schema: Schema, measurements: Mapping[str, np.ndarray], seed: int) -> Any:
        """What the loss compares rows with: noisy class means, class weights, the features."""
        means, weights = class_means(measurements[COUNTS], measurements[EMBEDDING])
        return means, weights, self.feature_map(schema, seed)

    def _loss(self, generator: Generator, key: Array, target: Any) -> Array:
        """Squared distance between generated and noisy class means, weighted by class."""
        means, weights, features = target
        rows = self._rows(generator, key, len(weights))
        return mean_distance(features(rows), means, weights)

    def _rows(self, generator: Generator, key: Array, classes: int) -> Array:
        """Generated rows, the same number of each class, class after class."""
        each = max(2, self.batch // classes)
        labels = jnp.repeat(jnp.arange(classes), each)
        codes = normal(key, (classes * each, generator.code))
        return generator(codes, labels, [])


def generator_settings(code: int, hidden: tuple[int, ...], kind: str) -> dict[str, Any]:
    """What a generator is built from, as plain data that a release keeps."""
    settings: dict[str, Any] = {"code": code, "hidden": list(hidden)}
    return settings if kind == "auto" else settings | {"kind": kind}


def mean_distance(
    phi: Float[Array, "rows size"],
    means: Float[Array, "classes size"],
    weights: Float[Array, " classes"],
    debias: float = 1.0,
) -> Array:
    """Squared distances of generated class means from noisy ones, weighted by class and added up.

    What does not depend on the generated rows is left out.

    Args:
        phi: Features of generated rows, class after class, as many of each.
        means: Noisy mean features of each class.
        weights: Noisy share of each class.
        debias: How much of the bias of few rows is removed; what is left draws the rows of a class
            together.
    """
    phi = phi.reshape(len(means), -1, phi.shape[1])
    each = phi.shape[1]
    own_means = phi.mean(axis=1)
    own = (phi**2).sum(axis=(1, 2)) / each
    square = unbiased_square((own_means**2).sum(axis=1), own, each, debias)
    return (weights * (square - 2 * (own_means * means).sum(axis=1))).sum()
