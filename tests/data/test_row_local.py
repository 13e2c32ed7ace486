"""Reading is row-local: rows read together give what each of them gives alone.

One row that changed how others are read would move every sum by far more than its own bound. So
each test here reads rows together and one by one, in their raw form, and compares every bit.
"""

from __future__ import annotations

import datetime
import itertools
import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

import limbeck as lk
from limbeck.data import READABLE, family, number, open_source
from limbeck.schema import Image, Numbers, Raw, Values, canonical

LINE = 64
COLUMNS = {
    "numbers": lk.Numeric(name="n", min=0, max=1),
    "days": lk.Date(name="d", min=datetime.date(2000, 1, 1), max=datetime.date(2001, 1, 1)),
    "values": lk.Category(name="c", values=("a",)),
    "seconds": lk.DateTime(
        name="t", min=datetime.datetime(2000, 1, 1), max=datetime.datetime(2001, 1, 1)
    ),
    "spans": lk.Duration(name="s", min="0:00", max="36:00"),
}
PATTERNED = (
    replace(COLUMNS["days"], format="%d.%m.%Y"),
    replace(COLUMNS["seconds"], format="%d.%m.%Y %H:%M"),
    replace(COLUMNS["seconds"], name="z", zone="UTC"),
)
TEXTS = [
    "1", " 2 ", "+3", "-0", "1.", ".5", "0.1", "1e3", "1e999", "-1e-999", "9007199254740993", "NA",
    "0.30000000000000004", "123456789.123456789", "18446744073709551616", "", " ", "nan", "-inf",
    "x", "true", "False", "1_0", "0x10", "1,5", "\u0661", "\xa07", "NaN(1)", "20100203", "2010",
    "2010-02-03", "2010-02-03T23:00:00-05:00", "2010-02-03 04:05:06.123456789", "0001-01-01", "today",
    "03.02.2010", "03.02.2010 23:59", "12:30", "1:02:03.5", "-1 day, 23:59:59", "2 days 00:00:01.000000001",
    "PT15M", "1.5 h", "-0:30", "1e3 s", "9999-99-99", "\x00", "a", "A", "\ufeff1", "\ufffd", "\U0001f600", "1\u2028", "{}", "null",
]  # fmt: skip
DEEP = settings(max_examples=100, deadline=None)


def schema_of(*reads: str) -> lk.Schema:
    columns = tuple(COLUMNS[r] for r in reads)
    return lk.Schema(dataset="d", rows=9, names_are_right=True, columns=columns)


def cells(raw: Raw) -> list[object]:
    """A raw column cell by cell: bits of numbers and whether a cell was left unread, canonical texts."""
    if isinstance(raw, Values):
        return [None if c < 0 else canonical(raw.distinct[c]) for c in raw.codes]
    if not isinstance(raw, Numbers):
        raw = Numbers(raw, np.zeros(len(raw), bool))
    absent = struct.pack("d", np.nan)
    bits = [absent if np.isnan(v) else struct.pack("d", v) for v in raw.values.tolist()]
    return list(zip(bits, raw.unread.tolist(), strict=True))


def rows_of(source: object, schema: lk.Schema) -> list[tuple[object, ...]]:
    """Every row of a source, each declared column in its raw form."""
    opened = open_source(source, schema.encoding)
    opened.check(schema)
    found: list[tuple[object, ...]] = []
    for chunk in opened.chunks(schema):
        columns = [
            [picture.tobytes() for picture in chunk[c.name]]  # type: ignore[union-attr]
            if isinstance(c, Image)
            else cells(chunk[c.name])
            for c in schema.columns
        ]
        found += zip(*columns, strict=True)
    return found


# ---- Arrow, Polars, pandas ----------------------------------------------------------------------

MOMENTS = [None, 0, 1, -1, 86_399, 86_400, -86_401, 10**9, 2**62, -(2**62)]
ZONES = ("UTC", "Europe/Berlin", "+05:30")
OPTIONAL = [
    getattr(pa, name)() for name in ("json_", "uuid", "bool8") if hasattr(pa, name)
]  # by version of Arrow
PLAIN_BYTES = [None, *(t.encode() for t in TEXTS), b"\xff\xfe", b"1\xff"]


