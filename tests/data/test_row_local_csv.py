"""A row of a CSV file is read alike wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_row_local import COLUMNS, DEEP, LINE, TEXTS, rows_of, schema_of

import limbeck as lk

# ---- CSV ----------------------------------------------------------------------------------------


@contextmanager
def small_blocks() -> Iterator[Path]:
    with (
        mock.patch("limbeck.data.csv_files.LINE_BYTES", LINE),
        mock.patch("limbeck.data.csv_files.BLOCK_BYTES", 4 * LINE - 1),
        TemporaryDirectory() as folder,
    ):
        yield Path(folder) / "t.csv"


def fields() -> st.SearchStrategy[bytes]:
    quoted = st.sampled_from(TEXTS).map(lambda t: '"' + t.replace('"', '""') + '"')
    texts = st.one_of(st.sampled_from(TEXTS), quoted, st.just('"a,;b"'), st.just('""""'))
    wild = st.text('",;a1 \r\t', max_size=6).map(str.encode)
    return st.one_of(
        texts.map(str.encode), wild, st.binary(max_size=5).map(lambda b: b.replace(b"\n", b""))
    )


def lines(delimiter: bytes) -> st.SearchStrategy[bytes]:
    record = st.lists(fields(), min_size=2, max_size=2).map(delimiter.join)
    other = st.lists(fields(), max_size=4).map(delimiter.join)
    sized = st.integers(LINE - 2, LINE + 3).map(lambda n: b"1" + delimiter + b"b" * (n - 2))
    endless = st.integers(3 * LINE, 12 * LINE).map(lambda n: b"1" + delimiter + b"b" * n)
    return st.one_of(record, record, record, sized, sized, other, endless)


@DEEP
@given(st.data(), st.sampled_from([b",", b";", b"\t", b"|"]), st.sampled_from([b"\n", b"\r\n"]))
def test_csv(data: st.DataObject, delimiter: bytes, end: bytes) -> None:
    schema = schema_of("numbers", "values")
    body = data.draw(st.lists(lines(delimiter), min_size=1, max_size=12))
    last = data.draw(st.sampled_from([end, b""]))
    header = b"n" + delimiter + b"c" + end
    with small_blocks() as path:

        def read(some: list[bytes], last: bytes = end) -> list[tuple[object, ...]]:
            path.write_bytes(header + end.join(some) + last)
            return rows_of(path, schema)

        together = read(body, last)
        alone = [row for line in body for row in read([line])]
    assert together == alone


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@DEEP
@given(some=st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=9))
def test_csv_of_any_bytes_in_one_column(encoding: str, some: list[bytes]) -> None:
    columns = (COLUMNS["values"],)
    schema = lk.Schema(dataset="d", rows=9, encoding=encoding, columns=columns)
    with small_blocks() as path:

        def read(some: list[bytes]) -> list[tuple[object, ...]]:
            path.write_bytes(b"c\n" + b"".join(line + b"\n" for line in some))
            return rows_of(path, schema)

        assert read(some) == [row for line in some for row in read([line])]


def test_a_byte_order_mark_before_a_record_is_read_alike_wherever_it_stands() -> None:
    schema = schema_of("numbers", "values")
    marked = b"\xef\xbb\xbf1,a"
    with small_blocks() as path:
        found = []
        for before in (b"", b"2,b\n"):
            path.write_bytes(b"n,c\n" + before + marked + b"\n")
            found.append(rows_of(path, schema)[-1])
        assert found[0] == found[1]


def test_a_line_of_the_longest_length_is_kept_wherever_it_stands() -> None:
    """With CR LF it was kept or left out by where in the file it began."""
    schema = schema_of("values")
    longest = b"b" * LINE
    with small_blocks() as path:
        for offset in range(5 * LINE):
            before = (b"a" * 29 + b"\r\n") * (offset // 31) + b"a" * (offset % 31) + b"\r\n"
            path.write_bytes(b"c\r\n" + before + longest + b"\r\na\r\n")
            assert (longest.decode(),) in rows_of(path, schema), offset
            path.write_bytes(b"c\r\n" + before + longest + b"b\r\na\r\n")
            assert (longest.decode() + "b",) not in rows_of(path, schema), offset
