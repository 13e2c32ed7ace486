"""How far rows lie from each other, as a paid question: the scale at which a kernel should look at them."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..class_counts import class_weights

DISTANCE = "typical distance"
"""Name of the question that measures it."""
LEAST_DISTANCE = 0.05
"""Smallest typical distance, in parts of the largest that two rows can have: noise must not make it nothing."""


class DistanceFeatures(eqx.Module):
    """Features of a row whose mean gives the mean squared distance of two rows: where it lies, seen from the
    middle of all that can be, and the square of that; together of norm 1 at most."""

    weights: Float[Array, " slots"]
    """Factor of each slot in a distance."""
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return len(self.weights) + 1

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        # No slot is farther than a half from the middle, so no row farther than half the weights' norm.
        place = 2 * (rows - 0.5) * self.weights / jnp.sqrt((self.weights**2).sum())
        square = (place**2).sum(axis=1, keepdims=True)
        return jnp.concatenate([place, square], axis=1) / jnp.sqrt(2.0)


def typical_distance(
    sums: np.ndarray, counts: np.ndarray, noise: float, weights: np.ndarray
) -> float:
    """The root of the mean squared distance of two rows, from noisy sums.

    Args:
        sums: Of `DistanceFeatures`, (size,).
        counts: Noisy number of rows of each class.
        noise: Standard deviation of the noise in each sum.
        weights: Factor of each slot in a distance.
    """
    rows = class_weights(counts)[1]
    means = np.sqrt(2) * np.asarray(sums, np.float64) / rows
    # Noise makes the mean's square larger by its own variance, slot by slot.
    bias = 2 * (len(means) - 1) * (noise / rows) ** 2
    squared = 2 * (means[-1] - max((means[:-1] ** 2).sum() - bias, 0.0))
    longest = float(np.sqrt((np.asarray(weights, np.float64) ** 2).sum()))
    # `squared` is in units of the square of half the longest distance.
    return longest * float(np.clip(np.sqrt(max(squared, 0.0)) / 2, LEAST_DISTANCE, 1.0))
