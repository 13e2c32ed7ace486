"""A mixture of round Gaussians on a grid, drawn rather than read: its true density is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .registry import entry


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Gaussians of one deviation at the whole numbers of a square; classes follow each other.

    >>> mixture = Mixture(side=5, classes=5, deviation=0.2, each=2, seed=0)
    >>> mixture.labels.reshape(5, 5)[:2].tolist()
    [[0, 1, 2, 3, 4], [2, 3, 4, 0, 1]]
    """

    side: int
    classes: int
    deviation: float
    each: int
    """Points of every Gaussian."""
    seed: int

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Mixture:
        """As the registry describes it."""
        return cls(**options)

    @classmethod
    def named(cls, name: str) -> Mixture:
        """That of a data set of the registry."""
        return cls.from_options(entry(name).sources[0].options)

    @property
    def means(self) -> np.ndarray:
        """(components, 2)."""
        return np.stack(np.divmod(np.arange(self.side**2), self.side), axis=1).astype(np.float64)

    @property
    def labels(self) -> np.ndarray:
        """Classes of the components: along a row one after another, each row two on."""
        row, place = np.divmod(np.arange(self.side**2), self.side)
        return (place + 2 * row) % self.classes

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (rows, 2) and their classes, always the same ones."""
        rng = np.random.RandomState(self.seed)  # its stream is frozen
        noise = rng.standard_normal((self.side**2 * self.each, 2))
        points = np.repeat(self.means, self.each, axis=0) + self.deviation * noise
        return points, np.repeat(self.labels, self.each)
