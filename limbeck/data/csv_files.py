"""CSV in, of any size: one line is one record, and no line can change how another is read."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ..errors import DataError
from ..schema import Category, Numeric, Raw, Schema
from .ahead import in_order
from .cells import PLAIN, raw_columns
from .column_names import check_columns, plain_reason

BLOCK_BYTES = 1 << 23
"""How much of a file is parsed at a time."""

LINE_BYTES = 1 << 20
"""Longest record; a longer one is left out."""
CODED = pa.dictionary(pa.int32(), pa.binary())
"""A column of texts that come again and again."""


class CsvSource:
    """A CSV file, gzipped or not; comma, semicolon, tab or bar between fields."""

    def __init__(self, path: Path, encoding: str = "utf-8", delimiter: str | None = None) -> None:
        self.path, self.encoding = path, encoding
        self.names, self.delimiter = csv_header(path, encoding, delimiter)

    def check(self, schema: Schema) -> None:
        check_columns(self.names, schema, str(self.path))

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        types = _types(schema)

        def read(lines: bytes) -> list[Mapping[str, Raw]]:
            clean = cleaned(lines, self.delimiter, self.encoding)
            table = self._table(clean, types)
            return [raw_columns(batch, schema, schema.number_marks) for batch in table.to_batches()]

        try:
            with closing(in_order(read, records(self.path))) as read_blocks:
                for batches in read_blocks:
                    yield from batches
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"Cannot read {self.path}: {plain_reason(error)}.") from None

    def _table(self, lines: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        """Whole lines as a table: of numbers, if all cells are plain ones; else of their bytes.

        Numbers that Arrow reads are those of `cells.numbers`, of the bytes: it takes all cells of a
        column or none. A cell that it takes for "not a number" is left to `cells`, which tells an empty
        one from others.
        """
        if pa.float64() in types.values():
            with suppress(pa.ArrowInvalid):
                table = self._parsed(lines, types)
                if not any(_has_nan(c) for c in table.columns if c.type == pa.float64()):
                    return table
        return self._parsed(lines, {n: _as_bytes(kind) for n, kind in types.items()})

    def _parsed(self, lines: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        """Whole lines as a table of these types.

        Arrow's own threads get nothing of Python's to hold (no file, no bytes, no function): one
        that let go of it while the program ends would bring it down.
        """
        memory = pa.BufferOutputStream()
        memory.write(b"\n")  # else Arrow drops a byte order mark that the first record begins with
        memory.write(lines)
        return pa_csv.read_csv(
            pa.BufferReader(memory.getvalue()),
            read_options=pa_csv.ReadOptions(
                # Room for the longest line, each of whose bytes may have become three.
                column_names=self.names, block_size=4 * LINE_BYTES, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if b'"' in lines else False,
                invalid_row_handler=lambda row: "skip",
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )  # fmt: skip


def _types(schema: Schema) -> dict[str, pa.DataType]:
    """How each column is read from bytes: numbers and codes at once, where it comes to the same."""
    numbers = pa.float64() if schema.number_marks == PLAIN else pa.binary()
    kinds = {Numeric: numbers, Category: CODED}
    types = {column.name: kinds.get(type(column), pa.binary()) for column in schema.columns}
    return types | {name: CODED for name in schema.names_read if name not in types}


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if kind == pa.float64() else kind


def _has_nan(numbers: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(numbers)).as_py())


def open_bytes(path: Path) -> IO[bytes]:
    """A file's bytes, unpacked where they are gzipped, whatever the file is called."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else open(path, "rb")


def records(path: Path) -> Iterator[bytes]:
    """The lines after the first, many at a time."""
    header = True
    for lines in _whole_lines(path):
        if header:
            lines, header = lines[lines.find(b"\n") + 1 :] if b"\n" in lines else b"", False
        if lines.lstrip(b"\r\n"):  # which copies nothing of lines that begin with a cell
            yield lines


