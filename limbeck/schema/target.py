"""A target: a number that models will predict, whose bins methods treat as classes.

Bins are even parts of the declared range, in the declared scale, so that they are public.
"""

from __future__ import annotations

import numpy as np

from .numeric import Numeric

ROWS_PER_COLUMN = 50
"""Rows of a bin for each column, at least, where the schema declares rows: with fewer, noise hides what
differs between bins."""
BINS, AUTOMATIC_BINS = 8, 12
"""Bins where the number of rows is not declared, and at most unless the schema says how many."""


def target_bins(target: Numeric, rows: int | None, columns: int) -> tuple[str, ...]:
    """Names of the bins, from the lowest.

    >>> target_bins(Numeric(name="x", min=0, max=8, target=True, bins=2), None, 3)
    ('0 to 4', '4 to 8')
    """
    count = target.bins or BINS
    if target.bins is None and rows is not None:
        count = min(AUTOMATIC_BINS, max(1, rows // (ROWS_PER_COLUMN * columns)))
    # No more bins than values; where bounds are estimated, they are not known when questions are planned.
    if target.units is not None and target.outer is None:
        count = min(count, target.units + 1)
    edges = [f"{edge:.6g}" for edge in target.from_unit(np.linspace(0.0, 1.0, count + 1))]
    return tuple(f"{low} to {high}" for low, high in zip(edges, edges[1:], strict=False))


def bins_of(cells: np.ndarray, bins: int) -> np.ndarray:
    """The bin (from 0) of each encoded number, all of them within [0, 1]."""
    return np.clip(np.floor(cells.astype(np.float64) * bins), 0, bins - 1).astype(np.int32)


def into_bins(cells: np.ndarray, codes: np.ndarray, bins: int) -> np.ndarray:
    """Encoded numbers, moved to the nearest within their bins.

    >>> into_bins(np.array([0.1, 0.9], np.float32), np.array([0, 0]), 2)
    array([0.1, 0.5], dtype=float32)
    """
    return np.clip(cells, codes / bins, (codes + 1) / bins).astype(np.float32)
