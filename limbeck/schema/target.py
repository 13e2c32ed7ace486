"""A target: a number that models will predict, whose bins methods treat as classes.

Bins are even parts of the declared range, in the declared scale, so that they are public. The target stays a
column like any other; a row's label code is the bin of its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import SchemaError
from .raw import Raw, Values
from .states import MISSING, UNKNOWN

if TYPE_CHECKING:
    from .category import Category
    from .numeric import Numeric
    from .schema import Schema

ROWS_PER_COLUMN = 50
"""Rows (or persons, where these are protected) of a bin for each column, at least, where the schema declares
them: with fewer, noise hides what differs between bins."""
BINS, AUTOMATIC_BINS, MOST_BINS = 8, 12, 100
"""Number of bins where no number of rows is declared; most without and with a declared number of bins."""


def check_target(column: Numeric) -> None:
    """Refuse a number that cannot be a target as declared."""
    if column.target and column.missing:
        raise SchemaError(
            f"Column '{column.name}': a target cannot be missing; rows without one count as nothing."
        )
    if column.bins is not None and not (column.target and 1 <= column.bins <= MOST_BINS):
        raise SchemaError(
            f"Column '{column.name}': `bins` are of a target (target = true), from 1 to {MOST_BINS}; got "
            f"{column.bins}."
        )


def check_one_predicted(label: Category | None, *targets: Numeric) -> None:
    """Refuse a label beside a target, and several targets."""
    predicted = [column.name for column in (label, *targets) if column is not None]
    if len(predicted) > 1:
        raise SchemaError(
            f"Models predict one column, the label or the target, but '{predicted[0]}' and '{predicted[1]}' "
            "both are such. Take `target = true` out, or make the label a category."
        )


def target_bins(schema: Schema, target: Numeric) -> tuple[str, ...]:
    """Names of the bins, from the lowest; automatic ones hold so many rows, or persons, that noise leaves them apart.

    >>> from limbeck import Category, Numeric, Schema
    >>> columns = Category(name="c", values=("a", "b")), Numeric(name="x", min=0, max=8, target=True, bins=2)
    >>> target_bins(Schema(dataset="d", columns=columns), columns[1])
    ('0 to 4', '4 to 8')
    """
    units, person, count = schema.units, schema.person, target.bins or BINS
    if person and units is None and schema.rows is not None:
        units = schema.rows // person.rows_at_most  # persons at least
    if target.bins is None and units is not None:
        count = min(AUTOMATIC_BINS, max(1, units // (ROWS_PER_COLUMN * len(schema.inputs))))
    # No more bins than values; where bounds are estimated, they are not known when questions are planned.
    if target.units is not None and target.outer is None:
        count = min(count, target.units + 1)
    edges = [f"{edge:.6g}" for edge in target.from_unit(np.linspace(0.0, 1.0, count + 1))]
    return tuple(f"{low} to {high}" for low, high in zip(edges, edges[1:], strict=False))


def bins_of(cells: np.ndarray, bins: int) -> np.ndarray:
    """The bin (from 0) of each encoded number, all of them within [0, 1]."""
    return np.clip(np.floor(cells.astype(np.float64) * bins), 0, bins - 1).astype(np.int32)


def label_codes(schema: Schema, cells: np.ndarray, raw: Raw) -> np.ndarray:
    """Label codes of encoded rows (rows, columns) by their targets; -1 for a row without one.

    Args:
        schema: One with a target.
        cells: The rows.
        raw: The column of the target as it was read.
    """
    assert schema.target is not None
    codes = bins_of(cells[:, schema.inputs.index(schema.target)], len(schema.classes))
    return np.where(says_something(schema.target, raw), codes, -1)


def says_something(column: Category | Numeric, raw: Raw) -> np.ndarray:
    """Where a label has one of its declared values, or a target a number."""
    if isinstance(raw, Values):
        return column.encode(raw) >= 0
    return ~np.isin(column.states(raw), (MISSING, UNKNOWN))


def in_bins(schema: Schema, cells: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Encoded rows with each target moved to the nearest number in the bin that its label code says."""
    if schema.target is None:
        return cells
    cells, at, bins = cells.copy(), schema.inputs.index(schema.target), len(schema.classes)
    cells[:, at] = np.clip(cells[:, at], labels / bins, (labels + 1) / bins)
    return cells
