"""One-shot mean embeddings: measure sums of features per class once, then fit a generator freely.

DP-MERF, DP-HP and DP-NTK are this algorithm with different feature maps. Two sums are measured,
jointly calibrated: how many rows each class has, and the sum of their features. Their ratio is
the class's noisy mean embedding; everything after is post-processing.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...errors import choice, fraction, positive
from ...nets import GENERATORS, Generator, build_generator, fit, settle
from ...privacy import Asked, Histogram, Measurement, Private, Question, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from ..source import Generated

COUNTS, EMBEDDING = "class counts", "mean embedding"


@dataclass(frozen=True, kw_only=True)
class AbstractMeanEmbedding(AbstractMeasureOnce):
    """Settings that all mean-embedding methods share."""

    free: ClassVar[frozenset[str]] = frozenset(
        {"steps", "batch", "learning_rate", "code", "hidden", "generator"}
    )

    count_share: float = 0.05
    """Share of the budget for the class counts; the rest measures the embedding."""
    steps: int = 1000
    """Updates of the generator: free."""
    batch: int = 500
    """Generated rows per update, divided evenly among the classes."""
    learning_rate: float = 0.01
    code: int = 10
    """Latent dimensions."""
    hidden: tuple[int, ...] = (200, 200)
    """Widths of the generator's dense layers."""
    generator: str = "auto"
    """What makes rows: as suits the data (auto), dense layers alone (dense), or for colour images
    residual blocks, whose channels begin with the first hidden width (residual)."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share)
        choice(generator=(self.generator, GENERATORS))
        widths = {f"hidden[{i}]": h for i, h in enumerate(self.hidden)}
        positive(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        positive(code=self.code, hidden=len(self.hidden), **widths)

    @abc.abstractmethod
    def feature_map(self, schema: Schema, seed: int) -> Any:
        """The features to measure; drawn with a public seed."""

    @abc.abstractmethod
    def feature_size(self, schema: Schema) -> tuple[int, float]:
        """Number of features and bound on their norm, known from the schema alone."""

    def questions(self, schema: Schema) -> list[Asked]:
        counts = Histogram.of_classes(COUNTS, schema)
        return [
            Asked(question=counts, share=self.count_share),
            Asked(question=self.embedding_of(schema), share=1 - self.count_share),
        ]

    def embedding_of(self, schema: Schema) -> Question:
        """What is asked about the features."""
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
        generator_settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        if self.generator != "auto":
            generator_settings["kind"] = self.generator
        generator = build_generator(schema, generator_settings, key=build_key)
        target = self._target(schema, measurements, seed)
        generator = fit(
            generator,
            self._loss,
            data=target,
            steps=self.steps,
            learning_rate=self.learning_rate,
            key=fit_key,
            progress=lambda done: progress("generator", done),
        )
        labels = jnp.arange(5000) % len(weights)
        return Product(
            source=Generated(
                generator=settle(generator, labels, key=norm_key),
                settings=generator_settings,
                class_weights=weights,
            ),
            rows=schema.rows or max(1, round(size)),
            measurements=measurements,
        )

    def _target(self, schema: Schema, measurements: Mapping[str, np.ndarray], seed: int) -> Any:
        """What the loss is given: here class means, class weights and the feature map."""
        means, weights = class_means(measurements[COUNTS], measurements[EMBEDDING])
        return means, weights, self.feature_map(schema, seed)

    def _loss(self, generator: Generator, key: Array, target: Any) -> Array:
        """Squared distance of class mean embeddings, weighted by class."""
        means, weights, features = target
        rows = self._rows(generator, key, len(weights))
        return mean_distance(features(rows), means, weights)

    def _rows(self, generator: Generator, key: Array, classes: int) -> Array:
        """Generated rows, the same number of each class, class after class."""
        each = max(2, self.batch // classes)
        labels = jnp.repeat(jnp.arange(classes), each)
        codes = jax.random.normal(key, (classes * each, generator.code))
        return generator(codes, labels, [])


def mean_distance(
    phi: Float[Array, "rows size"],
    means: Float[Array, "classes size"],
    weights: Float[Array, " classes"],
    debias: float = 1.0,
) -> Array:
    """Weighted squared distances of the rows' class means from given ones, sampling bias removed.

    What does not depend on the rows is left out. Rows come class after class, evenly many of each.
    With `debias` below 1 a part of the bias stays, which draws the rows of a class together.
    """
    phi = phi.reshape(len(means), -1, phi.shape[1])
    each = phi.shape[1]
    made = phi.mean(axis=1)
    # A mean over `each` draws overstates |mean|^2 by the draws' spread / each (U-statistic).
    own = (phi**2).sum(axis=(1, 2)) / each
    square = unbiased((made**2).sum(axis=1), own, each, debias)
    return (weights * (square - 2 * (made * means).sum(axis=1))).sum()


def unbiased(square: Array, own: Array, each: int, debias: float) -> Array:
    """|mean|^2 of `each` draws, whose mean squared norm is `own`, less a share of its bias."""
    return (1 - debias) * square + debias * (each * square - own) / (each - 1)


def class_means(counts: np.ndarray, sums: np.ndarray) -> tuple[Array, Array]:
    """Noisy means of each class, and the classes' noisy weights."""
    weights, size = class_weights(counts)
    # A class whose noisy count is near nothing has no mean worth dividing by.
    rows = np.maximum(weights * size, 1.0).reshape(-1, *[1] * (sums.ndim - 1))
    return jnp.asarray(sums / rows, jnp.float32), jnp.asarray(weights, jnp.float32)


def without_noise(sums: np.ndarray, counts: np.ndarray, noise: float) -> np.ndarray:
    """Noisy sums per class, drawn to those of all classes where classes differ no more than noise does.

    Otherwise a classifier would learn the noise of features that are the same in all classes.
    """
    weights, size = class_weights(counts)
    rows = np.maximum(weights * size, 1.0).reshape(-1, *[1] * (sums.ndim - 1))
    means, common = sums / rows, sums.sum(axis=0) / rows.sum()
    variance = (noise / rows) ** 2
    # Twice the noise: of a few classes the spread is known but roughly.
    between = np.maximum(((means - common) ** 2 - 2 * variance).mean(axis=0), 0.0)
    trust = between / np.maximum(between + variance, 1e-300)
    return (common + trust * (means - common)) * rows


def class_weights(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Noisy counts to non-negative shares that sum to one, and the noisy number of rows."""
    kept = np.maximum(counts, 0.0)
    total = float(kept.sum())
    if total <= 0:
        return np.full(len(counts), 1.0 / len(counts)), 1.0
    return kept / total, max(1.0, total)
