"""Ids of released rows: counted afresh from 1, so that they belong to no one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .person import Person
from .unread import Unread

GOLDEN = (np.sqrt(5) - 1) / 2
"""Part of the way around a circle, in whose steps persons are told how many rows they have: then those
of any first so many persons come in the wanted shares, nearly."""


def with_fresh_ids(
    series: Sequence[pd.Series], unread: Sequence[Unread], person: Person | None
) -> pd.DataFrame:
    """A table of released columns with ids: those of kind `id` in their places, persons' in front."""
    columns, rows = list(series), len(series[0])
    for column in unread:  # in the order of their places
        if column.kind == "id":
            texts = sum(u.kind == "text" and u.place < column.place for u in unread)
            ids = pd.Series(np.arange(1, rows + 1), name=column.name)
            columns.insert(column.place - texts, ids)
    if person is not None:
        columns.insert(0, pd.Series(fresh_persons(rows, person.shares), name=person.column))
    return pd.concat(columns, axis=1)


def mean_rows(person: Person) -> float:
    """Of a person in a release: one, unless the schema says how many rows persons have.

    >>> mean_rows(Person(column="patient", rows_at_most=3, rows_per_person=[0.5, 0.0, 0.5]))
    2.0
    """
    shares = person.shares or (1.0,)
    return float(np.average(np.arange(1, len(shares) + 1), weights=shares))


def fresh_persons(rows: int, shares: Sequence[float] | None) -> np.ndarray:
    """An id per row, (rows,); the rows of a person are side by side.

    >>> fresh_persons(4, None)
    array([1, 2, 3, 4])
    >>> fresh_persons(7, [0.5, 0.0, 0.5])
    array([1, 1, 1, 2, 3, 3, 3])

    Args:
        rows: How many there are.
        shares: Of persons with one row, with two and so on; None: each has one.
    """
    if shares is None:
        return np.arange(1, rows + 1)
    edges = np.cumsum(shares)
    steps = (0.5 + GOLDEN * np.arange(rows)) % 1.0
    each = 1 + np.minimum(np.searchsorted(edges, steps * edges[-1], "right"), len(edges) - 1)
    return 1 + np.searchsorted(np.cumsum(each), np.arange(rows), "right")
