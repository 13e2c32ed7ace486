"""Cells of a column: each is read by its type and its own content, never by its neighbours'.

Reading must be row-local: rows read together give what each gives alone. Else one row would change
what many others count for, and no sensitivity would hold. So a text has one parser (`number`,
`day`), whatever stands beside it, and an Arrow column is handled by its type alone. Where a fast
road for a whole column exists, it gives each cell what the parser gives it, or is not taken.

Nothing that a cell contains can raise: a text that is no number is an absent number.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from ..schema import (
    EPOCH,
    Category,
    Column,
    Date,
    DateTime,
    Duration,
    Image,
    Numbers,
    Raw,
    Schema,
    Values,
    canonical,
    says_nothing,
)
from .texts import SECONDS_PER_DAY, day, number, plainly

READABLE = {
    "numbers": {"text", "number", "boolean", "nothing"},
    "days": {"text", "number", "moment", "nothing"},
    "seconds": {"text", "moment", "nothing"},
    "spans": {"text", "number", "span", "nothing"},
    "values": {"text", "number", "boolean", "moment", "span", "nothing"},
}
"""Which families of types each raw form can be read from."""

PLAIN = (".", "")
"""Marks of numbers that are written plainly: a point before fractions, nothing between thousands."""

PLAIN_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
"""Texts that Arrow certainly takes for numbers."""

UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FIRST_DAY, LAST_DAY = (
    (day - EPOCH).days for day in (datetime.date.min, datetime.date.max)
)  # days that have a name in Python: others are absent, in whatever type they come


def raw_columns(
    batch: pa.RecordBatch, schema: Schema, marks: tuple[str, str] = PLAIN
) -> dict[str, Raw]:
    """A batch in the raw forms that the schema's columns read.

    Args:
        batch: Rows of a table.
        schema: Says what each column is.
        marks: What numbers written as texts have before their fractions, and between thousands.
    """
    columns = {
        c.name: _raw_form(batch.column(c.name), _read(batch.column(c.name), c, marks))
        for c in schema.columns
        if not isinstance(c, Image)
    }
    if schema.person:
        columns[schema.person.column] = values(batch.column(schema.person.column))
    return columns


def _read(array: pa.Array, column: Column, marks: tuple[str, str]) -> np.ndarray | Values:
    if isinstance(column, Date):
        return days(array, column.format)
    if isinstance(column, DateTime | Duration):
        from . import times

        return times.seconds_of_cells(array, column)
    return values(array) if isinstance(column, Category) else numbers(array, marks)


def _raw_form(array: pa.Array, cells: np.ndarray | Values) -> Raw:
    """What was read of a column; of numbers also which cells hold something that is none."""
    if isinstance(cells, Values):
        return cells
    unread = np.isnan(cells)
    if unread.any():
        array = stored(array)
        plain = (
            _bytes(array)
            if family(array.type) == "text" and not isinstance(array, pa.DictionaryArray)
            else array
        )
        left = values(plain.filter(pa.array(unread)))
        something = np.asarray([*(not says_nothing(text) for text in left.distinct), False])
        unread[unread] = something[left.codes]
    return Numbers(cells, unread)


# ---- types --------------------------------------------------------------------------------------


def family(kind: pa.DataType) -> str:
    """The family of an Arrow type, on which alone it depends how a column is read."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return family(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return family(kind.storage_type)
    tests = {
        "text": (
            types.is_string, types.is_large_string, types.is_string_view, types.is_binary,
            types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary,
        ),
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "boolean": (types.is_boolean,),
        "moment": (types.is_date, types.is_timestamp),
        "span": (types.is_time, types.is_duration),
        "nothing": (types.is_null,),
    }  # fmt: skip
    return next((name for name, all_of in tests.items() if any(t(kind) for t in all_of)), "nested")


def check_types(columns: pa.Schema, schema: Schema, where: str) -> None:
    """Refuse a declared column whose type cannot hold what is declared. No row is read."""
    for column in schema.columns:
        if isinstance(column, Image):
            continue
        kind = columns.field(column.name).type
        its_family = family(kind)
        if its_family == "nested":
            raise DataError(
                f"{where}: column '{column.name}' holds lists or other nested values ({kind}). A cell "
                "must be one value: make columns of its parts, or leave it out with "
                f'ignore = ["{column.name}"].'
            )
        if isinstance(column, DateTime):
            from . import times

            times.check_zone(kind, column, where)
        if its_family not in READABLE[column.reads] or not has_known_zone(kind):
            raise DataError(
                f"{where}: column '{column.name}' is declared as {column.kind}, which cannot be read "
                f"from its type {kind}. Declare another kind, or convert the column."
            )
    if schema.person:
        name = schema.person.column
        kind = columns.field(name).type
        if family(kind) not in READABLE["values"] or not has_known_zone(kind):
            raise DataError(
                f"{where}: column '{name}' holds the persons' ids and is of type {kind}, which cannot "
                "be read. Make it texts or whole numbers."
            )


def has_known_zone(kind: pa.DataType) -> bool:
    """Whether the time zone of a type, if it has one, is known here."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return True
    try:
        pa.scalar(0, kind).as_py()
    except Exception:  # which one depends on the libraries that are installed
        return False
    return True


def stored(array: pa.Array) -> pa.Array:
    """The array without what is only a way of storing it (dictionaries are kept)."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        return stored(pc.run_end_decode(array))
    return array


