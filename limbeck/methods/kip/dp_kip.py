"""DP-KIP: differentially private kernel inducing points (Vinaroz and Park 2023; 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ...errors import LimbeckError, fraction, positive
from ...features import Support, centred, features_of, gaussian_support, pull_back, row_loss
from ...privacy import (
    Asked,
    FeatureGradients,
    FeatureSpaceGradients,
    Gradients,
    Histogram,
    PlainGradients,
    Private,
    PulledGradients,
    TangentGradients,
)
from ...schema import Schema
from ..base import Product, Progress, check_values_declared
from ..mean_embedding.embedding import COUNTS, class_weights
from ..source import Distilled
from .kernel import AbstractKernelMethod, View, choice

GRADIENT = "gradient"
LEAST_CLIP = 1e-12
"""Squares of smaller norms would vanish in float32."""
MOST_START = 1000.0
MOST_STEPS = 1_000_000
MOST_WEIGHT = 20.0
"""A class's loss is never weighted by more than this: its gradients are clipped alike anyway."""


@dataclass(frozen=True, kw_only=True)
class DPKIP(AbstractKernelMethod):
    """A few rows per class, learned by noisy gradients so that kernel regression on them fits the data.

    Privacy:
        Each step measures the sum of the loss's gradients over a Poisson batch, every row's
        clipped to norm `clip`, under add/remove of one row, with discrete Gaussian noise; the
        rate is `batch` over the schema's declared rows. Events: Poisson-sampled Gaussians, as many
        as there are steps; with `weigh_classes`, also one Gaussian for the class counts. The rows
        start from noise.
    """

    name: ClassVar[str] = "dp-kip"
    family: ClassVar[str] = "kernel inducing points"
    good_for: ClassVar[str] = "labelled data: a few rows per class for the papers' kernels"
    papers: ClassVar[tuple[str, ...]] = (
        "M. Vinaroz, M. Park. Differentially Private Kernel Inducing Points using features from "
        "ScatterNets (DP-KIP-ScatterNet) for Privacy Preserving Data Distillation. TMLR 2024.",
        "M. Vinaroz, M. J. Park. DP-KIP: Differentially Private Kernel Inducing Points. 2023.",
    )

    epochs: float = 10.0
    """Passes over the data: the number of steps is epochs / rate."""
    batch: int = 500
    """Expected rows in a step."""
    batch_rate: float = 0.0
    """The same as a share of the declared rows; 0: `batch` counts."""
    clip: float = 1e-6
    """Largest norm of a row's gradient. Far below typical norms, every row counts alike."""
    learning_rate: float = 0.01
    """Of the optimiser."""
    optimiser: str = "adam"
    """adam or sgd."""
    adam_epsilon: float = 1e-2
    """What Adam adds to its denominator. Large against the noise: momentum without scaling."""
    scaling: str = "free"
    """free: gradients are divided by `clip` before the optimiser sees them; published: they are
    not, so that `clip` is a second learning rate, as in the papers' tables."""
    start_spread: float = 0.0
    """Deviation of the noise that learned rows start from, in what the kernel sees; 0: 0.3 for
    images, 1 for tables. Near the size of real rows, one `clip` fits the first steps and the
    last; the papers' is 1."""
    labels: str = "balanced"
    """Fixed labels of the learned rows: balanced, or drawn uniformly."""
    corrupted: float = 0.0
    """Share of the numbers that stay as drawn and are never learned."""
    corrupted_per_row: bool = False
    """Whether each learned row has corrupted places of its own."""
    mechanism: str = "pixels"
    """Where gradients are clipped and noise is added: pixels, as in the papers; or features,
    limbeck's own, cheaper per step, for kernels with features."""
    weigh_classes: bool = False
    """Weigh losses by the inverse of noisy class counts, against imbalance."""
    count_share: float = 0.05
    """Share of the budget for those counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(
            epochs=self.epochs,
            batch=self.batch,
            clip=self.clip,
            learning_rate=self.learning_rate,
            adam_epsilon=self.adam_epsilon,
        )
        if self.clip < LEAST_CLIP:
            raise LimbeckError(f"Expected clip >= {LEAST_CLIP:g}, got {self.clip:g}.")
        if not 0 <= self.start_spread <= MOST_START:
            raise LimbeckError(
                f"Expected 0 <= start_spread <= {MOST_START:g}, got {self.start_spread:g}."
            )
        fraction(count_share=self.count_share)
        choice(
            optimiser=(self.optimiser, ("adam", "sgd")),
            scaling=(self.scaling, ("free", "published")),
            labels=(self.labels, ("balanced", "uniform")),
            mechanism=(self.mechanism, ("pixels", "features")),
        )
        if not 0 <= self.corrupted < 1:
            raise LimbeckError(f"Expected 0 <= corrupted < 1, got {self.corrupted}.")
        if not 0 <= self.batch_rate <= 1:
            raise LimbeckError(f"Expected 0 <= batch_rate <= 1, got {self.batch_rate}.")
        if self.mechanism == "features" and not self._has_features:
            raise LimbeckError(f"The kernel {self.kernel} has no finite features to add noise to.")

    # ---- the plan ---------------------------------------------------------------------------

    def rate(self, schema: Schema) -> float:
        """Probability with which a row enters a step."""
        if schema.rows is None:
            raise LimbeckError(
                f"{self.name} draws batches by a public rate: declare an approximate number of "
                "rows in the schema (rows = ...)."
            )
        rate = self.batch_rate or self.batch / schema.rows
        if rate > 1:
            raise LimbeckError(
                f"A batch of {self.batch} is more than the {schema.rows} rows that the schema "
                "declares; choose a smaller batch."
            )
        return rate

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        size, rate = self.support_size(schema), self.rate(schema)
        self.view(schema)
        self.function(schema, 0)  # refuses images that it cannot take
        width = schema.slots - round(self.corrupted * schema.slots)
        if not width:
            raise LimbeckError(
                f"corrupted = {self.corrupted:g} leaves none of {schema.slots} numbers to learn; "
                "choose less."
            )
        if self.mechanism == "features":
            width = self.features(schema, 0).size
        steps = max(1, round(self.epochs / rate))
        if steps > MOST_STEPS:
            raise LimbeckError(
                f"{self.epochs:g} epochs are {steps} steps, more than {MOST_STEPS}; choose fewer."
            )
        gradient = Gradients(
            name=GRADIENT,
            clip=self.clip,
            size=size * width,
            rate=rate,
            rows=schema.rows or 1,
            count=steps,
        )
        if not self.weigh_classes:
            return [Asked(question=gradient, share=1.0)]
        counts = Histogram.of_classes(COUNTS, schema)
        return [
            Asked(question=counts, share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    # ---- the run ----------------------------------------------------------------------------

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        measured = {COUNTS: private.ask(COUNTS).values} if self.weigh_classes else {}
        weights = self._class_weights(schema, measured)
        label_key, start_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 1))
        labels = self._labels(schema, label_key)
        support = gaussian_support(
            np.asarray(centred(labels, len(schema.classes))),
            schema.slots,
            spread=self.start_spread or (0.3 if schema.image else 1.0),
            corrupted=self.corrupted,
            per_row=self.corrupted_per_row,
            key=start_key,
        )
        learned = self._learn(private, support, weights, seed)
        slots = self.view(schema).back(learned)
        return Product(
            source=Distilled(slots=slots, labels=labels), rows=len(labels), measurements=measured
        )

    def _class_weights(self, schema: Schema, measured: dict[str, np.ndarray]) -> np.ndarray:
        """Factors of the classes' losses; the mean over noisy rows is about one."""
        classes = len(schema.classes)
        if not measured:
            return np.ones(classes)
        shares, _ = class_weights(measured[COUNTS])
        return np.minimum(MOST_WEIGHT, 1 / (classes * np.maximum(shares, 1e-9)))

    def _labels(self, schema: Schema, key: Array) -> np.ndarray:
        balanced = self.labels_of(schema)
        if self.labels == "balanced":
            return balanced
        return np.asarray(jax.random.randint(key, balanced.shape, 0, len(schema.classes)))

    def _learn(
        self, private: Private, support: Support, weights: np.ndarray, seed: int
    ) -> np.ndarray:
        """The support after all steps, as the kernel sees it."""
        schema = private.schema
        divisor = (
            self.rate(schema) * (schema.rows or 1) * (self.clip if self.scaling == "free" else 1.0)
        )
        feature_space = self.mechanism == "features"
        features = self.features(schema, seed) if self._has_features else None
        source = self._gradients(schema, support, weights, features)
        optimiser = (
            optax.adam(self.learning_rate, eps=self.adam_epsilon)
            if self.optimiser == "adam"
            else optax.sgd(self.learning_rate)
        )
        free = support.pick(support.start).astype(np.float32)
        state = optimiser.init(jnp.asarray(free))

        @jax.jit
        def update(gradient: Array, state: Any, free: Array) -> tuple[Array, Any]:
            change, state = optimiser.update(gradient, state, free)
            return optax.apply_updates(free, change), state

        with private.steps(GRADIENT, source) as ask:
            for _ in range(private.step_count(GRADIENT)):
                if feature_space:
                    placed = support.place(free).astype(np.float32)
                    phi = features_of(features, placed)
                    noisy = ask({"parameters": phi.ravel()})[0].values
                    noisy = noisy.reshape(phi.shape).astype(np.float32)
                    gradient = support.pick(pull_back(features, placed, noisy))
                else:
                    gradient = ask({"parameters": free})[0].values
                scaled = jnp.asarray(gradient / divisor, jnp.float32)
                moved, state = update(scaled, state, jnp.asarray(free))
                free = np.asarray(moved)
        return support.place(free)

    @property
    def _has_features(self) -> bool:
        return self.kernel not in ("fc-ntk", "conv-ntk")

    def _gradients(
        self, schema: Schema, support: Support, weights: np.ndarray, features: Any
    ) -> Any:
        """How rows' gradients are clipped and added up, for the kernel at hand."""
        view = self.view(schema)
        common: dict[str, Any] = {"ridge": self.ridge, "class_weights": weights, "view": view}
        if self.kernel == "fc-ntk":
            return TangentGradients(kernel=self.tangent(), support=support, **common)
        if self.kernel == "conv-ntk":
            return PlainGradients(loss=self._loss(schema, support, weights, view), chunk=4)
        if self.mechanism == "features":
            return FeatureSpaceGradients(features=features, targets=support.targets, **common)
        kind = FeatureGradients if hasattr(features, "derivative") else PulledGradients
        return kind(features=features, support=support, **common)

    def _loss(self, schema: Schema, support: Support, weights: np.ndarray, view: View) -> Any:
        kernel = self.function(schema, 0)
        targets = jnp.asarray(support.targets, jnp.float32)
        factors = jnp.asarray(weights, jnp.float32)

        def loss(free: Array, slots: Array, label: Array) -> Array:
            wanted = centred(label, targets.shape[1])
            placed = support.place_traced(free)
            value = row_loss(kernel, placed, targets, view(slots), wanted, self.ridge)
            return factors[label] * value

        return loss
