"""The generator as the teachers' student: what it asks, and how it follows the answers.

Everything here is post-processing: it sees generated rows and noisy answers, never a row of the data
and never a teacher.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from ...draws import normal
from ...nets import Generator, moving_average, rate_schedule
from .critic import Aggregator, Consultation


@dataclass(frozen=True, kw_only=True)
class Student:
    """How a generator learns.

    Args:
        points: Generated rows that one consultation is about.
        by_class: Whether teachers are asked for one direction per class, which will do where they
            are linear and say the same about all rows of a class; otherwise for one per row.
        code: Latent numbers that a row is generated from.
        learning_rate: Step size of Adam.
        momentum: Of Adam.
        cooling: Whether the step size falls to nothing along half a cosine.
        steps: Steps in all.
        average: Memory of the running mean of generators; 0: the mean is the last one.
    """

    points: int
    by_class: bool
    code: int
    learning_rate: float
    momentum: float
    cooling: bool
    steps: int
    average: float

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        rates = rate_schedule(self.learning_rate, self.steps, self.cooling)
        return optax.adam(rates, b1=self.momentum)

    def start(self, generator: Generator) -> Any:
        """The optimiser's state before the first step."""
        return self._optimiser.init(eqx.filter(generator, eqx.is_inexact_array))

    @eqx.filter_jit
    def consultation(
        self, aggregator: Aggregator, generator: Generator, phi: Any, key: PRNGKeyArray
    ) -> tuple[Array, Consultation]:
        """What to ask the teachers now, with the codes that the rows in it were generated from.

        Args:
            aggregator: Draws what answers need.
            generator: As it is now.
            phi: The features that teachers see rows by; None: rows as they are.
            key: For codes, labels and projections.
        """
        *row_keys, projection_key = jax.random.split(key, 3)
        codes, labels, rows = self.generated(generator, phi, *row_keys)
        draws = aggregator.drawn(projection_key)
        if not self.by_class:
            return codes, Consultation(rows, labels, rows, labels, draws)
        each = jnp.arange(generator.classes)
        nowhere = jnp.zeros(
            (len(each), rows.shape[1])
        )  # a linear teacher's slope is the same there
        return codes, Consultation(rows, labels, nowhere, each, draws)

    @eqx.filter_jit
    def generated(
        self, generator: Generator, phi: Any, code_key: PRNGKeyArray, label_key: PRNGKeyArray
    ) -> tuple[Array, Array, Array]:
        """Codes, labels, of each class as many, and rows as teachers see them."""
        codes = normal(code_key, (self.points, self.code))
        labels = jax.random.permutation(label_key, jnp.arange(self.points) % generator.classes)
        return codes, labels, seen_rows(generator, phi, codes, labels)

    @eqx.filter_jit
    def moved(
        self,
        generator: Generator,
        state: Any,
        phi: Any,
        codes: Array,
        labels: Array,
        directions: Array,
    ) -> tuple[Generator, Any]:
        """Generator and optimiser's state after one step: the slope is that of the squared distance
        between generated rows and the same rows moved in the teachers' directions."""
        weights, rest = eqx.partition(generator, eqx.is_inexact_array)
        _, pull = jax.vjp(lambda w: seen_rows(eqx.combine(w, rest), phi, codes, labels), weights)
        change, state = self._optimiser.update(pull(-directions)[0], state)
        return eqx.combine(optax.apply_updates(weights, change), rest), state

    @eqx.filter_jit
    def averaged(self, mean: Generator, now: Generator) -> Generator:
        """The running mean of generators, with the present one taken in."""
        return moving_average(mean, now, self.average)


def seen_rows(generator: Generator, phi: Any, codes: Array, labels: Array) -> Array:
    """Generated rows as teachers see them."""
    rows = generator(codes, labels, [])
    return rows if phi is None else phi(rows)
