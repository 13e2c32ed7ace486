"""Raw columns, as `limbeck.data` hands them over: numbers, or texts in a dictionary.

`Numbers` are float64, NaN where there is none (dates as days since 1970), and tell an empty cell from one
that holds something else; `Values` are codes into a list of distinct texts, -1 for null. Pixels are a bare array.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

EPOCH = datetime.date(1970, 1, 1)

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Values:
    """Texts of a column, dictionary-coded: `codes` index `distinct`; -1 is null."""

    codes: np.ndarray
    distinct: list[str]


@dataclass(frozen=True)
class Numbers:
    """Numbers of a column, NaN for none; `unread` marks the cells that hold something that is none."""

    values: np.ndarray
    unread: np.ndarray


Raw = np.ndarray | Numbers | Values


def canonical(value: object) -> str:
    """The text under which two spellings of one category value meet.

    >>> canonical(1.0), canonical(" 1"), canonical(True), canonical(b"1")
    ('1', '1', 'true', '1')
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return str(value).strip()


def as_numbers(raw: Raw) -> np.ndarray:
    if isinstance(raw, Values):
        raise TypeError("a numeric column is read as numbers")
    return np.array(raw.values if isinstance(raw, Numbers) else raw, dtype=np.float64)
