"""Poisson batches: every record enters a step by its own coin."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .._check import fraction, positive
from ._noise import Stream


class PoissonBatches:
    """Batches of a public, fixed shape; one that overflows comes in several pieces, never cut.

    Args:
        probability: With which each record enters a step.
        rows: Public, approximate number of records; sets the shape and nothing else.
    """

    def __init__(self, probability: float, rows: int) -> None:
        if probability != 1:
            fraction(sampling=probability)
        positive(rows=rows)
        mean = probability * rows
        self.probability = probability
        self.shape = max(1, math.ceil(mean + 3 * math.sqrt(mean)))

    def draw(self, stream: Stream, rows: int) -> Iterator[np.ndarray]:
        """Indices of one step's batch in pieces of at most `shape`; none at all for an empty one."""
        chosen = np.flatnonzero(stream.bernoulli(self.probability, rows))
        for start in range(0, len(chosen), self.shape):
            yield chosen[start : start + self.shape]
