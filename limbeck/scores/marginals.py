"""Marginals of a table: how far released ones lie from real ones, by total variation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..errors import LimbeckError, positive
from ..schema import Category, Schema

BINS = 20
"""Equal parts that the declared range of a numeric column is cut into."""


def discretise(
    schema: Schema, cells: np.ndarray, labels: np.ndarray, *, bins: int = BINS
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Codes (rows, columns), the label last, and how many codes each column has.

    Bins come from the schema, not from either data set. "No value" has a code of its own.
    """
    positive(bins=bins)
    codes, sizes = [], []
    for number, column in enumerate(schema.inputs):
        values = cells[:, number]
        if isinstance(column, Category):
            count = len(column.values)
            code = np.where((values >= 0) & (values < count), values, count)
        else:
            count = bins
            inside = np.clip(np.nan_to_num(values) * bins, 0, bins - 1)
            code = np.where(np.isnan(values), bins, np.floor(inside))
        codes.append(code.astype(np.int64))
        sizes.append(count + 1)
    if schema.label:
        count = len(schema.classes)
        codes.append(np.where(labels >= 0, labels, count).astype(np.int64))
        sizes.append(count + 1)
    return np.stack(codes, axis=1), tuple(sizes)


def marginal_distance(
    released: np.ndarray, real: np.ndarray, sizes: Sequence[int], columns: Sequence[int]
) -> float:
    """Total variation between the joint distributions of some columns.

    >>> one, other = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [1, 0]])
    >>> marginal_distance(one, other, (2, 2), (0,)), marginal_distance(one, other, (2, 2), (0, 1))
    (0.0, 1.0)
    """
    if not (len(released) and len(real)):
        raise LimbeckError("Expected rows on both sides.")
    chosen = [sizes[c] for c in columns]
    cells = [
        np.ravel_multi_index(tuple(x[:, c] for c in columns), chosen) for x in (released, real)
    ]
    total = int(np.prod(chosen))
    if total > 4 * (len(released) + len(real)):  # mostly empty: number the cells that occur
        _, numbered = np.unique(np.concatenate(cells), return_inverse=True)
        cells, total = np.split(numbered, [len(released)]), int(numbered.max()) + 1
    a, b = (np.bincount(c, minlength=total) / len(c) for c in cells)
    return float(np.abs(a - b).sum() / 2)


def mean_marginal_distance(
    released: np.ndarray, real: np.ndarray, sizes: Sequence[int], *, ways: int = 2
) -> float:
    """Mean total variation over all sets of `ways` columns."""
    positive(ways=ways)
    if ways > len(sizes):
        raise LimbeckError(f"Expected at most {len(sizes)} ways, got {ways}.")
    sets = itertools.combinations(range(len(sizes)), ways)
    return float(np.mean([marginal_distance(released, real, sizes, s) for s in sets]))
