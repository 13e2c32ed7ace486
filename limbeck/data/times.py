"""Cells of dates with a time of day, and of durations: all become seconds."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from ..errors import DataError
from ..schema import DateTime, Duration, duration_seconds, spelled_moment
from .cells import (
    UNITS_PER_SECOND,
    code_array,
    counts_of,
    days_of_moments,
    family,
    numbers,
    parsed_texts,
    stored,
)
from .texts import SECONDS_PER_DAY


def seconds_of_cells(array: pa.Array, column: DateTime | Duration) -> np.ndarray:
    """Seconds, since 1970 or of a duration, as float64; NaN for whatever is none."""
    if isinstance(column, Duration):
        return spans(array)
    return seconds(array, column.format, column.zone is not None)


def check_zone(kind: pa.DataType, column: DateTime, where: str) -> None:
    """Refuse moments of one type, with a time zone or without, where the other one is declared."""
    aware = pa.types.is_timestamp(kind) and kind.tz is not None
    if family(kind) == "moment" and aware != (column.zone is not None):
        has, needs = ("a", 'say zone = "..."') if aware else ("no", "leave `zone` out")
        raise DataError(
            f"{where}: column '{column.name}' is of type {kind}, with {has} time zone. In the schema "
            f"{needs}, or convert the column."
        )


def seconds(array: pa.Array, pattern: str | None, aware: bool) -> np.ndarray:
    """Seconds since 1970 as float64, NaN for whatever is no moment."""
    array = stored(array)
    if isinstance(array, pa.DictionaryArray):
        return np.append(seconds(array.dictionary, pattern, aware), np.nan)[
            code_array(array.indices)
        ]
    if family(array.type) != "moment":
        return parsed_texts(array, lambda text: second(text, pattern, aware))
    whole_days = days_of_moments(array)
    if pa.types.is_timestamp(array.type):  # else whole days
        per_second = UNITS_PER_SECOND[array.type.unit]
        within = counts_of(array) % (SECONDS_PER_DAY * per_second)
        # Texts know no less than a microsecond.
        parts = within % per_second * 10**6 // per_second
        return whole_days * SECONDS_PER_DAY + within // per_second + parts / 1e6
    return whole_days * SECONDS_PER_DAY


def spans(array: pa.Array) -> np.ndarray:
    """Seconds of durations (of times of day: since midnight) as float64, NaN for whatever is none."""
    array = stored(array)
    if isinstance(array, pa.DictionaryArray):
        return np.append(spans(array.dictionary), np.nan)[code_array(array.indices)]
    kind = family(array.type)
    if kind == "number":
        return numbers(array)
    if kind != "span":
        return parsed_texts(array, duration_seconds)
    units, per_second = counts_of(array), UNITS_PER_SECOND[array.type.unit]
    in_seconds = units // per_second + units % per_second / per_second
    return np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, in_seconds)


def second(text: str, pattern: str | None = None, aware: bool = False) -> float:
    """Seconds since 1970 of the moment that a text spells by the pattern or by ISO 8601, or NaN.

    A text must name its distance to UTC if and only if `aware` is set: no cell is read by guess.

    >>> second("1970-01-01T00:01"), second("1970-01-01T01:01+01:00", aware=True)
    (60.0, 60.0)
    >>> second("1970-01-01T01:01+01:00"), second("02.01.1970", "%d.%m.%Y")
    (nan, 86400.0)
    """
    moment = spelled_moment(text, pattern)
    if moment is None or (moment.tzinfo is not None) != aware:
        return np.nan
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if aware else None)
    # As moments that are no texts are counted, to the last bit.
    return since.days * SECONDS_PER_DAY + since.seconds + since.microseconds / 1e6
