"""Many rows through compiled code that has one shape: chunk after chunk, the last one filled up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def padded(array: np.ndarray, size: int, with_value: int = 0) -> np.ndarray:
    """Rows appended up to a fixed number, so that compiled code is compiled once.

    >>> padded(np.ones((2, 2)), 3)
    array([[1., 1.],
           [1., 1.],
           [0., 0.]])
    """
    width = [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, constant_values=with_value)


def in_chunks(function: Callable[..., Any], *arrays: np.ndarray, size: int) -> np.ndarray:
    """What a function of rows answers for all rows, given `size` of them at a time.

    Args:
        function: Takes as many arrays as are given, of `size` rows each; answers with an array of as
            many rows, each of which depends on its own row alone.
        arrays: The rows, and whatever belongs to them, row by row.
        size: Rows of a chunk. No rows at all are one chunk, too: the answer then has no rows, but a width.
    """
    rows, parts = len(arrays[0]), []
    for at in range(0, max(1, rows), size):
        pieces = [array[at : at + size] for array in arrays]
        answer = function(*(padded(piece, size) for piece in pieces))
        parts.append(np.asarray(answer)[: len(pieces[0])])
    return np.concatenate(parts)
