"""Tables in: CSV of any size, Parquet files and folders, and frames in memory, through Arrow.

Nothing that a row contains can raise: a text that is no number is an absent number, a line with
too few fields is skipped, bytes that are no UTF-8 become replacement characters. What a file's
structure lacks (a column, readability as such) is refused before anything is spent.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset

from .._check import DataError
from .._columns import Image, Raw, Values
from .._schema import Schema

CHUNK = 1 << 16
BLOCK_BYTES = 1 << 24


class CsvSource:
    """A CSV file, gzipped or not; comma, semicolon, tab or bar between fields."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names, self.delimiter = csv_header(path)

    def check(self, schema: Schema) -> None:
        check_columns(self.names, schema, str(self.path))

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        wanted = [c.name for c in schema.columns]
        try:
            reader = pa_csv.open_csv(
                self.path,
                read_options=pa_csv.ReadOptions(
                    column_names=self.names, skip_rows=1, block_size=BLOCK_BYTES
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=lambda row: "skip",
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: pa.binary() for name in wanted},
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):  # a header and no rows at all
                return
            raise DataError(f"Cannot read {self.path}: {error}.") from None
        with reader:
            for batch in reader:
                yield raw_columns(batch, schema)


class ParquetSource:
    """A Parquet file or a folder of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._dataset = pa_dataset.dataset(str(path), format="parquet")
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"Cannot read {path} as Parquet: {error}.") from None

    def check(self, schema: Schema) -> None:
        check_columns(self._dataset.schema.names, schema, str(self.path))

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names = [c.name for c in schema.columns]
        for batch in self._dataset.to_batches(columns=names, batch_size=CHUNK):
            yield raw_columns(batch, schema)


class FrameSource:
    """A pandas, Arrow or Polars table in memory."""

    def __init__(self, frame: object) -> None:
        self._table = to_arrow(frame)

    def check(self, schema: Schema) -> None:
        check_columns(self._table.column_names, schema, "the frame")

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names = [c.name for c in schema.columns]
        for batch in self._table.select(names).to_batches(max_chunksize=CHUNK):
            yield raw_columns(batch, schema)


def csv_header(path: Path) -> tuple[list[str], str]:
    """Column names and delimiter, from the first line alone."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        raw = gzip.open(path, "rb") if packed else open(path, "rb")  # noqa: SIM115
        with raw, io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="") as text:
            line = text.readline(1 << 20)
    except FileNotFoundError:
        raise DataError(f"No file at {path}.") from None
    except (OSError, EOFError) as error:
        raise DataError(f"Cannot read {path}: {error}.") from None
    if not line.strip():
        raise DataError(f"{path} is empty: expected a line of column names.")
    delimiter = max(",;\t|", key=line.count)
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise DataError(f"{path} has two columns named '{sorted(twice)[0]}'. Rename one.")
    return names, delimiter


def check_columns(names: list[str], schema: Schema, where: str) -> None:
    """Every declared column must be there, and no other unless the schema ignores it."""
    if schema.image:
        raise DataError(f"{where} is a table, but the schema declares an image.")
    declared = [c.name for c in schema.columns]
    for name in declared:
        if name not in names:
            raise DataError(
                f"{where} has no column '{name}', which the schema declares. It has: "
                f"{', '.join(names)}."
            )
    extra = [n for n in names if n not in declared and n not in schema.ignore]
    if extra:
        raise DataError(
            f"{where} has a column '{extra[0]}' that the schema does not declare. Declare it, or "
            f'leave it out with ignore = ["{extra[0]}"].'
        )


def to_arrow(frame: object) -> pa.Table:
    """Any frame as an Arrow table; a pandas column of mixed types becomes texts."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pd.DataFrame):
        columns = {}
        for name in frame.columns:
            try:
                columns[str(name)] = pa.Array.from_pandas(frame[name])
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                texts = [None if pd.isna(v) else str(v) for v in frame[name]]
                columns[str(name)] = pa.array(texts, pa.string())
        return pa.table(columns)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise DataError(
        f"Expected a path, a pandas, Arrow or Polars frame, or (images, labels) arrays; got "
        f"{type(frame).__name__}."
    )


def raw_columns(batch: pa.RecordBatch, schema: Schema) -> dict[str, Raw]:
    """A batch in the raw forms that the schema's columns read."""
    readers: dict[str, Callable[[pa.Array], Raw]] = {
        "numbers": numbers,
        "days": days,
        "values": values,
    }
    return {
        c.name: readers[c.reads](batch.column(c.name))
        for c in schema.columns
        if not isinstance(c, Image)
    }


def numbers(array: pa.Array) -> np.ndarray:
    """Float64 with NaN for whatever is no number."""
    array = _plain(array)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _parse_numbers(array)
    try:
        array = pc.cast(array, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(array), np.nan)
    return array.to_numpy(zero_copy_only=False)


def days(array: pa.Array) -> np.ndarray:
    """Days since 1970 as float64, NaN for whatever is no date."""
    array = _plain(array)
    try:
        plain = pc.cast(array, pa.date32(), safe=False)
        return numbers(pc.cast(plain, pa.int32()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = pd.Series(_texts(array), dtype=object)
        stamps = pd.to_datetime(texts, errors="coerce", format="ISO8601", utc=True)
        # Whole days, whatever unit pandas chose; NaT becomes NaN.
        since = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        return np.floor(since.to_numpy(np.float64))


def values(array: pa.Array) -> Values:
    """Codes into distinct texts."""
    if not isinstance(array, pa.DictionaryArray):
        array = pc.dictionary_encode(array)
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    distinct = _texts(array.dictionary)
    # A null may hide inside a dictionary: give it the code of nulls.
    hidden = [i for i, text in enumerate(distinct) if text is None]
    if hidden:
        codes = np.where(np.isin(codes, hidden), -1, codes)
    return Values(codes, [text or "" for text in distinct])


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array.view(pa.string()) if pa.types.is_binary(array.type) else array


def _parse_numbers(array: pa.Array) -> pa.Array:
    for prepare in (lambda a: a, pc.ascii_trim_whitespace):
        try:
            return pc.cast(prepare(array), pa.float64())
        except pa.ArrowInvalid:
            pass
    parsed = pd.to_numeric(pd.Series(_texts(array), dtype=object), errors="coerce")
    return pa.array(parsed.to_numpy(np.float64))


def _texts(array: pa.Array) -> list[str | None]:
    from .._columns import canonical

    if pa.types.is_string(array.type):
        array = array.view(pa.binary())
    items = array.to_pylist()
    return [
        None
        if v is None
        else v.decode("utf-8", "replace")
        if isinstance(v, bytes)
        else canonical(v)
        for v in items
    ]
