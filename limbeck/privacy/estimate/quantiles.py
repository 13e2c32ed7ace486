"""`Quantiles`: the bounds of a number within a wide range, by histograms that zoom in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data import Rows
from ...schema import Numeric, Schema
from ..map_spec import MapSpec
from ..measurement import Measurement
from ..question import Charges, Unit
from ..questions.histogram import CountedRows, Histogram

QUANTILE = 0.005
"""Share of the rows that may lie below the lower bound, and above the upper one."""
ZOOMS = 3
"""Histograms of a column."""
FIRST_BINS = 64
"""Equal bins of the first histogram, over the whole range."""
FINE_BINS = 32
"""Bins into which each of the two bins that hold a quantile is cut for the next one."""
MOST_BINS = max(FIRST_BINS, 2 * FINE_BINS + 3)
"""Bins of a later histogram: two fine ones, below, between and above them."""
SURELY = 4.5
"""Deviations of noise by which a bin's count must exceed zero to be taken for rows: some two hundred
bins of noise reach 3.5 in four runs of a hundred, 4.5 in less than one of a thousand."""


@dataclass(frozen=True, kw_only=True)
class ColumnHistogram(Histogram):
    """How many rows have a column's value between given edges; rows without a value, or without a
    declared label, count nowhere."""

    column: int
    """Place of the column among the inputs."""

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedCells:
        return CountedCells(*self.fitting(charges, unit, row_map), self.column)


class Edges(NamedTuple):
    """Bins of a column's encoded values in [0, 1]: public, chosen by earlier answers."""

    edges: np.ndarray

    @property
    def bins(self) -> int:
        return len(self.edges) - 1


def edges_map(schema: Schema, seed: int, edges: np.ndarray) -> Edges:
    """Bins between edges that an earlier answer chose, wherever they are asked for."""
    return Edges(edges)


EDGES = MapSpec(factory=f"{__name__}:edges_map")


@dataclass(frozen=True)
class CountedCells(CountedRows):
    """Counts rows by the value of one column."""

    column: int

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        return 1 << 16

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> np.ndarray:
        cells = batch.cells[:, self.column]
        index = np.searchsorted(row_map.edges, cells, side="right") - 1
        uncounted = np.isnan(cells) | (batch.labels < 0)
        return np.where(uncounted, -1, np.minimum(index, row_map.bins - 1))


@dataclass(frozen=True)
class Quantiles:
    """How a column's bounds are found: what is asked, and what each answer decides."""

    column: Numeric
    place: int
    """Of the column among the inputs."""

    @property
    def questions(self) -> tuple[ColumnHistogram, ...]:
        name = f"bounds of {self.column.name}"
        return tuple(
            ColumnHistogram(name=f"{name}/{zoom}", bins=MOST_BINS, column=self.place)
            for zoom in range(ZOOMS)
        )

    @staticmethod
    def start() -> np.ndarray:
        """Edges of the first histogram."""
        return np.linspace(0, 1, FIRST_BINS + 1)

    @staticmethod
    def zoom(edges: np.ndarray, answer: Measurement) -> tuple[float, float, np.ndarray]:
        """Where the two quantiles lie by a noisy histogram, and the edges to look closer with."""
        # Counts that noise alone may well produce are taken for none (its scale is public): one
        # such bin far out would be taken for the quantile's.
        counts = np.where(answer.values < SURELY * answer.noise, 0.0, answer.values)
        shares = np.cumsum(counts) / max(counts.sum(), 1e-9)
        low = int(np.searchsorted(shares, QUANTILE))
        high = min(int(np.searchsorted(shares, 1 - QUANTILE)), len(counts) - 1)
        low, high = (low, high) if counts.any() else (0, len(counts) - 1)
        cut = [np.linspace(edges[i], edges[i + 1], FINE_BINS + 1) for i in sorted({low, high})]
        finer = np.unique(np.concatenate([[0.0], *cut, [1.0]]))
        return float(edges[low]), float(edges[high + 1]), finer

    def bounds(self, bottom: float, top: float) -> tuple[float, float]:
        """Bounds in the column's own units, from places in its range."""
        low, high = self.column.range
        bounds = self.column.from_unit(np.asarray([bottom, top])).tolist()
        step = self.column.lattice
        if step is not None:  # whole steps from the lower end of the range, outwards
            bounds = [
                low + step * math.floor((bounds[0] - low) / step + 1e-6),
                low + step * math.ceil((bounds[1] - low) / step - 1e-6),
            ]
        return max(bounds[0], low), min(bounds[1], high)
