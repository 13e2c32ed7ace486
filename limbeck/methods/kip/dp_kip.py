"""DP-KIP: differentially private kernel inducing points (Vinaroz and Park 2023; 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ...errors import LimbeckError, choice, fraction, positive, unless_auto
from ...features import Support, centred, gaussian_support, pull_back
from ...nets import rate_schedule
from ...privacy import Asked, FeatureSpaceGradients, Gradients, Histogram, Measurement, Private
from ...schema import Schema
from ..apportion import apportion
from ..base import Product, Progress, check_values_declared, values_of
from ..class_counts import COUNTS, class_weights
from ..part import Auto
from ..source import Distilled
from .domain import kept_to_domain
from .feature_basis import feature_basis, pulled_size
from .kernel import SupportRegression, View, condition_number
from .kernel_method import AbstractKernelMethod
from .private_start import START_SHARE, START_SPREAD, STARTS, PrivateStart, usual

GRADIENT = "gradient"
"""Name of the question that every step asks."""
ADAM_DEVIATIONS = 3.0
"""Deviations of a step's noise that Adam's epsilon is, unless it is set;"""
LEAST_ADAM = 1e-3
"""but never less than this."""
LEAST_CLIP = 1e-12
"""Smallest norm to clip to: squares of smaller ones would vanish in float32."""
USUAL_BATCH = 2000
"""Rows that a step draws, on average, unless another number is set;"""
USUAL_RATE = 0.1
"""but no more than this share of the rows."""
MOST_START = 1000.0
"""Largest standard deviation of the noise that learned rows start from."""
MOST_STEPS = 1_000_000
"""Largest number of steps."""
MOST_WEIGHT = 20.0
"""Largest factor of a class's loss: gradients are clipped to one norm after it anyway."""
LABELS = ("balanced", "uniform", "shares")
"""How the learned rows can be divided among the classes."""
EPOCHS, TABLE_STEPS = 10.0, 6
"""Passes over images, and steps on tables, unless `epochs` are set."""