def arrow_cells() -> list[tuple[pa.DataType, list[object]]]:
    """Every type a frame can bring, with cells that it can hold."""
    texts = [None, *TEXTS]
    pools: list[tuple[pa.DataType, list[object]]] = [
        *((t, texts) for t in (pa.string(), pa.large_string(), pa.string_view())),
        *((t, PLAIN_BYTES) for t in (pa.binary(), pa.large_binary(), pa.binary_view())),
        (pa.binary(2), [None, b"12", b"1 ", b"xx", b"\xff1", b"na"]),
        (pa.dictionary(pa.int8(), pa.string()), texts),
        (pa.dictionary(pa.int32(), pa.large_binary()), PLAIN_BYTES),
        (pa.dictionary(pa.int8(), pa.float64()), [None, 0.5, 1.0, np.nan]),
        (pa.bool_(), [None, True, False]),
        (pa.null(), [None]),
        *((t, [None, 0, 1, 127]) for t in (pa.int8(), pa.uint8(), pa.int16(), pa.uint32())),
        (pa.int64(), [None, 0, 20100203, 2**53 + 1, -(2**63), 2**63 - 1]),
        (pa.uint64(), [None, 0, 2**53 + 1, 2**64 - 1]),
        (pa.float16(), [None, *map(np.float16, (0.5, 1, np.nan, np.inf))]),
        *(
            (t, [None, 0.1, 1.0, -0.0, 1e30, 20100203.0, np.nan, np.inf])
            for t in (pa.float32(), pa.float64())
        ),
        (pa.decimal128(20, 3), [None, Decimal("1.000"), Decimal("0.1"), Decimal(2**53 + 1)]),
        (pa.decimal256(60, 3), [None, Decimal("1.000"), Decimal("0.1"), Decimal(10**40)]),
        (pa.date32(), [None, 0, 1, -1, 2**31 - 1, -(2**31)]),
        (pa.date64(), [None, 0, 86_400_000, -86_400_000, 86_400_000 * 10**9]),
        *((pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us", "ns")),
        *((pa.timestamp("us", zone), MOMENTS) for zone in ZONES),
        (pa.time32("s"), [None, 0, 86_399]),
        (pa.time64("ns"), [None, 0, 1, 86_399 * 10**9 + 1]),
        *((pa.duration(unit), MOMENTS) for unit in ("s", "ns")),
    ]
    pools += [(kind, {"uuid": [None, b"1" * 16, b"\xff" * 16], "bool8": [None, 0, 1, 2]}.get(
        str(kind.extension_name).split(".")[-1], texts)) for kind in OPTIONAL]  # fmt: skip
    return pools


def arrow(kind: pa.DataType, some: list[object]) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(some, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return pa.array(some, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(some, kind)


@pytest.mark.parametrize(
    ("kind", "pool"), [pytest.param(k, pool, id=str(k)) for k, pool in arrow_cells()]
)
@pytest.mark.parametrize("reads", list(READABLE))
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_arrow(reads: str, kind: pa.DataType, pool: list[object], data: st.DataObject) -> None:
    schema = schema_of(reads)
    if reads == "seconds" and getattr(kind, "tz", None):
        schema = replace(schema, columns=PATTERNED[2:])
    name = schema.columns[0].name
    if family(kind) not in READABLE[reads]:
        with pytest.raises(lk.DataError, match=f"column '{name}'.*cannot be read"):
            lk.read(pa.table({name: arrow(kind, pool)}), schema)
        return
    some = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=12))
    cut = data.draw(st.integers(0, len(some)))
    parts = [arrow(kind, part) for part in (some[:cut], some[cut:])]
    together = rows_of(pa.table({name: pa.chunked_array(parts, kind)}), schema)
    alone = [row for v in some for row in rows_of(pa.table({name: arrow(kind, [v])}), schema)]
    assert together == alone


@DEEP
@given(st.text("0123456789.eE+-naifty() \t", max_size=12))
def test_what_arrow_takes_for_a_number_is_that_number(text: str) -> None:
    """A column that Arrow casts at one go gives each cell what its text gives alone."""
    for prepared in (text, text.strip(" \t")):
        try:
            found = pc.cast(pa.array([prepared]), pa.float64())[0].as_py()
        except pa.ArrowInvalid:
            continue
        assert cells(np.asarray([found])) == cells(np.asarray([number(text)]))


OBJECTS = [
    None, np.nan, pd.NA, pd.NaT, 0, 1, 2**53 + 1, 2**70, 10**5000, 0.5, 1.0, 1e300, np.inf, True, False,
    np.float32(0.1), np.int8(3), np.bool_(True), "1", " 1 ", "x", "", "\ud800", b"1", b"\xff", [1], {},
    Decimal("1.0"), Decimal("NaN"), Decimal("sNaN"), datetime.date(2010, 2, 3), np.arange(3),
    datetime.datetime(2010, 2, 3, 23), pd.Timestamp("2010-02-03", tz="US/Eastern"), pd.Timedelta(1),
    np.datetime64("2010-02-03"), object, ("a", 1), *TEXTS,
]  # fmt: skip


def objects(some: list[object]) -> pd.DataFrame:
    column = np.empty(len(some), object)
    for place, cell in enumerate(some):
        column[place] = cell
    return pd.DataFrame(dict.fromkeys("ndctsz", pd.Series(column, dtype=object)))


@DEEP
@given(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=12))
def test_pandas_objects(some: list[object]) -> None:
    for columns in (tuple(COLUMNS.values()), PATTERNED):
        schema = lk.Schema(dataset="d", columns=columns, ignore=tuple("ndctsz"))
        alone = [row for cell in some for row in rows_of(objects([cell]), schema)]
        assert rows_of(objects(some), schema) == alone


@pytest.mark.parametrize("reads", list(READABLE))
@DEEP
@given(data=st.data())
def test_a_cell_that_changes_the_type_of_its_pandas_column(reads: str, data: st.DataObject) -> None:
    """One strange cell makes a column of objects out of a typed one: the others are as before."""
    pools = {
        "numbers": [[1, 2**53 + 1], [0.1, 1.0, 1e300], [True, False], [Decimal("0.1")]],
        "days": [[20100203], [pd.Timestamp("2010-02-03"), pd.Timestamp("1700-01-01")], TEXTS],
        "values": [[1, 2], [0.5, 1.0], [True, False], [pd.Timestamp("2010-02-03 01:02:03.5")]],
        "seconds": [[pd.Timestamp("2010-02-03 01:02:03.123456789"), pd.Timestamp("1700-01-01")], TEXTS],
        "spans": [[1, 2**53 + 1], [0.5, 1e300, np.inf, -1e-9], TEXTS,
            [pd.Timedelta(-1), pd.Timedelta(123456789012345), pd.Timedelta("-3 days")]],
    }  # fmt: skip
    schema = schema_of(reads)
    if reads in ("days", "seconds") and data.draw(st.booleans()):
        pattern = {"days": "%d.%m.%Y", "seconds": "%d.%m.%Y %H:%M"}[reads]
        schema = replace(schema, columns=(replace(schema.columns[0], format=pattern),))
    name = schema.columns[0].name
    pool = data.draw(st.sampled_from(pools[reads]))
    some = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=5))
    typed = rows_of(pd.DataFrame({name: some}), schema)
    stranger = data.draw(st.sampled_from(["x", b"\xff", [1]]))
    assert rows_of(pd.DataFrame({name: [*some, stranger]}), schema)[:-1] == typed
    as_categories = pd.DataFrame(
        {name: pd.Categorical([*some, "x"], categories=list({*some, "x"}))}
    )
    assert rows_of(as_categories, schema)[:-1] == typed


