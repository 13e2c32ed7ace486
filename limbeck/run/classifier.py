"""The other way to spend a budget: a private classifier trained on the real rows, and no data set.

DP-SGD in its simplest strong form: softmax regression on fixed features (scattering for images,
random Fourier features for tables) by noisy gradients. The papers compare released data with such
a classifier; so do `limbeck reproduce` and `benchmarks/scores.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..accounting import Budget, Cost
from ..data import Dataset
from ..errors import LimbeckError, fraction, positive
from ..features import Fourier, Scattering
from ..ledger import Ledger, paid_run, randomness
from ..methods import COUNTS, AbstractInquiry, linear_features, train_teacher
from ..planning import plan
from ..privacy import Asked, Head, Histogram, Noise, Private
from ..progress import Progress
from ..schema import Schema
from ..scores import feature_rows

GRADIENT = "gradient"


@dataclass(frozen=True, kw_only=True)
class PrivateClassifier(AbstractInquiry):
    """Softmax regression on fixed features, trained by noisy gradients over all rows.

    Privacy:
        Measures class counts (sensitivity 1) and, `steps` times, the sum over all rows of the
        loss's gradients by a linear head, each clipped to norm 1, under add/remove of one row,
        with discrete Gaussian noise calibrated jointly. Events: Gaussians.
    """

    name: ClassVar[str] = "private-classifier"
    papers: ClassVar[tuple[str, ...]] = (
        "M. Abadi et al. Deep Learning with Differential Privacy. CCS 2016.",
        "F. Tramer, D. Boneh. Differentially Private Learning Needs Better Features. ICLR 2021.",
    )

    steps: int = 100
    """Noisy gradient steps, the last iterate counts."""
    learning_rate: float = 32.0
    features: int = 2000
    """Random Fourier features, for tables."""
    count_share: float = 0.01
    """Share of the budget for class counts, which turn sums into means."""

    def __post_init__(self) -> None:
        positive(steps=self.steps, learning_rate=self.learning_rate, features=self.features)
        fraction(count_share=self.count_share)

    def questions(self, schema: Schema) -> list[Asked]:
        classes = len(schema.classes)
        if not schema.label or classes < 2:
            raise LimbeckError(
                "A classifier needs a label with at least two classes; declare one in the schema."
            )
        size = self.feature_map(schema, 0).size
        gradient = Head(name=GRADIENT, size=size, outputs=classes, count=self.steps)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    def feature_map(self, schema: Schema, seed: int) -> Scattering | Fourier:
        """Features of norm 1 that know nothing of the rows."""
        wide = float(np.sqrt(len(schema.inputs)))
        scales = wide / 2, wide
        return linear_features(schema, size=self.features, length_scales=scales, seed=seed)

    def train(self, private: Private, *, seed: int) -> np.ndarray:
        """Weights (features, classes) of the linear head."""
        counts = private.ask(COUNTS).values
        with private.steps(GRADIENT, self.map_spec("feature_map", seed)) as gradient:
            return train_teacher(
                lambda weights: gradient({"weights": weights})[0].values,
                size=self.feature_map(private.schema, seed).size,
                classes=len(private.schema.classes),
                rows=max(float(np.maximum(counts, 0.0).sum()), 1.0),
                noise=private.noise_of(GRADIENT),
                steps=self.steps,
                learning_rate=self.learning_rate,
            )


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """Noisy weights on public features: free to use on any rows."""

    features: Any
    weights: np.ndarray
    cost: Cost

    def scores(self, slots: np.ndarray) -> np.ndarray:
        """Outputs (rows, classes); the largest is the prediction."""
        return feature_rows(self.features, slots) @ self.weights


def train_classifier(
    data: Dataset,
    budget: Budget,
    *,
    classifier: PrivateClassifier | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
    progress: Progress = lambda phase, done: None,
    noise: Noise | None = None,
    pay_again: bool = False,
) -> TrainedClassifier:
    """Train a private classifier; the whole charge is booked before any noise is drawn.

    Args:
        data: Real rows.
        budget: Epsilon and delta.
        classifier: Settings; by default those of `PrivateClassifier`.
        ledger: Where spending is booked; by default the user's own ledger.
        seed: Reproducible noise, for tests and benchmarks.
        progress: Called with a phase and a fraction done.
        noise: Instead of a seed: the randomness that a test of the software brings.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and pay anew.
    """
    inquiry = classifier or PrivateClassifier()
    planned = plan(inquiry, data.schema, budget)
    drawn = randomness(seed, noise)
    with paid_run(
        planned, data, ledger=ledger, noise=drawn, pay_again=pay_again, progress=progress
    ) as paid:
        schema = paid.private.estimate()
        public_seed = paid.noise.public_seed("method")
        weights = inquiry.train(paid.private, seed=public_seed)
        paid.private.executed()
    features = inquiry.feature_map(schema, public_seed)
    return TrainedClassifier(features, weights.astype(np.float32), planned.cost)
