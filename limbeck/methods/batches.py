"""Noisy gradients over Poisson batches, as methods plan and use them: rate and divisor follow from what the schema
declares."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ..errors import LimbeckError
from ..nets import moving_average, rate_schedule
from ..privacy import Gradients, Private
from ..schema import Schema


def modest_batch(batch: int, schema: Schema) -> int:
    """So many rows, or persons, but a tenth of the declared ones at most."""
    return min(batch, max(1, (schema.units or 0) // 10))


def batch_gradients(
    method: str, schema: Schema, *, name: str, batch: int, clip: float, size: int, count: int
) -> Gradients:
    """The question of so many steps' gradients, each over a batch of so many rows (or persons) on average.

    Args:
        method: Name of the method, for messages.
        schema: Declares how many rows, or persons, there are about: the rate must be public.
        name: Of the question.
        batch: Rows that a step draws, on average; persons, where they are protected.
        clip: Most by which a row moves a sum.
        size: Entries of a gradient.
        count: Number of steps.
    """
    units, noun = schema.units, "persons" if schema.person else "rows"
    if units is None:
        place = "'s [person]" if schema.person else ""
        raise LimbeckError(
            f"{method} draws batches by a public rate: declare an approximate number of "
            f"{noun} in the schema{place} ({noun} = ...)."
        )
    if batch > units:
        raise LimbeckError(
            f"A batch of {batch} is more than the {units} {noun} that the schema declares; choose "
            "a smaller batch."
        )
    return Gradients(
        name=name, clip=clip, size=size, rate=batch / units, rows=schema.rows or units, count=count
    )


def descended(
    private: Private,
    name: str,
    gradients: Any,
    numbers: Float[Array, " size"],
    *,
    unit: float,
    learning_rate: float,
    average: float,
    given: Callable[[Array, int], np.ndarray] = lambda numbers, step: np.asarray(numbers),
) -> Float[Array, " size"]:
    """The running mean of numbers that follow noisy gradients by Adam, its step size falling along half a cosine.

    Args:
        private: Answers the gradients.
        name: Of the question.
        gradients: The loss of a row, as `Gradients` takes it.
        numbers: Where to start.
        unit: What a noisy sum is divided by: public.
        learning_rate: Of the first step.
        average: Memory of the running mean; of few steps it is a plain mean.
        given: The state of a step: by default the numbers alone. Of gradients with further entries the first ones count.
    """
    steps, mean = private.step_count(name), numbers
    start, better = _descent(learning_rate, steps)
    state = start(numbers)
    with private.steps(name, gradients) as ask:
        for step in range(steps):
            (noisy,) = ask({"parameters": given(numbers, step)})
            slope = jnp.asarray(noisy.values[: len(numbers)] / unit, jnp.float32)
            trust = jnp.float32(min(average, step / (step + 1)))
            numbers, state, mean = better(numbers, state, mean, slope, trust)
    return mean


@functools.lru_cache(maxsize=8)
def _descent(learning_rate: float, steps: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The state to begin with, and a step with the running mean: compiled once."""
    optimiser = optax.adam(rate_schedule(learning_rate, steps))

    @jax.jit
    def better(numbers: Array, state: Any, mean: Array, slope: Array, trust: Array) -> Any:
        change, state = optimiser.update(slope, state)
        numbers = optax.apply_updates(numbers, change)
        return numbers, state, moving_average(mean, numbers, trust)

    return optimiser.init, better
