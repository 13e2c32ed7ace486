"""Tables in: CSV of any size, Parquet files and folders, and frames in memory, through Arrow.

Nothing that a row contains can raise: a text that is no number is an absent number, a line with
too few fields is skipped, bytes that are no UTF-8 become replacement characters. What a file's
structure lacks (a column, readability as such) is refused before anything is spent.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet

from .._check import DataError
from .._columns import EPOCH, Image, Raw, Values, canonical
from .._schema import Schema

CHUNK = 1 << 16
BLOCK_BYTES = 1 << 24
LINE_BYTES = 1 << 20
NAMES_SHOWN = 20


class CsvSource:
    """A CSV file, gzipped or not; comma, semicolon, tab or bar between fields."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names, self.delimiter = csv_header(path)

    def check(self, schema: Schema) -> None:
        check_columns(self.names, schema, str(self.path))

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        try:
            wanted = [c.name for c in schema.columns]
            with (
                closing(Lines(self.path, self.delimiter)) as file,
                self._reader(file, wanted) as reader,
            ):
                for batch in reader:
                    yield raw_columns(batch, schema)
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            # A header and no rows at all, or not even the end of its line.
            if "Empty CSV" in str(error) or "Could not skip" in str(error):
                return
            raise DataError(f"Cannot read {self.path}: {plain_reason(error)}.") from None

    def _reader(self, file: Lines, wanted: list[str]) -> pa_csv.CSVStreamingReader:
        return pa_csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa_csv.ReadOptions(
                column_names=self.names, skip_rows=1, block_size=BLOCK_BYTES
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
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


class ParquetSource:
    """A Parquet file or a folder of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._dataset = pa_dataset.dataset(str(path), format="parquet")
        except (pa.ArrowException, OSError) as error:
            if "duplicate field names" in str(error) and path.is_file():
                check_names(pa_parquet.read_schema(path).names, str(path))
            raise DataError(f"Cannot read {path} as Parquet: {plain_reason(error)}.") from None

    def check(self, schema: Schema) -> None:
        check_columns(self._dataset.schema.names, schema, str(self.path))

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names = [c.name for c in schema.columns]
        try:
            for batch in self._dataset.to_batches(columns=names, batch_size=CHUNK):
                yield raw_columns(batch, schema)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"Cannot read {self.path} as Parquet: {plain_reason(error)}.") from None


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


def open_bytes(path: Path) -> IO[bytes]:
    """A file's bytes, unpacked where they are gzipped, whatever the file is called."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else open(path, "rb")


class Lines:
    """A CSV file's bytes, so cleaned that no line can change how another is read.

    One line is one record, and lines end with LF (or CR LF); a CR elsewhere becomes a blank. Bytes
    that are no UTF-8 become replacement characters; quotes that do not pair up within their line
    become blanks (an open quote would swallow the records after it); a line longer than
    `LINE_BYTES` is left out.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        self._file = open_bytes(path)
        self._delimiter = ord(delimiter)
        self._ready = self._carry = b""
        self._ended = self._dropping = False

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or not self._ready):
            self._fill()
        size = len(self._ready) if size < 0 else size
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def _fill(self) -> None:
        raw = self._file.read(BLOCK_BYTES // 2)
        self._ended = not raw
        if self._dropping:  # the rest of a line that is too long
            raw = raw[raw.find(b"\n") :] if b"\n" in raw else b""
            self._dropping = not raw
        whole = self._carry + raw
        cut = len(whole) if self._ended else whole.rfind(b"\n") + 1
        lines, self._carry = whole[:cut], whole[cut:]
        if len(self._carry) > LINE_BYTES:
            self._carry, self._dropping = b"", True
        self._ready += _paired_quotes(_utf8(_short_lines(lines)), self._delimiter)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()


def _short_lines(content: bytes) -> bytes:
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    ends = np.flatnonzero(np.frombuffer(b"\n" + content + b"\n", np.uint8) == ord("\n"))
    if np.diff(ends).max() <= LINE_BYTES + 1:
        return content
    return b"\n".join(line if len(line) <= LINE_BYTES else b"" for line in content.split(b"\n"))


def _utf8(content: bytes) -> bytes:
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace").encode()
    return content


def _paired_quotes(content: bytes, delimiter: int) -> bytes:
    """Blank the quotes of every line in which they do not open and close whole fields."""
    if b'"' not in content:
        return content
    quote, end = ord('"'), ord("\n")
    text = np.frombuffer(b"\n" + content + b"\n", np.uint8)
    quotes = np.flatnonzero(text == quote)
    line = np.searchsorted(np.flatnonzero(text == end), quotes)
    first = np.searchsorted(line, line)  # place of the line's first quote among all quotes
    opens = (np.arange(len(quotes)) - first) % 2 == 0
    before, after = text[quotes - 1], text[quotes + 1]
    fits = np.where(
        opens,
        np.isin(before, [delimiter, end, quote]),
        np.isin(after, [delimiter, end, ord("\r"), quote]),
    )
    wrong = np.unique(np.concatenate([line[~fits], line[np.bincount(line)[line] % 2 == 1]]))
    if not len(wrong):
        return content
    text = text.copy()
    text[quotes[np.isin(line, wrong)]] = ord(" ")
    return text[1:-1].tobytes()


def csv_header(path: Path) -> tuple[list[str], str]:
    """Column names and delimiter, from the first line alone."""
    try:
        with (
            open_bytes(path) as raw,
            io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="") as text,
        ):
            line = text.readline(LINE_BYTES)
    except FileNotFoundError:
        raise DataError(f"No file at {path}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"Cannot read {path}: {plain_reason(error)}.") from None
    if not line.strip():
        raise DataError(f"{path} is empty: expected a line of column names.")
    if line.endswith("\r"):
        raise DataError(f"{path}: its lines end with CR alone. Save it with LF or CR LF line ends.")
    delimiter = max(",;\t|", key=line.count)
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"{path} does not begin with a line of column names: {error}.") from None
    check_names(names, str(path))
    return names, delimiter


def check_names(names: list[str], where: str) -> None:
    """No two columns may have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{where} has two columns named '{shown(name)}'. Rename one.")
        seen.add(name)


def shown(text: str) -> str:
    """A name from a file as it can be printed: short, on one line, no control characters."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= 60 else clean[:57] + "..."


def plain_reason(error: BaseException) -> str:
    """A reader's own words, on one line, without the path that is named already."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.rsplit("': ", 1)[-1].split()).rstrip(". ")


def check_columns(names: list[str], schema: Schema, where: str) -> None:
    """Every declared column must be there, and no other unless the schema ignores it."""
    if schema.image:
        raise DataError(f"{where} is a table, but the schema declares an image.")
    check_names(names, where)
    declared = [c.name for c in schema.columns]
    for name in declared:
        if name not in names:
            listed = [shown(n) for n in names[:NAMES_SHOWN]] + ["..."] * (len(names) > NAMES_SHOWN)
            raise DataError(
                f"{where} has no column '{name}', which the schema declares. It has: "
                f"{', '.join(listed)}."
            )
    extra = [n for n in names if n not in declared and n not in schema.ignore]
    if extra:
        name = shown(extra[0])
        raise DataError(
            f"{where} has a column '{name}' that the schema does not declare. Declare it, or "
            f'leave it out with ignore = ["{name}"].'
        )


def to_arrow(frame: object) -> pa.Table:
    """Any frame as an Arrow table; a pandas column of objects becomes texts."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pd.DataFrame):
        return pa.table({str(n): _pandas_column(frame[n]) for n in frame.columns})
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise DataError(
        f"Expected a path, a pandas, Arrow or Polars frame, or (images, labels) arrays; got "
        f"{type(frame).__name__}."
    )


def _pandas_column(column: pd.Series) -> pa.Array:
    if column.dtype != object:
        return pa.Array.from_pandas(column)
    # Cell by cell: a kind guessed from all cells together could turn on one of them.
    texts = [
        None if absent else canonical(v).encode("utf-8", "replace")
        for v, absent in zip(column, column.isna(), strict=True)
    ]
    return pa.array(texts, pa.binary())


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
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        try:
            return numbers(pc.cast(pc.cast(array, pa.date32(), safe=False), pa.int32()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    # Text by text: how one row is written must not change how another is read.
    coded = values(array)
    table = np.asarray([*map(_day, coded.distinct), np.nan])
    return table[coded.codes]


def _day(text: str) -> float:
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            stamp = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
            moment = datetime.datetime(int(stamp.year), int(stamp.month), int(stamp.day))
        except (ValueError, TypeError, OverflowError):  # no date, or before the year 1
            return np.nan
    if moment.tzinfo is not None:
        with suppress(OverflowError):  # on the first or the last day there is
            moment = moment.astimezone(datetime.UTC)
    return float((moment.date() - EPOCH).days)


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
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_large_binary(array.type):
        return array.view(pa.large_string())
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
    if pa.types.is_string(array.type):
        array = array.view(pa.binary())
    elif pa.types.is_large_string(array.type):
        array = array.view(pa.large_binary())
    items = map(_item, array) if pa.types.is_temporal(array.type) else array.to_pylist()
    return [
        None
        if v is None
        else v.decode("utf-8", "replace")
        if isinstance(v, bytes)
        else canonical(v)
        for v in items
    ]


def _item(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):  # a moment that Python has no name for
        return None
