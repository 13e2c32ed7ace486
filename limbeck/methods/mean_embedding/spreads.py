"""Private means and spreads of numbers: where they really lie, if the declared range is too wide."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...arrays import AnyArray
from ...features import Axes, Places
from ..class_counts import class_weights

SPREADS = "means and spreads"
"""Name of the question that measures them."""
RANGE_DEVIATIONS = 4.0
"""Standard deviations that a column's range is taken to span."""
LEAST_RANGE = 0.02
"""Smallest range, in units of the declared one: noise must not make it nothing."""


class NumbersAndSquares(eqx.Module):
    """Features of a row whose mean gives each number's mean and spread: the number, counted from the
    middle of its declared range, and its square; together scaled to a norm of at most 1."""

    places: Places
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return 2 * self.places.columns

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        slots = np.asarray(self.places.values)
        # From -1 to 1: then a number and its square have a norm of at most the root of 2.
        x = jnp.where(slots >= 0, 2 * rows[:, np.maximum(slots, 0)] - 1, 0.0)
        both = jnp.concatenate([x, x * x], axis=1)
        return both / jnp.sqrt(jnp.float32(self.size))


def axes_from(sums: np.ndarray, counts: np.ndarray) -> Axes:
    """Centre and range of each column.

    Args:
        sums: Noisy sums of `NumbersAndSquares`; those of categories and gaps mean nothing, and what
            they give is not used.
        counts: Noisy number of rows of each class.
    """
    columns = len(sums) // 2
    mean, square = sums.reshape(2, -1) * np.sqrt(2 * columns) / class_weights(counts)[1]
    spread = np.sqrt(np.maximum(square - mean**2, 0.0)) / 2
    return Axes(
        centre=jnp.asarray(np.clip((mean + 1) / 2, 0.0, 1.0), jnp.float32),
        unit=jnp.asarray(np.clip(RANGE_DEVIATIONS * spread, LEAST_RANGE, 1.0), jnp.float32),
        bent=True,
    )