@dataclass(frozen=True, kw_only=True)
class DPKIP(AbstractKernelMethod):
    """A few rows per class, learned by noisy gradients so that kernel regression on them fits the data.

    Privacy:
        Each step measures the sum of the loss's gradients over a Poisson batch, every row's
        clipped to norm `clip`, under add/remove of one row, with discrete Gaussian noise; the
        rate is `batch` over the schema's declared rows. Events: Poisson-sampled Gaussians, as many
        as there are steps. The rows start from noise; or from noisy sums of the clipped rows of each
        class or cluster, Gaussians that are calibrated together with the steps. Class counts, where
        a start or `weigh_classes` needs them, are one Gaussian more.
    """

    name: ClassVar[str] = "dp-kip"
    version: ClassVar[int] = 5
    family: ClassVar[str] = "kernel inducing points"
    good_for: ClassVar[str] = "labelled data: a few rows per class for the papers' kernels"
    papers: ClassVar[tuple[str, ...]] = (
        "M. Vinaroz, M. Park. Differentially Private Kernel Inducing Points using features from "
        "ScatterNets (DP-KIP-ScatterNet) for Privacy Preserving Data Distillation. TMLR 2024.",
        "M. Vinaroz, M. J. Park. DP-KIP: Differentially Private Kernel Inducing Points. 2023.",
    )

    epochs: float | Auto = "auto"
    """Expected number of times that a step draws a row: the number of steps is epochs / rate. Auto: 10 for
    images, and for tables as many as make 6 steps: more of them suit kernel regression better, but take rows to
    where other classifiers do not want them."""
    batch: int | Auto = "auto"
    """Rows that a step draws, on average; auto: 2000, or a tenth of the rows that the schema declares
    if that is less. Many carry more under the same budget than more steps do."""
    batch_rate: float | Auto = "auto"
    """Probability with which a step draws a row; auto: `batch` over the schema's declared rows."""
    clip: float = 1e-6
    """Largest norm of a row's gradient. Far below typical norms every row counts alike."""
    learning_rate: float = 0.1
    """Step size of the optimiser, at the start."""
    decay: bool = True
    """Whether it falls to nothing along half a cosine: the last steps then average their noise. The
    papers' does not."""
    optimiser: str = "adam"
    """What makes steps of noisy gradients: adam or sgd."""
    adam_epsilon: float | Auto = "auto"
    """What Adam adds to the root of its second moments before it divides by it. If that is large
    against them, Adam is gradient descent with momentum; auto: three times the deviation of a step's noise,
    so that noise alone moves nothing far, and gradients that stand out of it do however small they are."""
    scaling: str = "free"
    """Whether gradients are divided by `clip` before the optimiser sees them (free), or not
    (published): then `clip` acts as a second learning rate, as in the papers' tables."""
    start: str = "auto"
    """What learned rows start from: noise, as the papers say; noisy means of the classes (means);
    or of clusters within them (prototypes; auto for images), as many as can be told from noise, the others being deformed
    copies; or, for tables, draws with each class's noisy means and spreads in measured ranges (moments; auto
    for tables with 100 rows of each class times the root of their columns; with fewer, auto is means)."""
    start_share: float | Auto = "auto"
    """Share of the budget for such means, class counts included; noise costs nothing. Auto: 0.1 for images,
    0.8 for tables."""
    start_spread: float | Auto = "auto"
    """Standard deviation of the noise that learned rows start from, as the kernel sees rows; auto:
    0.3 for images, 1 for tables. Near the size of real rows one `clip` fits the first steps and
    the last; the papers' is 1."""
    domain: str = "auto"
    """Where learned rows may go: anywhere (free), as in the papers; or where the schema allows rows to
    be, after every step (schema): numbers within their range, weights of categories that add up to
    one. Auto: schema for tables, whose rows are decoded, and free for images."""
    labels: str = "balanced"
    """Labels of the learned rows, which stay fixed: as many of each class (balanced); drawn at random
    (uniform); or, one for each class being certain, in proportion to noisy class counts (shares)."""
    corrupted: float = 0.0
    """Share of a learned row's numbers that stay as they were drawn and are never learned."""
    corrupted_per_row: bool = False
    """Whether each learned row has such numbers in places of its own."""
    mechanism: str = "auto"
    """Where gradients are clipped and noise is added: in the rows' numbers (pixels), as in the
    papers; or in the kernel's features, limbeck's own, far cheaper per step (features). Auto:
    features, where the kernel has any."""
    directions: int = 512
    """To how many directions of feature space regression and gradients keep, where gradients are taken
    there: those in which features of pictures are largest. All, where there are no more."""
    weigh_classes: bool = False
    """Whether a row's loss is weighted by the inverse of its class's noisy count, so that small
    classes count as much as large ones."""
    count_share: float = 0.05
    """Share of the budget for class counts, where `labels` or `weigh_classes` needs them and the start has
    not paid for them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(
            directions=self.directions,
            clip=self.clip,
            learning_rate=self.learning_rate,
        )
        if self.epochs != "auto":
            positive(epochs=unless_auto(epochs=self.epochs) or 0)
        if self.clip < LEAST_CLIP:
            raise LimbeckError(f"Expected clip >= {LEAST_CLIP:g}, got {self.clip:g}.")
        if self.adam_epsilon != "auto":
            positive(adam_epsilon=unless_auto(adam_epsilon=self.adam_epsilon) or 0)
        spread = unless_auto(start_spread=self.start_spread)
        rate = unless_auto(batch_rate=self.batch_rate)
        if self.batch != "auto":
            positive(batch=unless_auto(batch=self.batch) or 0)
        if spread is not None and not 0 < spread <= MOST_START:
            raise LimbeckError(f"Expected 0 < start_spread <= {MOST_START:g}, got {spread:g}.")
        if rate is not None and not 0 < rate <= 1:
            raise LimbeckError(f"Expected 0 < batch_rate <= 1, got {rate}.")
        fraction(count_share=self.count_share)
        if self.start_share != "auto":
            fraction(start_share=unless_auto(start_share=self.start_share) or 0)
        choice(
            optimiser=(self.optimiser, ("adam", "sgd")),
            start=(self.start, ("auto", *STARTS)),
            domain=(self.domain, ("auto", "free", "schema")),
            scaling=(self.scaling, ("free", "published")),
            labels=(self.labels, LABELS),
            mechanism=(self.mechanism, ("auto", "pixels", "features")),
        )
        if not 0 <= self.corrupted < 1:
            raise LimbeckError(f"Expected 0 <= corrupted < 1, got {self.corrupted}.")
        if self.mechanism == "features" and not self.kernel.has_features:
            raise LimbeckError(
                f"The kernel {self.kernel.name} has no finite features to add noise to."
            )

    # ---- the plan ---------------------------------------------------------------------------

    def rate(self, schema: Schema) -> float:
        """Probability with which a step draws a row, or a person."""
        units, noun = schema.units, "persons" if schema.person else "rows"
        if units is None:
            place = "'s [person]" if schema.person else ""
            raise LimbeckError(
                f"{self.name} draws batches by a public rate: declare an approximate number of "
                f"{noun} in the schema{place} ({noun} = ...)."
            )
        if self.batch_rate != "auto":
            rate = self.batch_rate
        elif self.batch != "auto":
            rate = self.batch / units
        else:
            rate = min(USUAL_BATCH / units, USUAL_RATE)
        if rate > 1:
            raise LimbeckError(
                f"A batch of {self.batch} is more than the {units} {noun} that the schema "
                "declares; choose a smaller batch."
            )
        return rate

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        size, rate = self.support_size(schema), self.rate(schema)
        self.view(schema)  # refuses a centre or a spread that fits no image
        self.kernel.function(schema, 0)  # refuses images that it cannot take
        width = schema.slots - round(self.corrupted * schema.slots)
        if not width:
            raise LimbeckError(
                f"corrupted = {self.corrupted:g} leaves none of {schema.slots} numbers to learn; "
                "choose less."
            )
        if self._in_features:
            width = min(self.directions, self.kernel.features(schema, 0).size)
        epochs = usual(self.epochs, {"images": EPOCHS, "tables": TABLE_STEPS * rate}, schema)
        steps = max(1, round(epochs / rate))
        if steps > MOST_STEPS:
            raise LimbeckError(
                f"{epochs:g} epochs are {steps} steps, more than {MOST_STEPS}; choose fewer."
            )
        gradient = Gradients(
            name=GRADIENT,
            clip=self.clip,
            size=size * width,
            rate=rate,
            rows=schema.rows or schema.units or 1,
            count=steps,
        )
        first = []
        if self.start != "noise":
            first = self._private_start(schema).asked(schema)
        elif self._counts_wanted:
            counts = Histogram.of_classes(COUNTS, schema)
            first = [Asked(question=counts, share=self.count_share)]
        return [*first, Asked(question=gradient, share=1 - sum(one.share for one in first))]

    def rows_of_class(self, schema: Schema) -> int:
        return self._private_start(schema).per_class

    # ---- the run ----------------------------------------------------------------------------

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        measured = self._measure_first(private, seed)
        label_key, start_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 1))
        labels = self._labels(schema, measured, label_key)
        first = self._private_start(schema)
        view = first.view(schema, measured) or self.view(schema)
        regression = SupportRegression(
            support=self._start(schema, labels, measured, start_key, view),
            class_weights=self._class_weights(schema, measured),
            ridge=self.ridge,
            view=view,
        )
        condition = condition_number(self.kernel, schema, regression, seed)
        progress(f"start (condition number of the kernel {condition:.1e})", 1.0)
        learned = self._learn(private, regression, seed)
        return Product(
            source=Distilled(slots=regression.view.back(learned), labels=labels),
            rows=len(labels),
            measurements=values_of(measured),
        )

    def _private_start(self, schema: Schema) -> PrivateStart:
        """What a start other than noise asks."""
        share = usual(self.start_share, START_SHARE, schema)
        return PrivateStart.of(self.start, schema, per_class=self.per_class, share=share)

    @property
    def _counts_wanted(self) -> bool:
        return self.weigh_classes or self.labels == "shares"

    @property
    def _in_features(self) -> bool:
        if self.mechanism == "auto":
            return self.kernel.has_features
        return self.mechanism == "features"

    def _measure_first(self, private: Private, seed: int) -> dict[str, Measurement]:
        """What is known of the rows before the first step."""
        if self.start != "noise":
            return self._private_start(private.schema).measure(private, seed)
        return {COUNTS: private.ask(COUNTS)} if self._counts_wanted else {}

    def _start(
        self,
        schema: Schema,
        labels: np.ndarray,
        measured: dict[str, Measurement],
        key: Array,
        view: View,
    ) -> Support:
        """Rows that the steps will move: of noise, or where the means are. Numbers that are never
        learned are of noise always."""
        noise = gaussian_support(
            np.asarray(centred(labels, len(schema.classes))),
            schema.slots,
            spread=usual(self.start_spread, START_SPREAD, schema),
            corrupted=self.corrupted,
            per_row=self.corrupted_per_row,
            key=key,
        )
        if self.start == "noise":
            return noise
        seed = int(jax.random.bits(key))
        rows = view(self._private_start(schema).rows(schema, measured, labels, seed))
        return replace(noise, start=np.where(noise.masks, rows, noise.start))

    def _class_weights(self, schema: Schema, measured: dict[str, Measurement]) -> np.ndarray:
        """Factors of the classes' losses; their mean over noisy rows is about one."""
        classes = len(schema.classes)
        if not self.weigh_classes:
            return np.ones(classes)
        shares, _ = class_weights(measured[COUNTS].values)
        return np.minimum(MOST_WEIGHT, 1 / (classes * np.maximum(shares, 1e-9)))

    def _labels(self, schema: Schema, measured: dict[str, Measurement], key: Array) -> np.ndarray:
        balanced, classes = self.balanced_labels(schema), len(schema.classes)
        if self.labels == "balanced":
            return balanced
        if self.labels == "shares":
            shares, _ = class_weights(measured[COUNTS].values)
            rest = apportion(shares, len(balanced) - classes)
            return np.sort(np.concatenate([np.arange(classes), rest]))
        return np.asarray(jax.random.randint(key, balanced.shape, 0, classes))

    def _learn(self, private: Private, regression: SupportRegression, seed: int) -> np.ndarray:
        """The learned rows after all steps, as the kernel sees them."""
        schema, support = private.schema, regression.support
        batch = self.rate(schema) * (schema.units or 1)
        divisor = batch * (self.clip if self.scaling == "free" else 1.0)
        source, state_of, gradient_of = self._mechanism(schema, regression, seed)
        steps = private.step_count(GRADIENT)
        schedule = rate_schedule(self.learning_rate, steps, self.decay)
        noise = private.noise_of(GRADIENT) / divisor
        optimiser = (
            optax.adam(schedule, eps=self._adam_epsilon(noise))
            if self.optimiser == "adam"
            else optax.sgd(schedule)
        )
        inside = self.domain == "schema" or (self.domain == "auto" and not schema.image)
        allowed = kept_to_domain(schema, support, regression.view) if inside else lambda free: free
        free = allowed(support.pick(support.start).astype(np.float32))
        state = optimiser.init(jnp.asarray(free))

        @jax.jit
        def update(gradient: Array, state: Any, free: Array) -> tuple[Array, Any]:
            change, state = optimiser.update(gradient, state, free)
            return optax.apply_updates(free, change), state

        with private.steps(GRADIENT, source) as ask:
            for _ in range(steps):
                noisy = ask({"parameters": state_of(free)})[0].values
                scaled = jnp.asarray(gradient_of(noisy, free) / divisor, jnp.float32)
                moved, state = update(scaled, state, jnp.asarray(free))
                free = allowed(np.asarray(moved))
        return support.place(free)

    def _adam_epsilon(self, noise: float) -> float:
        """Of gradients whose numbers carry noise of such a deviation."""
        if self.adam_epsilon != "auto":
            return self.adam_epsilon
        least = LEAST_ADAM * (1.0 if self.scaling == "free" else self.clip)
        return max(ADAM_DEVIATIONS * noise, least)

    def _mechanism(self, schema: Schema, regression: SupportRegression, seed: int) -> Any:
        """Where rows' gradients are taken: what clips and adds them up, the parameters they are taken
        at, and what turns their noisy sum into a gradient by the learned rows' free numbers."""
        if not self._in_features:
            source = self.kernel.gradients(schema, seed, regression)
            return source, lambda free: free, lambda noisy, free: noisy
        features, support = self.kernel.features(schema, seed), regression.support
        basis = np.eye(features.size)
        if self.directions < features.size:
            spread = regression.view.spread
            basis = feature_basis(features, schema, support.start, spread, self.directions, seed)
        unit = pulled_size(features, support.start, basis, seed)
        source = FeatureSpaceGradients(
            features=features,
            targets=support.targets,
            ridge=regression.ridge,
            class_weights=regression.class_weights,
            view=regression.view,
            basis=basis if basis.shape[1] < features.size else None,
        )

        def placed(free: np.ndarray) -> np.ndarray:
            return support.place(free).astype(np.float32)

        def state_of(free: np.ndarray) -> np.ndarray:
            return source.of_seen(placed(free)).ravel()

        def gradient_of(noisy: np.ndarray, free: np.ndarray) -> np.ndarray:
            """By the chain rule: what is clipped and noised in feature space is free from there on.
            Scaled so that noise is as large as if it had been added to the numbers themselves."""
            by_feature = noisy.reshape(len(support.start), -1) @ basis.T / unit
            return support.pick(pull_back(features, placed(free), by_feature.astype(np.float32)))

        return source, state_of, gradient_of
