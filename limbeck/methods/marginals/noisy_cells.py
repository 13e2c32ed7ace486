"""What noisy counts of single columns' cells tell: which cells hold rows, and how likely each is.

Empty cells are noise alone. There are many in wide bounds, and noise that is taken for rows far out ruins a
column's spread and its correlations; so what does not stand out of the noise is cleared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from ...features import Cells
from ...privacy import Measurement
from ...schema import Schema, bins_of

FALSE_ALARMS = 0.02
"""Chance that in a column somewhere noise alone is taken for rows: one empty cell far out does harm."""
REACH, STEP = 2.0, 0.5
"""Standard deviations by which cells next to filled ones must stand out, for a tail is likelier there than rows far out;
and how many at a time, at most, in units of the filled ones."""
FEW_CELLS = 16
"""Cells of a column with so few that none is far from the others, at most."""
BELOW_ONE = float(np.nextafter(1, 0))


def cleared_counts(
    schema: Schema, columns: Sequence[Cells], singles: np.ndarray, error: float
) -> np.ndarray:
    """Noisy counts of cells (classes, cells), with nothing in cells where a target cannot be, and with nothing in
    numbers' cells that seem to be empty. Beside a label that is done on logarithmic scales alone, where noise far out
    weighs most; on others it did no good: see benchmarks/notes/tables.md.

    Args:
        schema: The settled schema.
        columns: The cells of each column.
        singles: Noisy counts.
        error: Standard deviation that each errs by.
    """
    possible, start = possible_cells(schema, columns), 0
    cleared, errors = singles * possible, error * possible
    for cells in columns:
        place = slice(start, start + cells.values)
        wide = schema.label is None or cells.logarithmic
        if cells.ordered and wide and cells.values > FEW_CELLS:
            # Of all classes together, or of any alone: far values may be those of one class.
            own, errs = cleared[:, place], errors[:, place]
            sides = [(own.sum(axis=0), np.sqrt((errs**2).sum(axis=0)))]
            if len(own) > 1:
                sides += zip(own, errs, strict=True)
            clear = np.any([clear_cells(*s, FALSE_ALARMS / len(sides)) for s in sides], axis=0)
            if clear.any():
                cleared[:, place] *= clear
        start += cells.count
    return cleared


def in_filled_bins(schema: Schema, counts: Measurement) -> Measurement:
    """Noisy numbers of rows of each class, with nothing in a target's bins that seem to be empty: bounds are
    often wide, and noise taken for rows far out spoils what is predicted of all others."""
    if schema.target is None or len(counts.values) < 2:
        return counts
    errors = np.full(len(counts.values), count_error(counts.noise))
    filled = clear_cells(counts.values, errors)
    return counts._replace(values=counts.values * filled) if filled.any() else counts


def possible_cells(schema: Schema, columns: Sequence[Cells]) -> np.ndarray:
    """Whether rows of a class can lie in a cell, (classes, cells): 0 in a target's cells outside the bin."""
    classes = np.arange(len(schema.classes))[:, None]
    found, start = np.ones((len(classes), sum(c.count for c in columns))), 0
    for cells in columns:
        if cells.column is schema.target:
            codes = np.arange(cells.count)
            low, high = (cells.placed(codes, np.full(cells.count, at)) for at in (0.0, BELOW_ONE))
            first, last = bins_of(low, len(classes)), bins_of(high, len(classes))
            found[:, start : start + cells.count] = (first <= classes) & (classes <= last)
        start += cells.count
    return found


def filled_cells(schema: Schema, columns: Sequence[Cells], cleared: np.ndarray) -> np.ndarray:
    """Where a class may have rows, (classes, cells): where a target can be, and counts were not cleared; one
    cell of each column at least."""
    possible, start = possible_cells(schema, columns) > 0, 0
    filled = possible & (cleared != 0).any(axis=0)
    for cells in columns:
        place = slice(start, start + cells.count)
        nowhere = ~filled[:, place].any(axis=1)
        filled[nowhere, place] = possible[nowhere, place]
        start += cells.count
    return filled


