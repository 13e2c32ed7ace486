"""DPGradAgg: how the gradients of many teachers become one, privately (paper 003, algorithm 1).

Each teacher projects its gradient, clips it and votes for a bin per coordinate; the noisy
histograms name a bin (Confident-GNMax); the bins' middles are projected back. Two variants are
limbeck's own: `histogram` takes the mean of the whole noisy histogram, which costs no more than its
argmax; `sum` adds up the teachers' directions themselves.
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

from ...privacy import Ballot, Directions, Votes

AGGREGATIONS = ("sum", "histogram", "confident-gnmax")
NAME = "teachers' gradients"
FLOOR = 1e-12
"""Norm below which a gradient says nothing."""


@dataclass(frozen=True, kw_only=True)
class GradientAggregator:
    """What teachers answer with, the mechanism that counts it, and what is made of the tally.

    Args:
        aggregation: confident-gnmax (the paper's), histogram or sum (ours).
        teachers: How many answer.
        points: Generated rows whose gradients are asked for at once.
        width: Numbers in a row's gradient.
        projection: Coordinates it is projected to; 0: all of them.
        updates: How many questions there will be.
        clip: Largest coordinate; beyond it votes go to the outermost bin.
        bins: Of a histogram.
        threshold: Share of the teachers that must agree.
        threshold_share: Share of the budget for finding out whether they do.
    """

    aggregation: str
    teachers: int
    points: int
    width: int
    projection: int
    updates: int
    clip: float
    bins: int
    threshold: float
    threshold_share: float

    @property
    def _kept(self) -> int:
        return self.projection or self.width

    @property
    def ballot(self) -> Ballot:
        """The question that is asked of the rows."""
        size = self.points * self._kept
        if self.aggregation == "sum":
            return Directions(name=NAME, size=size, count=self.updates)
        return Votes(
            name=NAME,
            coordinates=size,
            bins=self.bins,
            count=self.updates,
            largest_share=self.threshold_share if self.aggregation == "confident-gnmax" else 0.0,
        )

    def projections(self, key: PRNGKeyArray) -> Array | None:
        """A fresh matrix (width, kept) for every point, of entries N(0, 1/kept)."""
        if not self.projection:
            return None
        shape = (self.points, self.width, self._kept)
        return jax.random.normal(key, shape) / math.sqrt(self._kept)

    def answer(self, gradients: Float[Array, "points width"], matrices: Any) -> Array:
        """One teacher's answer."""
        if matrices is not None:
            gradients = jnp.einsum("pw,pwk->pk", gradients, matrices)
        if self.aggregation == "sum":
            # A direction for every point that the teacher knows something about, together of norm 1.
            norms = jnp.sqrt((gradients**2).sum(axis=1, keepdims=True))
            known = jnp.maximum((norms > FLOOR).sum(), 1)
            return (gradients / jnp.maximum(norms, FLOOR) / jnp.sqrt(known)).ravel()
        inside = jnp.clip(jnp.nan_to_num(gradients.ravel()), -self.clip, self.clip)
        at = jnp.floor((inside / self.clip + 1) / 2 * self.bins).astype(jnp.int32)
        return jnp.minimum(at, self.bins - 1)

    def restore(self, tallies: Sequence[np.ndarray], matrices: Any) -> Array:
        """Noisy tallies to one gradient per point, (points, width); sees no teacher."""
        if self.aggregation == "sum":
            found = tallies[0].ravel() * math.sqrt(self.points) / self.teachers
        elif self.aggregation == "histogram":
            found = tallies[0] @ self.middles / self.teachers
        else:
            largest, votes = tallies
            bins = confident_gnmax(largest.ravel(), votes, self.threshold * self.teachers)
            found = np.where(bins < 0, 0.0, self.middles[bins])
        kept = jnp.asarray(found.reshape(self.points, self._kept), jnp.float32)
        return kept if matrices is None else jnp.einsum("pk,pwk->pw", kept, matrices)

    @property
    def middles(self) -> np.ndarray:
        """The middle of each bin."""
        return self.clip * ((2 * np.arange(self.bins) + 1) / self.bins - 1)


def confident_gnmax(largest: np.ndarray, votes: np.ndarray, threshold: float) -> np.ndarray:
    """The bin with most noisy votes, or -1 where the largest count, noisy too, misses the threshold.

    Args:
        largest: Noisy largest count of each histogram.
        votes: Noisy histograms (coordinates, bins), with noise of their own.
        threshold: Votes that are needed.

    >>> confident_gnmax(np.array([9.0, 2.0]), np.array([[1.0, 8.0], [2.0, 1.0]]), 5.0).tolist()
    [1, -1]
    """
    return np.where(largest >= threshold, votes.argmax(axis=1), -1)
