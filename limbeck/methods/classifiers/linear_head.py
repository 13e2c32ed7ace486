"""Softmax regression on fixed features by noisy gradients: DP-SGD in its simplest strong form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ...errors import fraction, positive
from ...features import Fourier, Scattering
from ...privacy import Asked, Head, Histogram, Private
from ...schema import Schema
from ..base import Product, Progress
from ..class_counts import COUNTS
from ..measure_once.teacher import linear_features, train_teacher
from .classifier import GRADIENT, AbstractClassifier
from .trained import HeadOnFeatures, TrainedModel


@dataclass(frozen=True, kw_only=True)
class LinearHead(AbstractClassifier):
    """A linear model on fixed features, trained by noisy gradients over all rows.

    Features are scattering coefficients for images and random Fourier features for tables; neither knows
    anything of the rows.

    Privacy:
        Measures class counts (sensitivity 1) and, `steps` times, the sum over all rows of the
        loss's gradients by a linear head, each clipped to norm 1, under add/remove of one row,
        with discrete Gaussian noise calibrated jointly. Events: Gaussians.
    """

    name: ClassVar[str] = "linear-head"
    good_for: ClassVar[str] = (
        "a classifier and no data set, in minutes: of images the best one here"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "M. Abadi et al. Deep Learning with Differential Privacy. CCS 2016.",
        "F. Tramer, D. Boneh. Differentially Private Learning Needs Better Features. ICLR 2021.",
    )

    steps: int = 100
    """Noisy gradient steps, the last iterate counts."""
    learning_rate: float = 32.0
    """Learning rate where there is little noise; with more noise it is lower."""
    features: int = 2000
    """Random Fourier features, for tables."""
    count_share: float = 0.01
    """Share of the budget for class counts, which turn sums into means."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share)
        positive(steps=self.steps, learning_rate=self.learning_rate, features=self.features)

    def questions(self, schema: Schema) -> list[Asked]:
        self.check_label(schema)
        size, classes = self.feature_map(schema, 0).size, len(schema.classes)
        gradient = Head(name=GRADIENT, size=size, outputs=classes, count=self.steps)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    @staticmethod
    def length_scales(schema: Schema) -> tuple[float, float]:
        """Of random Fourier features."""
        wide = float(np.sqrt(len(schema.inputs)))
        return wide / 2, wide

    def feature_map(self, schema: Schema, seed: int) -> Scattering | Fourier:
        """Features of norm 1 that know nothing of the rows."""
        scales = self.length_scales(schema)
        return linear_features(schema, size=self.features, length_scales=scales, seed=seed)

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        counts = private.ask(COUNTS).values
        features = self.feature_map(schema, seed)
        with private.steps(GRADIENT, self.map_spec("feature_map", seed)) as gradient:
            weights = train_teacher(
                lambda weights: gradient({"weights": weights})[0].values,
                size=features.size,
                classes=len(schema.classes),
                rows=max(float(np.maximum(counts, 0.0).sum()), 1.0),
                noise=private.noise_of(GRADIENT),
                steps=self.steps,
                learning_rate=self.learning_rate,
            )
        network = HeadOnFeatures(features, jnp.asarray(weights, jnp.float32))
        scales = list(self.length_scales(schema))
        facts = {"kind": "head", "features": self.features, "length_scales": scales}
        return Product(
            source=TrainedModel(network=network, facts=facts), measurements={COUNTS: counts}
        )