@DEEP
@given(st.data())
def test_polars(data: st.DataObject) -> None:
    kinds = [
        (polars.String, [None, *TEXTS]), (polars.Binary, PLAIN_BYTES),
        (polars.Categorical, [None, *TEXTS]), (polars.Float64, [None, 0.1, 1.0, np.nan]),
        (polars.Int64, [None, 1, 2**53 + 1]), (polars.Boolean, [None, True]),
        (polars.Decimal(12, 2), [None, Decimal("1.00"), Decimal("0.25")]), (polars.Null, [None]),
    ]  # fmt: skip
    kind, pool = data.draw(st.sampled_from(kinds))
    some = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=9))
    schema = schema_of("numbers", "values")

    def frame(cells: list[object]) -> polars.DataFrame:
        column = polars.Series(cells, dtype=kind)
        return polars.DataFrame({"n": column, "c": column})

    together = rows_of(frame(some), schema)
    assert together == [row for cell in some for row in rows_of(frame([cell]), schema)]


# ---- Parquet ------------------------------------------------------------------------------------


def test_parts_of_a_folder_are_read_by_their_own_types(tmp_path: Path) -> None:
    """Made one type, a text in one part failed the whole folder and was printed."""
    parts = [
        pa.array([1, 2**53 + 1]), pa.array(["7", "secret", "0.1"]), pa.array([0.5, None]),
        pa.array([True]), pa.array([b"3"], pa.large_binary()), pa.nulls(1),
        pa.array(["1", "x"]).dictionary_encode(),
    ]  # fmt: skip
    schema = schema_of("numbers", "values")
    alone = []
    (tmp_path / "all").mkdir()
    for place, part in enumerate(parts):
        table = pa.table({"n": part, "c": part})
        pq.write_table(table, tmp_path / "all" / f"{place}.parquet")
        alone += rows_of(table, schema)
    assert rows_of(tmp_path / "all", schema) == alone
    assert len(alone) == sum(map(len, parts))