def clear_cells(
    counts: np.ndarray, errors: np.ndarray, false_alarms: float = FALSE_ALARMS
) -> np.ndarray:
    """Which of neighbouring cells hold rows, by noisy counts: those in the shortest runs whose sums stand
    out of the noise, and tails of these. Else noise in the empty cells of wide bounds would be drawn as values far out.

    Args:
        counts: Noisy counts of cells.
        errors: Standard deviations that they err by; 0 where a count is known to be 0.
        false_alarms: Chance that among them all noise alone is taken for rows.

    >>> counts = np.array([90.0, 12.0, 12.0, 12.0, 12.0, -9.0, 9.0, -9.0])
    >>> clear_cells(counts, np.full(8, 4.0)).astype(int)
    array([1, 1, 1, 1, 1, 0, 0, 0])
    """
    filled, length = np.zeros(len(counts), bool), 1
    sums, variances = (np.append(0.0, np.cumsum(x)) for x in (counts, errors**2))
    taken = np.zeros(len(counts) + 1, int)
    looks = len(counts) * (1 + math.log2(len(counts)))
    stands_out = -float(ndtri(false_alarms / looks))
    while length <= len(counts):
        taken[1:] = np.cumsum(filled)
        spread = np.sqrt(variances[length:] - variances[:-length])
        clear = sums[length:] - sums[:-length] > stands_out * spread
        for start in np.flatnonzero(clear & (taken[length:] == taken[:-length])):
            filled[start : start + length] = True
        length *= 2
    for filled_from, counted, erring in (
        (filled, sums, variances),
        (filled[::-1], -sums[::-1], -variances[::-1]),
    ):
        _reach_out(filled_from, counted, erring)
    return filled


def _reach_out(filled: np.ndarray, sums: np.ndarray, variances: np.ndarray) -> None:
    """Fill cells after the last filled one, as long as the shortest run of them that stands out is found.

    Args:
        filled: Whether cells hold rows; changed in place.
        sums, variances: Of all cells before each, in the same order, or less a constant.
    """
    if not filled.any():
        return
    last, length = len(filled) - int(np.argmax(filled[::-1])), 1
    while last + length <= len(filled) and length <= max(1.0, STEP * filled.sum()):
        found = sums[last + length] - sums[last]
        if (
            found > REACH * math.sqrt(max(variances[last + length] - variances[last], 0.0))
            and found > 0
        ):
            filled[last : last + length] = True
            last, length = last + length, 1
        else:
            length *= 2


def shared_out(counts: np.ndarray, rows: float) -> np.ndarray:
    """Noisy counts of a column's cells made non-negative with that sum; cleared ones stay zero."""
    held, found = counts != 0, np.zeros(len(counts))
    if not held.any():
        return to_simplex(counts, rows)
    found[held] = to_simplex(counts[held], rows)
    return found


def chances_within(
    groups: np.ndarray,
    singles: np.ndarray,
    totals: np.ndarray,
    error: float,
    filled: np.ndarray,
) -> np.ndarray:
    """Probability of each cell within its group, (classes, cells): a class's own counts, drawn to those
    of all classes, the more the less classes differ beyond the noise.

    Args:
        groups: The group of each cell, numbered through all columns.
        singles: Noisy counts of cells, (classes, cells).
        totals: Counts of groups, (classes, groups).
        error: Standard deviation of a noisy count.
        filled: Where a class may have rows, (classes, cells); the other cells get none.
    """
    chances = np.zeros_like(singles)
    for group in range(int(groups.max()) + 1):
        cells = np.flatnonzero((groups == group) & filled.any(axis=0))
        if len(cells) == 0:  # no row is thought to be there
            chances[:, groups == group] = 1 / (groups == group).sum()
            continue
        own = singles[:, cells]
        common = to_simplex(own.sum(axis=0), max(float(own.sum()), 1.0))
        for label, total in enumerate(np.maximum(totals[:, group], 1e-6)):
            there = filled[label, cells]
            if not there.any():
                continue
            known = own[label, there]
            expected = common[there] if common[there].any() else np.ones(len(known))
            expected = total * expected / expected.sum()
            differing = max(float(((known - expected) ** 2).mean()) - error**2, 0.0)
            trust = differing / (differing + error**2)
            mixed = to_simplex(trust * known + (1 - trust) * expected, total)
            chances[label, cells[there]] = mixed / total
    return chances


def numbered(groups: list[np.ndarray]) -> np.ndarray:
    """The group of each cell, numbered through all columns."""
    starts = np.cumsum([0] + [int(g.max()) + 1 for g in groups[:-1]])
    return np.concatenate([g + start for g, start in zip(groups, starts, strict=True)])


def count_error(noise: float) -> float:
    """Standard deviation that a count is taken to err by: its noise, and one row at least, for a row
    more or less is no difference to fit."""
    return math.hypot(noise, 1.0)


def to_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest non-negative numbers with that sum.

    >>> to_simplex(np.array([3.0, 1.0, -5.0]), 2.0)
    array([2., 0., 0.])
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = int((falling > excess).sum())
    if kept == 0:
        return np.full(len(values), total / len(values))
    return np.maximum(values - excess[kept - 1], 0.0)
