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

from ...errors import LimbeckError, fraction, positive
from ...nets import Generator, build_generator, moving_average
from ...privacy import Asked, Gradients, Histogram, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress, check_values_declared
from ..class_counts import COUNTS, class_weights
from ..source import trained_source
from .discriminator import FlatDiscriminator

GRADIENT = "discriminator's gradient"
"""Name of the question that every step of the discriminator asks."""
MOMENTUM = 0.5
"""Of both sides' Adam, as GANs have it."""


@dataclass(frozen=True, kw_only=True)
class AbstractPrivateGAN(AbstractMethod):
    """A generator and a discriminator, which alone learns from rows; those that derive from it say by
    which loss."""

    family: ClassVar[str] = "adversarial"
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
    learning_rate: float = 1e-3
    """Step size of the generator's Adam."""
    code: int = 20
    """Latent numbers that the generator makes a row from."""
    hidden: tuple[int, ...] = (200,)
    """Widths of the generator's dense layers."""
    average: float = 0.9
    """Memory of the running mean of generators that is released; 0: the last one is."""
    count_share: float = 0.02
    """Share of the budget for the class counts."""

    def __post_init__(self) -> None:
        positive(
            steps=self.steps,
            batch=self.batch,
            clip=self.clip,
            discriminator_steps=self.discriminator_steps,
            discriminator_rate=self.discriminator_rate,
            learning_rate=self.learning_rate,
            code=self.code,
            hidden=len(self.hidden),
            **{f"hidden[{i}]": w for i, w in enumerate(self.hidden)},
            **{f"discriminator_hidden[{i}]": w for i, w in enumerate(self.discriminator_hidden)},
        )
        fraction(count_share=self.count_share)
        if not 0 <= self.average < 1:
            raise LimbeckError(f"Expected 0 <= average < 1, got {self.average}.")

    def discriminator(self, schema: Schema) -> FlatDiscriminator:
        """The network that tells real rows from generated ones."""
        return FlatDiscriminator(
            width=schema.slots,
            classes=len(schema.classes),
            hidden=self.discriminator_hidden,
            loss=self.loss,
        )

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        if schema.rows is None:
            raise LimbeckError(
                f"{self.name} draws batches by a public rate: declare an approximate number of "
                "rows in the schema (rows = ...)."
            )
        if self.batch > schema.rows:
            raise LimbeckError(
                f"A batch of {self.batch} is more than the {schema.rows} rows that the schema "
                "declares; choose a smaller batch."
            )
        gradient = Gradients(
            name=GRADIENT,
            clip=self.clip,
            size=self.discriminator(schema).size,
            rate=self.batch / schema.rows,
            rows=schema.rows,
            count=self.steps,
        )
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    def limited(self, numbers: Array) -> Array:
        """The discriminator's numbers after a step, kept within what the loss wants."""
        return numbers

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        counts = private.ask(COUNTS).values
        weights, size = class_weights(counts)
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        build_key, play_key, norm_key = jax.random.split(jax.random.key(seed), 3)
        generator = build_generator(schema, settings, key=build_key)
        generator = self._play(private, generator, np.asarray(weights), play_key)
        return Product(
            source=trained_source(generator, settings, weights, key=norm_key),
            rows=schema.rows or max(1, round(size)),
            measurements={COUNTS: counts},
        )

    def _play(
        self, private: Private, generator: Generator, weights: np.ndarray, key: Array
    ) -> Generator:
        """The generator after all steps."""
        schema = private.schema
        judge, chances = self.discriminator(schema), jnp.asarray(weights, jnp.float32)
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