def test_a_part_without_a_column_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1], "c": ["a"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"n": [1], "x": ["secret"]}), tmp_path / "1.parquet")
    with pytest.raises(lk.DataError, match=r"1\.parquet has no column 'c'"):
        lk.read(tmp_path, schema_of("numbers", "values"))


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())]
)
def test_nested_columns_are_named(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"n": [1], "c": pa.nulls(1, kind)})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        with pytest.raises(lk.DataError, match=r"column 'c' holds lists.*ignore = \[\"c\"\]"):
            lk.read(source, schema_of("numbers", "values"))
    assert 'ignore = ["c"]' in lk.draft_schema(tmp_path / "t.parquet")


# ---- labels and images --------------------------------------------------------------------------

PICTURES = lk.Schema(
    dataset="d",
    columns=(lk.Image(height=1, width=1), lk.Category(name="y", values=(1,), label=True)),
)


@DEEP
@given(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=9))
def test_labels_in_a_list(some: list[object]) -> None:
    """NumPy typed them together, chunk by chunk: [True, False, 2] became [1, 0, 2]."""
    pixels = np.zeros((len(some), 1, 1), np.uint8)
    together = rows_of((pixels, some), PICTURES)
    assert together == [row for v in some for row in rows_of((pixels[:1], [v]), PICTURES)]


def test_labels_of_many_types() -> None:
    pixels = np.zeros((3, 1, 1), np.uint8)
    expected = [("true",), ("false",), ("2",)]
    assert [row[1:] for row in rows_of((pixels, [True, False, 2]), PICTURES)] == expected
    assert [row[1] for row in rows_of((pixels, [1, None, "1"]), PICTURES)] == ["1", None, "1"]
    for typed in (
        np.asarray([1.0, np.nan, 1]), pd.Series([1, None, 1], dtype="Int64"),
        np.asarray([1, None, 1], object), polars.Series([1, None, 1]), pa.array([1, None, 1]),
    ):  # fmt: skip
        assert [row[1] for row in rows_of((pixels, typed), PICTURES)] == ["1", None, "1"], typed
    texts = rows_of((pixels, np.asarray(["1", "1234567", "1"])), PICTURES)
    assert [row[1] for row in texts] == ["1", "1234567", "1"]


