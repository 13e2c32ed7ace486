"""Whole numbers of rows in given proportions."""

from __future__ import annotations

import numpy as np


def apportion(weights: np.ndarray, rows: int) -> np.ndarray:
    """Codes whose shares are the weights, to the nearest row, in order.

    >>> apportion(np.array([0.5, 0.25, 0.25]), 4)
    array([0, 0, 1, 2])
    """
    ends = np.rint(np.cumsum(weights) * rows).astype(np.int64)
    ends[-1] = rows
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))
