"""Private means and spreads of numbers: where their range lies, if the declared one is too wide."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...features import Axes, Places
from .embedding import class_weights

SPREADS = "means and spreads"
RANGE = 4.0
"""Standard deviations that a range is taken to have."""
NARROWEST = 0.02
"""Least range, in units of the declared one: noise must not make it nothing."""


class Moments(eqx.Module):
    """Each number, from the middle of its range, and its square; scaled to a norm of at most 1."""

    places: Places
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return 2 * self.places.columns

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        slots = np.asarray(self.places.values)
        # From -1 to 1: then a number and its square have a norm of at most the root of 2.
        x = jnp.where(slots >= 0, 2 * rows[:, np.maximum(slots, 0)] - 1, 0.0)
        both = jnp.concatenate([x, x * x], axis=1)
        return both / jnp.sqrt(jnp.float32(self.size))


def axes_from(sums: np.ndarray, counts: np.ndarray) -> Axes:
    """Centre and range of each column from noisy sums; categories and gaps may give any."""
    columns = len(sums) // 2
    mean, square = sums.reshape(2, -1) * np.sqrt(2 * columns) / class_weights(counts)[1]
    spread = np.sqrt(np.maximum(square - mean**2, 0.0)) / 2
    return Axes(
        centre=jnp.asarray(np.clip((mean + 1) / 2, 0.0, 1.0), jnp.float32),
        unit=jnp.asarray(np.clip(RANGE * spread, NARROWEST, 1.0), jnp.float32),
        bent=True,
    )
