"""Maps of rows see one row at a time, in a shape that does not depend on how many others there are."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

CHUNK_BYTES = 1 << 26
"""Memory for one chunk of features (64 MiB, in float64)."""


@eqx.filter_jit
def evaluate(row_map: Any, *arrays: Any) -> Any:
    """A map's answers for one row at a time, by construction: it cannot see a row's neighbours."""

    def one(*row: Any) -> Any:
        answer = row_map(*(part[None] for part in row))
        return jax.tree_util.tree_map(lambda array: array[0], answer)

    return jax.vmap(one)(*arrays)


def evaluated(row_map: Any, size: int, *arrays: np.ndarray) -> Any:
    """A map's answers for some rows, at most `size` of them, worked on in that fixed shape."""
    count = len(arrays[0])
    answers = evaluate(row_map, *(padded(array, size) for array in arrays))
    return jax.tree_util.tree_map(lambda answer: np.asarray(answer)[:count], answers)


def evaluated_in_pieces(row_map: Any, size: int, *arrays: np.ndarray) -> Any:
    """The same for more rows, a piece after the other."""
    pieces = range(0, len(arrays[0]), size)
    answers = [
        evaluated(row_map, size, *(a[start : start + size] for a in arrays)) for start in pieces
    ]
    return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts), *answers)


def chunk_rows(size: int, slots: int, row_map: Any = None) -> int:
    """Rows per chunk: of one shape for all numbers of rows, so that a row's features (their last
    bit, too) do not depend on how many others there are. Ones and zeros have no last bit: more rows."""
    most = 1 << 14 if hasattr(row_map, "ones") else 1 << 12
    return max(64, min(most, CHUNK_BYTES // (8 * max(size, slots)) // 64 * 64))


def padded(array: np.ndarray, size: int, with_value: int = 0) -> np.ndarray:
    """Rows appended up to a fixed shape, so that compiled code is compiled once."""
    missing = size - len(array)
    if missing == 0:
        return array
    width = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, constant_values=with_value)
