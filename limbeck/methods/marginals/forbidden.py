"""What rules between columns say of counts: a forbidden combination has none, whatever the noise says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...features import Cells
from ...schema import Category, Schema
from .soft_fit import NoisyMarginals

BELOW_ONE = float(np.nextafter(1, 0))


def without_forbidden(
    marginals: NoisyMarginals,
    schema: Schema,
    columns: Sequence[Cells],
    groups: Sequence[np.ndarray],
) -> NoisyMarginals:
    """Noisy counts with nothing in pairs of groups that no allowed row can be in.

    Combinations of three columns and more are left to the drawing of rows.

    Args:
        marginals: Noisy counts.
        schema: With its rules.
        columns: The cells of every column.
        groups: The group of each cell of a column, from 0.
    """
    single, pair = marginals.single.copy(), marginals.pair.copy()
    numbers = {cells.column.name: number for number, cells in enumerate(columns)}
    classes = np.arange(len(schema.classes))
    for clause in (clause for tie in schema.learned.ties for clause in tie.clauses):
        inside, label = {}, np.ones(len(classes), bool)
        for name in clause.names:
            if name in numbers:
                number = numbers[name]
                inside[number] = _inside(columns[number], groups[number], clause.tests)
            else:
                label = np.logical_and.reduce(
                    [test.holds(classes) for test in clause.tests if test.column.name == name]
                )
        at = [marginals.places[n].start + np.flatnonzero(held) for n, held in inside.items()]
        for code in np.flatnonzero(label):
            if len(at) == 1:
                single[code, at[0]] = 0.0
            if len(at) == 2:
                pair[code][np.ix_(at[0], at[1])] = 0.0
                pair[code][np.ix_(at[1], at[0])] = 0.0
    return replace(marginals, single=single, pair=pair)


def _inside(cells: Cells, groups: np.ndarray, tests: Sequence[object]) -> np.ndarray:
    """Which groups of a column's cells lie wholly within what a clause's tests say of it."""
    codes = np.arange(cells.count)
    held = np.ones(cells.count, bool)
    for test in tests:
        if test.column.name != cells.column.name:  # type: ignore[attr-defined]
            continue
        for fraction in (0.0, BELOW_ONE):  # values rise within a cell
            placed = cells.placed(codes, np.full(cells.count, fraction))
            held &= test.holds(_values(cells, placed))  # type: ignore[attr-defined]
    out = np.bincount(groups, ~held, minlength=int(groups.max()) + 1)
    return out == 0


def _values(cells: Cells, placed: np.ndarray) -> np.ndarray:
    column = cells.column
    if isinstance(column, Category):
        return placed
    number = column.number  # type: ignore[union-attr]
    return number.on_lattice(number.from_unit(placed.astype(np.float64)))
