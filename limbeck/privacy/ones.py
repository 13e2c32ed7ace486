"""Rows of which a map says where their ones are: in each of several blocks of features at most one is 1, all
others are 0. Rows with as many ones add the same whole numbers wherever these stand, so one row of each kind is
rounded, by the code that rounds any other, and the places are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ones:
    """The number of the feature that is 1 in each block, (rows, blocks); -1 for none."""

    at: np.ndarray
    size: int
    """Features of all blocks."""

    @classmethod
    def told(cls, places: np.ndarray, sizes: Sequence[int]) -> Ones:
        """What a map said, by the blocks' own numbers; a number that a block does not have is none."""
        starts = np.cumsum([0, *sizes])
        there = (places >= 0) & (places < np.asarray(sizes))
        return cls(np.where(there, places + starts[:-1], -1), int(starts[-1]))

    def kinds(self, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """A row's features for each kind of rows, what such a row counts for, and each row's kind."""
        ones, own = (self.at >= 0).sum(axis=1), None
        if weights is None:
            ones, kind = np.unique(ones, return_inverse=True)
        else:
            both, kind = np.unique(np.stack([ones, weights]), axis=1, return_inverse=True)
            ones, own = both
        return (np.arange(self.size) < ones[:, None]).astype(np.float64), own, kind.reshape(-1)

    def counted(self, adds: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
        """What all rows of a group add up to in each place, (groups, size), where each adds a whole number."""
        there = (self.at >= 0) & (groups >= 0)[:, None]
        place = np.where(
            there, self.at + (groups.astype(np.int64) * self.size)[:, None], count * self.size
        )
        each = np.broadcast_to(adds[:, None], place.shape).ravel()
        total = np.bincount(place.ravel(), each, count * self.size + 1)[:-1]
        return total.astype(np.int64).reshape(count, self.size)

    def features(self) -> np.ndarray:
        """The features themselves, (rows, size)."""
        made = np.zeros((len(self.at), self.size + 1), np.float32)
        np.put_along_axis(made, self.at, 1.0, axis=1)  # -1: the last one, which is none
        return made[:, :-1]
