"""A table as a mixture of soft rows: each says how likely every group of a column's cells is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...features import Cells, table_cells
from ...schema import Schema
from ..apportion import apportion


@dataclass(frozen=True, kw_only=True)
class SoftRows:
    """Soft rows per class, and how values lie within a group; rows are drawn from them.

    Draws are stratified: the rows that one soft row gives, and the values within a group, come in
    their proportions to the nearest row. So a sample's marginals stray less than independent draws.
    """

    soft: np.ndarray
    """(classes, soft rows, groups): for each column probabilities that sum to one."""
    groups: np.ndarray
    """The group of each cell, (cells,), numbered through all columns."""
    within: np.ndarray
    """(classes, cells): probability of a cell among those of its group."""
    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""
    grid: int
    """Cells of a number with many values."""

    kind = "softrows"

    def draw(self, schema: Schema, rows: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Slots (rows, slots) and label codes (rows,), classes in their noisy proportions."""
        rng = np.random.default_rng(seed)
        labels = apportion(self.class_weights, rows)
        cells = np.empty((rows, len(schema.inputs)), np.float32)
        columns = table_cells(schema, self.grid)
        ends = np.cumsum([c.count for c in columns])
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            source = _spread(self.soft.shape[1], len(at), rng)
            for i, (column, end) in enumerate(zip(columns, ends, strict=True)):
                cells[at, i] = self._column(
                    label, column, slice(end - column.count, end), source, rng
                )
        order = rng.permutation(rows)
        return schema.expand(cells[order]), labels[order]

    def _column(
        self,
        label: int,
        column: Cells,
        place: slice,
        source: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        groups, within = self.groups[place], self.within[label, place]
        first, last = int(groups.min()), int(groups.max())
        chances = self.soft[label, :, first : last + 1].astype(np.float64)
        picked = first + _stratified(chances, source, rng)
        codes = np.empty(len(source), np.int64)
        for group in np.unique(picked):
            rows, members = np.flatnonzero(picked == group), np.flatnonzero(groups == group)
            steps = (rng.permutation(len(rows)) + rng.random()) / len(rows)
            edges = np.cumsum(within[members])
            found = np.searchsorted(edges, steps * edges[-1], side="right")
            codes[rows] = members[np.minimum(found, len(members) - 1)]
        return column.draw(codes, rng)

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


def _spread(soft_rows: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """The soft row of each row, sorted: all equally often, to the nearest row."""
    return np.sort(rng.permutation(soft_rows)[np.arange(rows) % soft_rows])


def _stratified(chances: np.ndarray, source: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw for each row from its soft row's chances; those of one soft row in even steps."""
    times = np.bincount(source, minlength=len(chances))
    shuffled = np.lexsort((rng.random(len(source)), source))
    rank = np.empty(len(source), np.int64)
    rank[shuffled] = np.arange(len(source)) - (np.cumsum(times) - times)[source]
    steps = (rank + rng.random(len(chances))[source]) / times[source]
    edges = np.cumsum(chances, axis=1)
    picked = (steps[:, None] * edges[source, -1:] >= edges[source]).sum(axis=1)
    return np.minimum(picked, chances.shape[1] - 1)
