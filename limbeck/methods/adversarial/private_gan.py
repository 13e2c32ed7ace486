"""What DP-GAN and DP-CGAN have in common: a discriminator of noisy gradients, and a generator it teaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from ...errors import positive
from ...nets import Generator, moving_average
from ...privacy import Gradients, Private
from ...schema import Schema
from ..batches import batch_gradients
from .discriminator import FlatDiscriminator
from .learned_generator import MOMENTUM, AbstractLearnedGenerator

GRADIENT = "discriminator's gradient"
"""Name of the question that every step of the discriminator asks."""


@dataclass(frozen=True, kw_only=True)
class AbstractPrivateGAN(AbstractLearnedGenerator):
    """A generator and a discriminator, which alone learns from rows; those that derive from it say by
    which loss."""

    loss: ClassVar[str]
    """The discriminator's: logistic or wasserstein."""

    steps: int = 1000
    """Steps of the discriminator, each of which is paid for."""
    batch: int = 500
    """Rows that a step draws, on average; as many are generated beside them."""
    clip: float = 1.0
    """Largest norm of a row's gradient."""
    discriminator_steps: int = 5
    """Steps of the discriminator for each one of the generator."""
    discriminator_rate: float = 1e-3
    """Step size of the discriminator's Adam."""
    discriminator_hidden: tuple[int, ...] = (64,)
    """Widths of the discriminator's hidden layers. Noise grows with the root of its numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(
            steps=self.steps,
            batch=self.batch,
            clip=self.clip,
            discriminator_steps=self.discriminator_steps,
            discriminator_rate=self.discriminator_rate,
            **{f"discriminator_hidden[{i}]": w for i, w in enumerate(self.discriminator_hidden)},
        )

    def discriminator(self, schema: Schema) -> FlatDiscriminator:
        """The network that tells real rows from generated ones."""
        return FlatDiscriminator(
            width=schema.slots,
            classes=len(schema.classes),
            hidden=self.discriminator_hidden,
            loss=self.loss,
        )

    def lesson(self, schema: Schema) -> Gradients:
        return batch_gradients(
            self.name,
            schema,
            name=GRADIENT,
            batch=self.batch,
            clip=self.clip,
            size=self.discriminator(schema).size,
            count=self.steps,
        )

    def limited(self, numbers: Array) -> Array:
        """The discriminator's numbers after a step, kept within what the loss wants."""
        return numbers

    def learned(
        self, private: Private, generator: Generator, weights: np.ndarray, key: Array
    ) -> Generator:
        judge, chances = self.discriminator(private.schema), jnp.asarray(weights, jnp.float32)
        start_key, step_key = jax.random.split(key)
        numbers = judge.start(start_key)
        learned, rest = eqx.partition(generator, eqx.is_inexact_array)
        judged, taught = self._sharpen.init(numbers), self._improve.init(learned)
        mean = learned
        with private.steps(GRADIENT, judge.real_loss) as ask:
            for step, now in enumerate(jax.random.split(step_key, private.step_count(GRADIENT))):
                noisy = ask({"parameters": np.asarray(numbers)})[0].values
                real = jnp.asarray(noisy / self.batch, jnp.float32)
                numbers, judged = self._judge_better(
                    judge, rest, numbers, judged, learned, chances, real, now
                )
                if (step + 1) % self.discriminator_steps == 0:
                    again = jax.random.fold_in(now, 1)
                    learned, taught, mean = self._make_better(
                        judge, rest, learned, taught, mean, numbers, chances, again
                    )
        return eqx.combine(mean, rest)

    # ---- programs, compiled once for equal settings: noisy class shares are arguments, no constants -------------

    @property
    def _sharpen(self) -> optax.GradientTransformation:
        return optax.adam(self.discriminator_rate, b1=MOMENTUM)

    @property
    def _improve(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate, b1=MOMENTUM)

    def _generated(self, learned: Any, rest: Any, chances: Array, key: Array) -> tuple[Any, Any]:
        """Rows of the generator, and their labels."""
        code_key, label_key = jax.random.split(key)
        labels = jax.random.choice(label_key, len(chances), (self.batch,), p=chances)
        codes = jax.random.normal(code_key, (self.batch, self.code))
        return eqx.combine(learned, rest)(codes, labels, []), labels

    @eqx.filter_jit
    def _judge_better(
        self,
        judge: FlatDiscriminator,
        rest: Any,
        numbers: Array,
        state: Any,
        learned: Any,
        chances: Array,
        real: Array,
        key: Array,
    ) -> tuple[Array, Any]:
        """The discriminator's numbers, and its optimiser's state, after a step by the rows' noisy gradient."""
        rows, labels = self._generated(learned, rest, chances, key)
        slope = real + judge.generated_gradient(numbers, rows, labels, self.clip)
        change, state = self._sharpen.update(slope, state)
        return self.limited(optax.apply_updates(numbers, change)), state

    @eqx.filter_jit
    def _make_better(
        self,
        judge: FlatDiscriminator,
        rest: Any,
        learned: Any,
        state: Any,
        mean: Any,
        numbers: Array,
        chances: Array,
        key: Array,
    ) -> tuple[Any, Any, Any]:
        """The generator's numbers, its optimiser's state, and the running mean, after a step by the discriminator."""

        def seems_generated(learned: Any) -> Array:
            rows, labels = self._generated(learned, rest, chances, key)
            return jax.vmap(judge.real_loss, (None, 0, 0))(numbers, rows, labels).mean()

        change, state = self._improve.update(jax.grad(seems_generated)(learned), state)
        learned = optax.apply_updates(learned, change)
        return learned, state, moving_average(mean, learned, self.average)