def _bytes(array: pa.Array) -> pa.Array:
    """An array of texts, of any type, as bytes."""
    if pa.types.is_string(array.type):
        return array.view(pa.binary())
    if pa.types.is_large_string(array.type):
        return array.view(pa.large_binary())
    plain = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)
    return array if plain else pc.cast(array, pa.large_binary())


# ---- numbers ------------------------------------------------------------------------------------


def numbers(array: pa.Array, marks: tuple[str, str] = PLAIN) -> np.ndarray:
    """Float64 with NaN for whatever is no number; texts have these marks before fractions and between thousands."""
    array = stored(array)
    if isinstance(array, pa.DictionaryArray):
        return np.append(numbers(array.dictionary, marks), np.nan)[code_array(array.indices)]
    kind = family(array.type)
    if kind == "text" and marks != PLAIN:
        return parsed_texts(array, lambda text: number(plainly(text, *marks)))
    if kind == "text":
        return _parsed_numbers(_bytes(array))
    if kind == "nothing":
        return np.full(len(array), np.nan)
    if kind not in ("number", "boolean"):
        raise TypeError(f"no numbers in {array.type}")
    return pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _parsed_numbers(array: pa.Array) -> np.ndarray:
    """`number` of every text. What Arrow takes for a number, it reads as `number` does."""
    text = pa.large_string() if pa.types.is_large_binary(array.type) else pa.string()
    for prepare in (lambda a: a, pc.ascii_trim_whitespace):
        with suppress(pa.ArrowInvalid):  # it takes all cells or none
            return pc.cast(prepare(array.view(text)), pa.float64()).to_numpy(zero_copy_only=False)
    plain = pc.match_substring_regex(array, PLAIN_NUMBER).fill_null(True)
    parsed = np.full(len(array), np.nan)
    at_once = plain.to_numpy(zero_copy_only=False)
    parsed[at_once] = pc.cast(array.filter(plain).view(text), pa.float64()).to_numpy(
        zero_copy_only=False
    )
    coded = values(array.filter(pc.invert(plain)))
    parsed[~at_once] = np.asarray([*map(number, coded.distinct), np.nan])[coded.codes]
    return parsed


# ---- days ---------------------------------------------------------------------------------------


def days(array: pa.Array, pattern: str | None = None) -> np.ndarray:
    """Days since 1970 as float64, NaN for whatever is no date; texts are read by the pattern, if any."""
    array = stored(array)
    if isinstance(array, pa.DictionaryArray):
        return np.append(days(array.dictionary, pattern), np.nan)[code_array(array.indices)]
    if family(array.type) == "moment":
        return days_of_moments(array)
    return parsed_texts(array, lambda text: day(text, pattern))


def parsed_texts(array: pa.Array, parse: Callable[[str], float]) -> np.ndarray:
    """What a parser gives for each text; NaN for nulls."""
    coded = values(array)
    return np.asarray([*map(parse, coded.distinct), np.nan])[coded.codes]


def days_of_moments(array: pa.Array) -> np.ndarray:
    per_day = 1
    if not pa.types.is_date32(array.type):
        unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
        per_day = SECONDS_PER_DAY * UNITS_PER_SECOND[unit]
    whole_days = counts_of(array) // per_day
    absent = array.is_null().to_numpy(zero_copy_only=False)
    absent |= (whole_days < FIRST_DAY) | (whole_days > LAST_DAY)
    return np.where(absent, np.nan, whole_days.astype(np.float64))


def counts_of(array: pa.Array) -> np.ndarray:
    """Units of a moment or a span, 0 for nulls."""
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.view(whole).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


# ---- values -------------------------------------------------------------------------------------


def values(array: pa.Array) -> Values:
    """Codes into distinct texts."""
    array = stored(array)
    if isinstance(array, pa.DictionaryArray):
        inner = values(array.dictionary)  # it may hold nulls, or a text twice
        return Values(np.append(inner.codes, -1)[code_array(array.indices)], inner.distinct)
    kind = family(array.type)
    if kind == "nothing":
        return Values(np.full(len(array), -1, np.int64), [])
    if pa.types.is_float16(array.type):  # not every version of Arrow can encode it
        array = pc.cast(array, pa.float32())
    coded = pc.dictionary_encode(_bytes(array) if kind == "text" else array)
    codes, texts = code_array(coded.indices), _texts(coded.dictionary)
    hidden = [i for i, text in enumerate(texts) if text is None]
    if hidden:
        codes = np.where(np.isin(codes, hidden), -1, codes)
    return Values(codes, [text or "" for text in texts])


def cell_text(value: object) -> str | None:
    """The text of one Python object, None for "no value" and for what has no text."""
    try:
        return None if value is None or value != value else canonical(value)
    except Exception:  # whatever an object does when compared or shown, it harms no other
        return None


def object_texts(cells: list[object]) -> pa.Array:
    """Texts of Python objects, cell by cell: their common type could turn on one of them."""
    texts = map(cell_text, cells)
    return pa.array(
        [None if t is None else t.encode("utf-8", "replace") for t in texts], pa.large_binary()
    )


def code_array(indices: pa.Array) -> np.ndarray:
    return indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)


def _texts(array: pa.Array) -> list[str | None]:
    kind = family(array.type)
    if kind == "text":
        return [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()]
    if kind in ("moment", "span"):
        return [cell_text(_item(scalar)) for scalar in array]
    return [cell_text(v) for v in array.to_pylist()]


def _item(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):  # a moment that Python has no name for
        return None
