"""DPGradAgg: how the gradients of many teachers become one, privately (G-PATE, algorithm 1).

Each teacher projects its gradients at random to few coordinates, clips them, and votes for one bin of
values per coordinate. In the paper's way (Confident-GNMax) a coordinate becomes the middle of the bin
with most noisy votes, if enough teachers agree, and is projected back. Two ways are limbeck's own:
`histogram` takes the mean of the whole noisy histogram, which costs no more than its largest bin;
`directions` adds up the teachers' gradients themselves, made a vector of norm 1. About points of which a
teacher knows nothing it says nothing: it has no vote there, and no direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...draws import normal
from ...privacy import Ballot, Directions, Votes

AGGREGATIONS = ("confident-gnmax", "histogram", "directions")
QUESTION = "teachers' gradients"
"""Name of the question that every update asks."""
LEAST_NORM = 1e-12
"""Norm of a gradient below which it says nothing."""


@dataclass(frozen=True, kw_only=True)
class GradientAggregator:
    """The form of a teacher's answer, the question that adds answers up, and what is made of their
    noisy sum.

    Args:
        aggregation: confident-gnmax (the paper's), histogram or directions (limbeck's own).
        points: Rows whose gradients are asked for at once.
        width: Numbers in a row's gradient.
        projection: Coordinates that it is projected to; 0: it is not projected.
        updates: Number of times that teachers will be asked.
        clip: Largest coordinate that votes tell apart; what is beyond falls into the outermost bin.
        bins: Number of bins that a vote chooses from.
        threshold: Share of the teachers that must agree (confident-gnmax).
        threshold_share: Share of the budget for finding out whether they do (confident-gnmax).
        points_each: Points that one teacher answers about; 0: all.
    """

    aggregation: str
    points: int
    width: int
    projection: int
    updates: int
    clip: float
    bins: int
    threshold: float
    threshold_share: float
    points_each: int = 0

    @property
    def _kept(self) -> int:
        """Coordinates of a gradient that votes are about."""
        return self.projection or self.width

    @property
    def ballot(self) -> Ballot:
        """The question that is asked of the rows."""
        size = self.points * self._kept
        if self.aggregation == "directions":
            return Directions(name=QUESTION, size=size, count=self.updates)
        return Votes(
            name=QUESTION,
            coordinates=size,
            bins=self.bins,
            count=self.updates,
            most=self.points_each * self._kept,
            largest_share=self.threshold_share if self.aggregation == "confident-gnmax" else 0.0,
        )

    def drawn(self, key: PRNGKeyArray) -> Array | None:
        """A fresh matrix (width, kept) for every point, of entries N(0, 1/kept)."""
        if not self.projection:
            return None
        shape = (self.points, self.width, self._kept)
        return normal(key, shape) / math.sqrt(self._kept)

    def answer(self, gradients: Float[Array, "points width"], draws: Any, number: Any = 0) -> Array:
        """One teacher's answer: a vector of norm 1 at most, or the number of a bin per coordinate, -1
        where it has no vote."""
        norms = jnp.sqrt((gradients**2).sum(axis=1, keepdims=True))
        knows = norms > LEAST_NORM
        if draws is not None:
            gradients = jnp.einsum("pw,pwk->pk", gradients, draws)
        if self.aggregation == "directions":
            # A direction for every point that the teacher knows something about, together of norm 1.
            norms = jnp.sqrt((gradients**2).sum(axis=1, keepdims=True))
            known = jnp.maximum((norms > LEAST_NORM).sum(), 1)
            return (gradients / jnp.maximum(norms, LEAST_NORM) / jnp.sqrt(known)).ravel()
        inside = jnp.clip(jnp.nan_to_num(gradients), -self.clip, self.clip)
        voted = jnp.floor((inside / self.clip + 1) / 2 * self.bins).astype(jnp.int32)
        return jnp.where(knows, jnp.minimum(voted, self.bins - 1), -1).ravel()

    def restore(self, tallies: Sequence[np.ndarray], draws: Any, answering: np.ndarray) -> Array:
        """Noisy answers, added up, to one gradient per point, (points, width); sees no teacher.

        Args:
            tallies: The noisy sum or histograms; of confident-gnmax, their noisy largest counts first.
            draws: The projections that teachers used.
            answering: How many teachers answer about each point; public.
        """
        each = np.repeat(np.asarray(answering, np.float64), self._kept)
        if self.aggregation == "directions":
            # One scale for all: dividing by few teachers would blow up the noise of their points.
            mean = tallies[0].ravel() * math.sqrt(self.points_each or self.points) / each.max()
        elif self.aggregation == "histogram":
            mean = tallies[0] @ self.middles / each
        else:
            largest, votes = tallies
            bins = confident_gnmax(largest.ravel(), votes, self.threshold * each)
            mean = np.where(bins < 0, 0.0, self.middles[bins])
        kept = jnp.asarray(mean.reshape(self.points, self._kept), jnp.float32)
        return kept if draws is None else jnp.einsum("pk,pwk->pw", kept, draws)

    @property
    def middles(self) -> np.ndarray:
        """The middle of each bin."""
        return self.clip * ((2 * np.arange(self.bins) + 1) / self.bins - 1)


def confident_gnmax(
    largest: np.ndarray, votes: np.ndarray, threshold: float | np.ndarray
) -> np.ndarray:
    """The bin with most noisy votes, or -1 where the largest count, noisy too, misses the threshold.

    Args:
        largest: Noisy largest count of each histogram.
        votes: Noisy histograms (coordinates, bins), with noise of their own.
        threshold: Votes that are needed, for each histogram or for all alike.

    >>> confident_gnmax(np.array([9.0, 2.0]), np.array([[1.0, 8.0], [2.0, 1.0]]), 5.0).tolist()
    [1, -1]
    """
    return np.where(largest >= threshold, votes.argmax(axis=1), -1)
