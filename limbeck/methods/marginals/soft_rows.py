"""A table as a mixture of soft rows. A soft row gives, for every column, the probabilities of groups of
the column's cells; a row is drawn from one soft row, its columns independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...features import table_cells
from ...schema import Schema
from ..apportion import apportion


@dataclass(frozen=True, kw_only=True)
class SoftRows:
    """Soft rows of each class, and how likely each cell is within its group; rows are drawn from them.

    Draws are stratified: the rows drawn from one soft row, and the cells within a group, come in
    their proportions, to the nearest row. So a sample's marginals stray less than those of
    independent draws.
    """

    soft: np.ndarray
    """Probabilities of groups, (classes, soft rows, groups); those of each column sum to one."""
    groups: np.ndarray
    """The group of each cell, (cells,), numbered through all columns."""
    within: np.ndarray
    """Probability of each cell among those of its group, (classes, cells)."""
    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""
    grid: int
    """Number of cells of a number with more values than that."""

    kind = "softrows"

    def draw(self, schema: Schema, rows: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells (rows, columns) and label codes (rows,), classes in their noisy proportions."""
        rng = np.random.default_rng(seed)
        labels = apportion(self.class_weights, rows)
        cells = np.empty((rows, len(schema.inputs)), np.float32)
        columns = table_cells(schema, self.grid)
        ends = np.cumsum([c.count for c in columns])
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            origins = _even_origins(self.soft.shape[1], len(at), rng)
            for i, (column, end) in enumerate(zip(columns, ends, strict=True)):
                place = slice(end - column.count, end)
                codes = self._drawn_codes(label, place, origins, rng)
                cells[at, i] = column.draw(codes, rng)
        order = rng.permutation(rows)
        return cells[order], labels[order]

    def _drawn_codes(
        self, label: int, place: slice, origins: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """For each row the number of its cell in one column.

        Args:
            label: Code of the rows' class.
            place: Where the column's cells stand among those of all columns.
            origins: The soft row of each row, (rows,), sorted.
            rng: Draws.
        """
        groups, within = self.groups[place], self.within[label, place]
        first, last = int(groups.min()), int(groups.max())
        chances = self.soft[label, :, first : last + 1].astype(np.float64)
        picked = first + _stratified(chances, origins, rng)
        codes = np.empty(len(origins), np.int64)
        for group in np.unique(picked):
            rows, members = np.flatnonzero(picked == group), np.flatnonzero(groups == group)
            steps = (rng.permutation(len(rows)) + rng.random()) / len(rows)
            edges = np.cumsum(within[members])
            found = np.searchsorted(edges, steps * edges[-1], side="right")
            codes[rows] = members[np.minimum(found, len(members) - 1)]
        return codes

    def facts(self) -> dict[str, Any]:
        return {"grid": self.grid}

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "soft": self.soft,
            "groups": self.groups,
            "within": self.within,
            "class_weights": self.class_weights,
        }

    @classmethod
    def load(cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> SoftRows:
        return cls(**arrays, grid=facts["grid"])


def _even_origins(soft_rows: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """The soft row that each row is drawn from, sorted: all of them equally often, to the nearest row."""
    return np.sort(rng.permutation(soft_rows)[np.arange(rows) % soft_rows])


def _stratified(chances: np.ndarray, origins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw for each row from its soft row's chances, (rows,).

    The rows of one soft row divide the interval from 0 to 1 into even steps, and each takes the
    value in whose part of the cumulated chances its step falls.
    """
    times = np.bincount(origins, minlength=len(chances))
    shuffled = np.lexsort((rng.random(len(origins)), origins))
    rank = np.empty(len(origins), np.int64)
    rank[shuffled] = np.arange(len(origins)) - (np.cumsum(times) - times)[origins]
    steps = (rank + rng.random(len(chances))[origins]) / times[origins]
    edges = np.cumsum(chances, axis=1)
    picked = (steps[:, None] * edges[origins, -1:] >= edges[origins]).sum(axis=1)
    return np.minimum(picked, chances.shape[1] - 1)
