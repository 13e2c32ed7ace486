"""TopAgg: teachers' gradients, each compressed to the signs of its largest coordinates (DataLens, algorithm 2).

A teacher names, for each row in question, the coordinates in which its gradient is largest, and the sign of each. Signs
are added up over teachers, with noise. Either only coordinates on which enough of them agree are kept, with their sign
alone, as in the paper; or noisy sums are taken as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...privacy import Directions

QUESTION = "teachers' signs"
"""Name of the question that every update asks."""
LEAST_SLOPE = 1e-12
"""Size of a coordinate below which it has no sign."""


@dataclass(frozen=True, kw_only=True)
class CompressedSigns:
    """The form of a teacher's answer, the question that adds answers up, and what is made of their
    noisy sum.

    Args:
        points: Rows whose gradients are asked for at once.
        points_each: Points that one teacher answers about; 0: all.
        width: Numbers in a row's gradient.
        kept: Coordinates of it that a teacher names.
        updates: Number of times that teachers will be asked.
        stochastic: Whether a sign is drawn by the size of its coordinate, so that it is right on average.
        threshold: Share of the teachers by which one sign must be ahead; 0: sums are taken as they are.
    """

    points: int
    points_each: int
    width: int
    kept: int
    updates: int
    stochastic: bool
    threshold: float

    @property
    def ballot(self) -> Directions:
        """The question that is asked of the rows."""
        return Directions(name=QUESTION, size=self.points * self.width, count=self.updates)

    @property
    def signs(self) -> int:
        """Signs in one teacher's answer, at most."""
        return (self.points_each or self.points) * self.kept

    def drawn(self, key: PRNGKeyArray) -> Array | None:
        """The public key of the draws of signs."""
        return jax.random.key_data(key) if self.stochastic else None

    def answer(self, gradients: Float[Array, "points width"], draws: Any, number: Any = 0) -> Array:
        """One teacher's answer: signs, in all of norm 1 at most."""
        sizes = jnp.abs(jnp.nan_to_num(gradients))
        least = jax.lax.top_k(sizes, self.kept)[0][:, -1:]
        large = (sizes >= least) & (sizes > LEAST_SLOPE)
        # Of equal coordinates at the border the first ones are taken, so that there are never more.
        large &= jnp.cumsum(large, axis=1) <= self.kept
        if self.stochastic:
            own = jax.random.fold_in(jax.random.wrap_key_data(draws), number)
            largest = jnp.maximum(sizes.max(axis=1, keepdims=True), LEAST_SLOPE)
            signs = jnp.sign(
                gradients / largest - jax.random.uniform(own, gradients.shape, minval=-1.0)
            )
        else:
            signs = jnp.sign(gradients)
        return jnp.where(large, signs, 0.0).ravel() / math.sqrt(self.signs)

    def restore(self, tallies: Sequence[np.ndarray], draws: Any, answering: np.ndarray) -> Array:
        """The noisy sum of signs to one gradient per point, (points, width); sees no teacher."""
        shares = tallies[0].reshape(self.points, self.width) * math.sqrt(self.signs)
        # One scale for all: dividing by few teachers would blow up the noise of their points.
        if not self.threshold:
            return jnp.asarray(shares / np.max(answering), jnp.float32)
        shares = shares / np.asarray(answering, np.float64)[:, None]
        agreed = np.where(np.abs(shares) >= self.threshold, np.sign(shares), 0.0)
        return jnp.asarray(agreed, jnp.float32)