def cleaned(lines: bytes, delimiter: str, encoding: str) -> bytes:
    """Lines so cleaned that none changes how others are read.

    One line is one record, and lines end with LF (or CR LF); a CR elsewhere becomes a blank. Bytes
    that are no text in the file's encoding become replacement characters; quotes that do not pair
    up within their line become blanks (an open quote would swallow the records after it); a line
    longer than `LINE_BYTES` is left out.
    """
    return _paired_quotes(_utf8(_short_lines(lines), encoding), ord(delimiter))


def _whole_lines(path: Path) -> Iterator[bytes]:
    """The file in pieces that end where a line ends; an endless line is left empty."""
    carry, dropping = b"", False
    with open_bytes(path) as file:
        while raw := file.read(BLOCK_BYTES):
            if dropping:  # the rest of a line that is too long
                dropping = b"\n" not in raw
                raw = b"" if dropping else raw[raw.find(b"\n") :]
            cut = raw.rfind(b"\n") + 1
            whole = b"".join([carry, memoryview(raw)[:cut]]) if cut else b""  # copied once
            carry = raw[cut:] if cut else carry + raw
            # One more than the longest: it may be the CR of the line's end. What is longer is too
            # long whatever follows; what is not waits for the length without its end.
            if len(carry) > LINE_BYTES + 1:
                carry, dropping = b"", True
            if cut:
                yield whole
    if carry:
        yield carry.removesuffix(b"\r") + b"\n"


def _short_lines(content: bytes) -> bytes:
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    half = LINE_BYTES // 2
    if all(content.find(b"\n", at, at + half) >= 0 for at in range(0, len(content) - half, half)):
        return content  # no two ends of lines are further apart than the longest line
    ends = np.flatnonzero(np.frombuffer(b"\n" + content + b"\n", np.uint8) == ord("\n"))
    if np.diff(ends).max() <= LINE_BYTES + 1:
        return content
    return b"\n".join(line if len(line) <= LINE_BYTES else b"" for line in content.split(b"\n"))


def _utf8(content: bytes, encoding: str) -> bytes:
    if encoding == "utf-8" and content.isascii():
        return content
    return content.decode(encoding, "replace").encode()


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
        np.isin(after, [delimiter, end, quote]),
    )
    wrong = np.unique(np.concatenate([line[~fits], line[np.bincount(line)[line] % 2 == 1]]))
    if not len(wrong):
        return content
    text = text.copy()
    text[quotes[np.isin(line, wrong)]] = ord(" ")
    return text[1:-1].tobytes()


def csv_header(
    path: Path, encoding: str = "utf-8", delimiter: str | None = None
) -> tuple[list[str], str]:
    """Column names and delimiter, from the first line alone."""
    try:
        with open_bytes(path) as file:
            line = file.readline(LINE_BYTES)
    except FileNotFoundError:
        raise DataError(f"No file at {path}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"Cannot read {path}: {plain_reason(error)}.") from None
    if not line.strip():
        raise DataError(f"{path} is empty: expected a line of column names.")
    text = _header_text(line, path, encoding)
    if text.lower().startswith("sep=") and len(text.strip()) <= len("sep=;"):
        raise DataError(f"{path} begins with `sep=`, a line for spreadsheets alone. Take it out.")
    if "\r" in text.removesuffix("\n").removesuffix("\r"):
        raise DataError(f"{path}: its lines end with CR alone. Save it with LF or CR LF line ends.")
    delimiter = delimiter or max(",;\t|", key=text.count)
    try:
        names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"{path} does not begin with a line of column names: {error}.") from None
    return names, delimiter


def _header_text(line: bytes, path: Path, encoding: str) -> str:
    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path} is a text in UTF-16. Save it in UTF-8.")
    try:
        return line.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: its column names are no text in {encoding}. Save the file in UTF-8, or name its "
            'encoding in the schema, such as encoding = "cp1252" (Windows, western Europe) or '
            '"latin-1"; for a draft: `limbeck schema --encoding`.'
        ) from None