def test_pictures_of_every_mode(tmp_path: Path) -> None:
    modes = ["L", "RGB", "RGBA", "P", "1", "LA", "I;16", "CMYK"]
    alone = []
    for place, mode in enumerate(modes):
        ending = "jpg" if mode == "CMYK" else "png"
        for folder in ("all", f"one-{place}"):
            (tmp_path / folder / "1").mkdir(parents=True, exist_ok=True)
            picture = Picture.new(mode, (1, 1), 1)
            picture.save(tmp_path / folder / "1" / f"{place}.{ending}")
        alone += rows_of(tmp_path / f"one-{place}", PICTURES)
    assert rows_of(tmp_path / "all", PICTURES) == alone
    whole = (tmp_path / "all" / "1" / "1.png").read_bytes()
    for damaged in (b"", b"secret", whole[:40], whole.replace(b"IHDR", b"IHDX")):
        (tmp_path / "all" / "1" / "1.png").write_bytes(damaged)
        with pytest.raises(lk.DataError, match=r"Cannot read the image .*1\.png: it is"):
            rows_of(tmp_path / "all", PICTURES)


def test_pictures_of_other_sizes_are_cut_from_their_middle(tmp_path: Path) -> None:
    """Where the schema says so, each by itself, upright, in any mode; else they are refused by name."""
    wide = np.zeros((8, 40, 3), np.uint8)
    wide[:, 14:26] = 200  # a little more than the square in the middle
    exif = Picture.Exif()
    exif[0x0112] = 6  # lies on its side
    tall = Picture.fromarray(np.rot90(wide))
    pictures = {
        "a.png": (Picture.fromarray(wide), {}),
        "b.png": (Picture.fromarray(wide).convert("P"), {}),
        "c.png": (Picture.fromarray(wide).convert("RGBA"), {}),
        "d.jpg": (tall, {"exif": exif, "quality": 100}),
        "e.png": (Picture.new("RGB", (4, 4), (200, 200, 200)), {}),
    }
    (tmp_path / "1").mkdir()
    for name, (picture, how) in pictures.items():
        picture.save(tmp_path / "1" / name, **how)
    image = lk.Image(height=4, width=4, channels=3, fit="crop")
    schema = lk.Schema(dataset="photos", rows=5, columns=(image,))
    assert lk.Schema.parse(schema.toml()) == schema
    cells = lk.read(tmp_path, schema)._encoded().cells
    assert cells.shape == (5, 48) and np.abs(cells.astype(int) - 200).max() <= 8
    flat = lk.Schema(dataset="photos", rows=5, columns=(lk.Image(height=4, width=20, fit="crop"),))
    shown = lk.read(tmp_path, flat)._encoded().cells.reshape(5, 4, 20)
    assert shown[0, :, 10].min() > 150 and shown[3, :, 10].min() > 150
    assert shown[0, :, [0, -1]].max() < 50 and shown[3, :, [0, -1]].max() < 50
    with pytest.raises(lk.DataError, match=r'a\.png is 8x40 pixels .* fit = "crop"'):
        strict = lk.Image(height=4, width=4, channels=3)
        lk.read(tmp_path, lk.Schema(dataset="photos", rows=5, columns=(strict,)))._encoded()
    with pytest.raises(lk.SchemaError, match='expected fit = "crop"'):
        lk.Image(height=4, width=4, fit="stretch")


def test_a_cell_on_a_logarithmic_scale_is_encoded_alike_wherever_it_stands() -> None:
    """Logarithms come from loops over many cells at once: the last bit must not turn on their number."""
    values = np.random.default_rng(0).lognormal(5, 3, 200)
    for column in (
        lk.Numeric(name="n", min=0.5, max=1e5, scale="log"),
        lk.Numeric(name="n", integer=True, min=0, max=10**5, scale="log"),
        lk.Numeric(name="n", min=0, max=1e5, scale="log", step=0.01),
    ):
        alone = np.concatenate([column.encode(values[i : i + 1]) for i in range(len(values))])
        for first, rows in itertools.product(range(9), (1, 3, 7, 8, 15, 100)):
            together = column.encode(values[first : first + rows])
            assert together.tobytes() == alone[first : first + rows].tobytes()
