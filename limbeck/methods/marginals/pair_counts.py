"""What the noisy counts of single columns and of pairs say together, and how many groups pairs are counted in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import LimbeckError
from ...features import Cells, group_cells, most_cells, table_cells
from ...privacy import Measurement
from ...schema import Schema
from ..class_counts import COUNTS, class_weights
from .forbidden import without_forbidden
from .noisy_cells import filled_cells, numbered, possible_cells, shared_out
from .soft_fit import NoisyMarginals
from .triples import triple_groups

SINGLES, PAIRS = "single columns", "pairs of columns"
MOST_PAIR_COUNTS = 1 << 25
"""Number of pair counts of a run, at most, for memory's sake: 256 MB as float64."""

GROUP_ROWS = 4.0
"""Rows that a group should hold, in units of the noise of a pair's count over all classes."""


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """Noisy counts by groups of cells, with nothing where no rows seem to be."""

    groups: list[np.ndarray]
    """For each column the group of each cell."""
    triple_groups: list[np.ndarray]
    """The same in triples: groups joined."""
    cleared: np.ndarray
    """Counts of cells, (classes, cells)."""
    filled: np.ndarray
    """Which cells rows may lie in, (classes, cells)."""
    met: np.ndarray
    """Which groups rows may lie in, (classes, groups)."""
    marginals: NoisyMarginals

    @classmethod
    def of_answers(
        cls,
        schema: Schema,
        columns: Sequence[Cells],
        groups: list[np.ndarray],
        cleared: np.ndarray,
        measured: Mapping[str, Measurement],
    ) -> PairCounts:
        counts, singles, pairs = (measured[name].values for name in (COUNTS, SINGLES, PAIRS))
        (weights, size), group_of = class_weights(counts), numbered(groups)
        filled = filled_cells(schema, columns, cleared)
        met = np.stack([np.bincount(group_of, own) > 0 for own in filled])
        singles = singles * possible_cells(schema, columns)
        pairs = pairs * met[:, :, None] * met[:, None, :]
        rows, errors = np.maximum(weights * size, 1.0), (SINGLES, PAIRS)
        noise = (measured[name].noise for name in errors)
        marginals = NoisyMarginals.of_answers(groups, rows, singles, pairs, *noise)
        if schema.rules:
            marginals = without_forbidden(marginals, schema, columns, groups)
        return cls(
            groups=groups,
            triple_groups=triple_groups(columns, groups, np.maximum(cleared.sum(axis=0), 0.0)),
            cleared=cleared,
            filled=filled,
            met=met,
            marginals=marginals,
        )

    def of_met_groups(self, soft: np.ndarray) -> np.ndarray:
        """Chances of soft rows (classes, soft rows, groups) without groups that no row lies in."""
        member = self.marginals.member
        soft = soft * self.met[:, None, :]
        return np.asarray(soft / ((soft @ member) @ member.T), np.float32)


def pair_groups(
    schema: Schema, grid: int, wanted: int, counts: np.ndarray, cleared: np.ndarray, noise: float
) -> list[np.ndarray]:
    """For each column the group of each cell.

    From noisy answers alone, so that measuring and distilling find the same groups.

    Args:
        schema: The settled schema.
        grid: Cells of a number.
        wanted: Groups of a column, at most.
        counts: Noisy numbers of rows, (classes,).
        cleared: Noisy counts of all columns' cells, (classes, cells).
        noise: Standard deviation of the noise that pair counts will have.
    """
    most, classes = groups_per_column(schema, grid, wanted), len(counts)
    floor = GROUP_ROWS * noise * math.sqrt(classes / 2)
    rows, whole = class_weights(counts)[1], cleared.sum(axis=0)
    start, groups = 0, []
    for cells in table_cells(schema, grid):
        pooled = shared_out(whole[start : start + cells.count], rows)
        groups.append(group_cells(cells, pooled, most=most, floor=floor))
        start += cells.count
    return groups


def all_groups(schema: Schema, grid: int, per_column: int) -> int:
    """Number of groups of all columns together, at most, with so many of each column."""
    cells = table_cells(schema, grid)
    return sum(min(most_cells(c.column, grid), per_column + c.missing) for c in cells)


def groups_per_column(schema: Schema, grid: int, wanted: int) -> int:
    """Groups of a column, at most: fewer in wide tables, so that the counts fit in memory."""
    limit = math.sqrt(MOST_PAIR_COUNTS / len(schema.classes))
    for most in range(wanted, 1, -1):
        if all_groups(schema, grid, most) <= limit:
            return most
    raise LimbeckError(
        f"{len(schema.inputs)} columns and {len(schema.classes)} classes make too many pair "
        "counts for marginals; use another method."
    )
