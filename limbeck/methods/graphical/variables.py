"""The variables of a graphical model: columns cut into few groups of cells, and the class."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...features import Cells, group_cells, most_cells, table_cells
from ...features.cliques import cell_strides
from ...schema import Schema
from ..marginals.soft_fit import to_simplex
from .conditional_tables import ConditionalTable, draw_codes
from .fit_model import NoisyTable
from .junction_tree import Clique

FLOOR = 3.0
"""Rows that a group of cells should hold, in units of the noise of a count."""
MODEL_ROWS = 50_000
"""Rows drawn from a model to see what counts it expects."""


@dataclass(frozen=True)
class Variables:
    """What noisy counts of single columns and classes say about them.

    The class is the last variable, with a single value where the schema has no label.
    """

    columns: tuple[Cells, ...]
    groups: tuple[np.ndarray, ...]
    """For each column the group of each cell."""
    counts: tuple[np.ndarray, ...]
    """Noisy, non-negative counts of each column's cells, which add up to the rows."""
    classes: np.ndarray
    """Noisy, non-negative counts of the classes."""
    noise: float
    """Standard deviation of the noise in a cell's count."""

    @classmethod
    def of_counts(
        cls,
        schema: Schema,
        grid: int,
        most: int,
        singles: np.ndarray,
        classes: np.ndarray,
        noise: float,
    ) -> Variables:
        """Cut columns into groups that hold enough rows to be told from noise.

        Args:
            schema: The settled schema.
            grid: Cells of a number with more values than that.
            most: Groups of a column, at most.
            singles: Noisy counts of all columns' cells, (cells,).
            classes: Noisy counts of classes.
            noise: Standard deviation of the noise in a cell's count.
        """
        kept = np.maximum(classes, 0.0)
        rows = max(float(kept.sum()), 1.0)
        kept = (
            kept * (rows / kept.sum()) if kept.sum() > 0 else np.full(len(kept), rows / len(kept))
        )
        columns, counts, start = table_cells(schema, grid), [], 0
        for column in columns:
            counts.append(to_simplex(singles[start : start + column.count], rows))
            start += column.count
        groups = [
            group_cells(column, count, most=most, floor=FLOOR * noise)
            for column, count in zip(columns, counts, strict=True)
        ]
        return cls(columns, tuple(groups), tuple(counts), kept, noise)

    @property
    def rows(self) -> float:
        """Noisy number of rows, at least one."""
        return float(self.classes.sum())

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return (*(int(g.max()) + 1 for g in self.groups), len(self.classes))

    def singles(self) -> list[NoisyTable]:
        """Noisy counts of every variable alone."""
        tables = [
            NoisyTable((n,), np.bincount(groups, counts), self.noise * math.sqrt(len(groups)))
            for n, (groups, counts) in enumerate(zip(self.groups, self.counts, strict=True))
        ]
        return [*tables, NoisyTable((len(tables),), self.classes, self.noise)]

    def independent(self) -> list[ConditionalTable]:
        """Tables by which every variable is drawn alone, the class first."""
        tables = [ConditionalTable((), t.clique, t.counts) for t in self.singles()]
        return [tables[-1], *tables[:-1]]

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a source of rows keeps of the columns."""
        return {"groups": np.concatenate(self.groups), "within": np.concatenate(self.counts)}


def group_limits(schema: Schema, grid: int, most: int) -> tuple[int, ...]:
    """Number of groups of every variable, at most: from the schema alone."""
    columns = [
        min(most_cells(column, grid), most + Cells(column=column, grid=grid).missing)
        for column in schema.inputs
    ]
    return (*columns, len(schema.classes))


def cliques_within(limits: Sequence[int], degrees: Sequence[int], most_cells: int) -> list[Clique]:
    """All cliques of so many variables whose cells are not too many; constants are left out."""
    telling = [v for v, size in enumerate(limits) if size > 1]
    combinations = itertools.chain.from_iterable(
        itertools.combinations(telling, d) for d in degrees
    )
    return [c for c in combinations if math.prod(limits[v] for v in c) <= most_cells]


def expected_counts(
    tables: Sequence[ConditionalTable],
    cliques: Sequence[Clique],
    sizes: Sequence[int],
    total: float,
    seed: int,
) -> np.ndarray:
    """Counts of the cells of all cliques, one after the other, that a model expects: by many of its rows."""
    codes = draw_codes(tables, MODEL_ROWS, len(sizes), np.random.default_rng([seed, 7]))
    strides, _, cells = cell_strides(sizes, cliques)
    starts = np.cumsum(cells) - np.asarray(cells)
    counts = np.zeros(sum(cells), np.int64)
    for at in range(0, MODEL_ROWS, 5000):
        places = codes[at : at + 5000] @ strides + starts
        counts += np.bincount(places.ravel(), minlength=len(counts))
    return counts * (total / MODEL_ROWS)
