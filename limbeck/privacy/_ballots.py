"""What an ensemble of teachers may tell: votes per coordinate, or a sum of short vectors.

Each mechanism is one object with its charges: it says what is measured, how far one teacher can move
it, and counts the teachers' answers accordingly. All teachers answer always, those without rows too;
so a record more or less *changes* the answer of one teacher, it never removes one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._accountant import Charge
from ._sum import GridSum


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Every teacher names one bin per coordinate; noisy histograms come out.

    Privacy:
        One teacher that changes its mind takes a vote from one bin of a coordinate and gives one to
        another: the histograms move by sqrt(2 coordinates), their largest entries, which are a
        second measurement where wanted, by sqrt(coordinates). Both in L2.
    """

    name: str
    coordinates: int
    bins: int
    steps: int
    largest: bool = False
    """Whether the largest entries of the histograms are measured apart, for a threshold."""

    def charges(self) -> list[Charge]:
        votes = Charge(
            name=self.name,
            sensitivity=math.sqrt(2 * self.coordinates),
            coordinates=self.coordinates * self.bins,
            steps=self.steps,
        )
        if not self.largest:
            return [votes]
        most = Charge(
            name=f"{self.name}, the largest",
            sensitivity=math.sqrt(self.coordinates),
            coordinates=self.coordinates,
            steps=self.steps,
        )
        return [most, votes]

    def tally(self, answers: np.ndarray) -> np.ndarray:
        """Votes (teachers, coordinates) to counts (coordinates, bins); others than bins are void."""
        if answers.shape[1:] != (self.coordinates,) or answers.dtype.kind != "i":
            raise RuntimeError(f"'{self.name}': votes of shape {answers.shape[1:]}")
        place = np.arange(self.coordinates) * self.bins + answers
        valid = (answers >= 0) & (answers < self.bins)
        counts = np.bincount(place[valid], minlength=self.coordinates * self.bins)
        return counts.reshape(self.coordinates, self.bins)

    def sums(self, total: np.ndarray, noises: list[float]) -> list[tuple[GridSum, np.ndarray]]:
        """For each charge a grid and, on it, what is to be noised."""
        parts = [total.max(axis=1, keepdims=True), total] if self.largest else [total]
        grids = [
            GridSum(bound=1.0, noise=noise, groups=len(part), size=part.shape[1])
            for part, noise in zip(parts, noises, strict=True)
        ]
        return [(grid, part * grid.unit) for grid, part in zip(grids, parts, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Directions:
    """Every teacher answers with a vector, clipped to norm 1; their noisy sum comes out.

    Privacy:
        One teacher replaces its vector by another: the sum moves by at most 2, in L2.
    """

    name: str
    size: int
    steps: int
    noise: float = 0.0
    """Filled in from the charge: the grid, on which vectors are added, depends on it."""

    def charges(self) -> list[Charge]:
        return [
            Charge(name=self.name, sensitivity=2.0, coordinates=self.size, steps=self.steps),
        ]

    @property
    def _grid(self) -> GridSum:
        return GridSum(bound=1.0, noise=self.noise, groups=1, size=self.size)

    def tally(self, answers: np.ndarray) -> np.ndarray:
        """Vectors (teachers, size) to their sum (1, size) in grid steps."""
        return self._grid.accumulate(answers, np.zeros(len(answers), np.int64))

    def sums(self, total: np.ndarray, noises: list[float]) -> list[tuple[GridSum, np.ndarray]]:
        return [(self._grid, total)]


Ballot = Votes | Directions
