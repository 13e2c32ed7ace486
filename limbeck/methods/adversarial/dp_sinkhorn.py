"""DP-Sinkhorn: a generator that follows sanitised gradients of optimal transport (Cao et al. 2021).

No network judges rows. Each step generates some rows and draws a batch; the debiased Sinkhorn loss between them says where each
generated row should go. That gradient alone is clipped, noised and paid for; what the generator makes of it is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ...draws import normal
from ...errors import LimbeckError, not_negative, positive
from ...nets import Generator, moving_average
from ...privacy import BatchGradient, Private
from ...schema import Schema
from ..apportion import apportion
from ..batches import batch_gradients
from .learned_generator import MOMENTUM, AbstractLearnedGenerator
from .sinkhorn import SinkhornGradient, low_frequencies

GRADIENT = "gradient of generated rows"
"""Name of the question that every step asks."""


@dataclass(frozen=True, kw_only=True)
class DPSinkhorn(AbstractLearnedGenerator):
    """A generator whose rows, with their labels, are moved towards a batch by optimal transport.

    Privacy:
        Each step measures one vector of a whole Poisson batch: the gradient of the Sinkhorn loss by the generated
        rows. A row's part in it cannot be told apart, so the vector is clipped to norm `clip`, and a row more
        or less may move it by 2 x `clip`, which is charged. Discrete Gaussian noise. Events: Poisson-sampled
        Gaussians, as many as there are steps, and one Gaussian for the class counts. Sampling is credited under
        add/remove alone, where it holds for any clipped function of a batch; an empty batch is a step like any other,
        which the published program leaves out.
    """

    name: ClassVar[str] = "dp-sinkhorn"
    good_for: ClassVar[str] = (
        "a yardstick: a generator by optimal transport, with much data and budget"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "T. Cao, A. Bie, A. Vahdat, S. Fidler, K. Kreis. Don't Generate Me: Training Differentially Private "
        "Generative Models with Sinkhorn Divergence. NeurIPS 2021.",
    )

    steps: int = 1500
    """Steps, each of which is paid for."""
    batch: int = 300
    """Rows that a step draws, on average."""
    points: int = 40
    """Rows that are generated for a step. Noise grows with the root of their number."""
    clip: float = 0.5
    """Norm to which a step's gradient is clipped."""
    detail: int = 10
    """Frequencies along each side of a picture in which gradients are measured; noise grows with it. 0: every
    pixel, as published. Of tables every slot is measured."""
    entropy: float = 0.5
    """Weight of the transport's entropy, in units of the squared distance of rows with slots in [0, 1]."""
    rounds: int = 30
    """Sinkhorn iterations."""
    class_cost: float = 100.0
    """What it costs to carry a row to another class."""
    absolute: float = 0.0
    """Weight of absolute distances beside squared ones."""
    fresh: float = 0.2
    """Share of the generated rows that are made anew where the loss compares generated rows with each other."""
    code: int = 12
    """Latent numbers that the generator makes a row from."""
    average: float = 0.98
    """Memory of the running mean of generators that is released; 0: the last one is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(steps=self.steps, batch=self.batch, points=self.points, clip=self.clip)
        positive(entropy=self.entropy, rounds=self.rounds)
        not_negative(detail=self.detail, class_cost=self.class_cost, absolute=self.absolute)
        if not 0 <= self.fresh <= 1:
            raise LimbeckError(f"Expected 0 <= fresh <= 1, got {self.fresh}.")

    def gradient(self, schema: Schema) -> SinkhornGradient:
        """What is measured of a batch."""
        smooth = schema.image is not None and self.detail
        return SinkhornGradient(
            points=self.points,
            slots=schema.slots,
            entropy=self.entropy,
            rounds=self.rounds,
            class_cost=self.class_cost,
            absolute=self.absolute,
            basis=low_frequencies(schema.image.shape, self.detail)
            if smooth and schema.image
            else None,
        )

    def lesson(self, schema: Schema) -> BatchGradient:
        source = self.gradient(schema)
        sampled = batch_gradients(
            self.name,
            schema,
            name=GRADIENT,
            batch=self.batch,
            clip=self.clip,
            size=source.size,
            count=self.steps,
        )
        return BatchGradient(**vars(sampled) | {"parameters": source.parameters})

    def learned(
        self, private: Private, generator: Generator, weights: np.ndarray, key: Array
    ) -> Generator:
        source = self.gradient(private.schema)
        labels = jnp.asarray(apportion(weights, self.points))
        again = np.arange(self.points) < round(self.fresh * self.points)
        learned, rest = eqx.partition(generator, eqx.is_inexact_array)
        state, mean = self._improve.init(learned), learned
        with private.steps(GRADIENT, source) as ask:
            for now in jax.random.split(key, private.step_count(GRADIENT)):
                rows, others = np.split(np.asarray(self._shown(learned, rest, labels, now)), 2)
                others = np.where(again[:, None], others, rows)
                (noisy,) = ask({"parameters": source.flat(rows, others, labels)})
                slope = jnp.asarray(source.in_slots(noisy.values), jnp.float32)
                learned, state, mean = self._better(learned, rest, state, mean, labels, slope, now)
        return eqx.combine(mean, rest)

    # ---- programs, compiled once for equal settings -------------------------------------------------------------

    @property
    def _improve(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate, b1=MOMENTUM)

    def _generated(self, learned: Any, rest: Any, labels: Array, key: Array) -> Array:
        """Generated rows, and as many again with the same labels."""
        codes = normal(key, (2 * self.points, self.code))
        return eqx.combine(learned, rest)(codes, jnp.tile(labels, 2), [])

    @eqx.filter_jit
    def _shown(self, learned: Any, rest: Any, labels: Array, key: Array) -> Array:
        return self._generated(learned, rest, labels, key)

    @eqx.filter_jit
    def _better(
        self,
        learned: Any,
        rest: Any,
        state: Any,
        mean: Any,
        labels: Array,
        slope: Array,
        key: Array,
    ) -> tuple[Any, Any, Any]:
        """The generator's numbers, its optimiser's state, and the running mean, after a step along the slope."""

        def along(learned: Any) -> Array:
            return (self._generated(learned, rest, labels, key)[: self.points] * slope).sum()

        change, state = self._improve.update(jax.grad(along)(learned), state)
        learned = optax.apply_updates(learned, change)
        return learned, state, moving_average(mean, learned, self.average)
