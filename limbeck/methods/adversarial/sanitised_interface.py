"""What a critic says to a generator, and no more: gradients at generated rows (GS-WGAN, algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...privacy import Turns

QUESTION = "teachers' turns"
"""Name of the question that every update asks."""
LEAST_NORM = 1e-12
"""Norm of a gradient below which it is not stretched."""


@dataclass(frozen=True, kw_only=True)
class SanitisedInterface:
    """The gradients of one critic at a batch of generated rows, put together to one vector, which is noised.

    Args:
        points: Generated rows.
        width: Numbers in a row's gradient.
        updates: Number of times that a critic is asked.
        teachers: Critics, who take turns.
        clip: Norm to which each row's gradient is shortened.
        stretched: Whether shorter ones are stretched to it.
    """

    points: int
    width: int
    updates: int
    teachers: int
    clip: float
    stretched: bool

    @property
    def ballot(self) -> Turns:
        """The question that is asked of the rows."""
        size = self.points * self.width
        return Turns(name=QUESTION, size=size, count=self.updates, teachers=self.teachers)

    def drawn(self, key: PRNGKeyArray) -> None:
        """Nothing: no answer needs randomness."""
        return None

    def answer(self, gradients: Float[Array, "points width"], draws: Any, number: Any = 0) -> Array:
        """One critic's gradients, each in parts of the clip, together of norm 1 at most."""
        norms = jnp.sqrt((gradients**2).sum(axis=1, keepdims=True))
        least = LEAST_NORM if self.stretched else self.clip
        return (gradients / jnp.maximum(norms, least)).ravel() / math.sqrt(self.points)

    def restore(self, tallies: Sequence[np.ndarray], draws: Any, answering: np.ndarray) -> Array:
        """The noisy gradients, (points, width); sees no critic."""
        gradients = tallies[0].reshape(self.points, self.width) * (
            self.clip * math.sqrt(self.points)
        )
        return jnp.asarray(gradients, jnp.float32)
