"""Correlations between a table's columns, released beside real: whether dependence survived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..schema import Category, Column, Image, Schema

PAIRS = 8
"""Pairs of columns that are shown: those that correlate most."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How two columns correlate, among released rows and among real ones."""

    first: str
    second: str
    released: float
    real: float

    def facts(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Pair:
        return cls(
            first=str(facts["first"]),
            second=str(facts["second"]),
            released=float(facts["released"]),
            real=float(facts["real"]),
        )


def correlations(
    schema: Schema, cells: np.ndarray, labels: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the columns that are numbers, times, or have two values, and the correlations of their
    values: of each pair over the rows that have both, and 0 where a column is constant.

    Args:
        schema: The settled schema.
        cells: Encoded rows, (rows, columns).
        labels: Their label codes, (rows,).
    """
    place = {column.name: number for number, column in enumerate(schema.inputs)}
    names, values = [], []
    for column in schema.columns:
        if isinstance(column, Image) or (isinstance(column, Category) and len(column.values) != 2):
            continue
        names.append(column.name)
        own = labels if column.kind == "label" else cells[:, place[column.name]]
        values.append(_numbers(column, np.asarray(own, np.float64)))
    if not names:
        return (), np.zeros((0, 0))
    table = np.stack(values, axis=1)
    there = np.isfinite(table)
    known = there.astype(np.float64)
    # Centred and scaled first, so that sums of squares lose no digits.
    rows = np.maximum(known.sum(axis=0), 1.0)
    centred = np.where(there, table, 0.0)
    centred = np.where(there, centred - centred.sum(axis=0) / rows, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / rows)
    centred = centred / np.where(scale > 0, scale, 1.0)
    both = np.maximum(known.T @ known, 1.0)
    first = centred.T @ known / both  # mean of each column over the rows that have the other, too
    squares = (centred**2).T @ known / both - first**2
    shared = centred.T @ centred / both - first * first.T
    spread = np.sqrt(np.maximum(squares, 0.0) * np.maximum(squares.T, 0.0))
    return tuple(names), np.where(spread > 1e-12, shared / np.maximum(spread, 1e-12), 0.0).clip(
        -1, 1
    )


def pairs_of(matrix: np.ndarray) -> np.ndarray:
    """Every pair's correlation once."""
    return matrix[np.triu_indices(len(matrix), 1)]


def strongest_pairs(
    names: tuple[str, ...], released: np.ndarray, real: np.ndarray, most: int = PAIRS
) -> tuple[Pair, ...]:
    """The pairs that correlate most, on either side."""
    first, second = np.triu_indices(len(names), 1)
    size = np.maximum(np.abs(released), np.abs(real))[first, second]
    return tuple(
        Pair(
            first=names[first[at]],
            second=names[second[at]],
            released=float(released[first[at], second[at]]),
            real=float(real[first[at], second[at]]),
        )
        for at in np.argsort(-size, kind="stable")[:most]
    )


def _numbers(column: Column, cells: np.ndarray) -> np.ndarray:
    """A column's values as numbers, NaN where there is none."""
    if isinstance(column, Category):
        return np.where((cells >= 0) & (cells < 2), cells, np.nan)
    assert not isinstance(column, Image)
    return np.where(np.isnan(cells), np.nan, column.number.from_unit(np.nan_to_num(cells)))
