"""Laws of encoding: rows read together are encoded as each is alone, within what is declared."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from helpers import table_schema

import limbeck as lk
from limbeck.data import Rows

COLUMNS = (
    lk.Numeric(name="n", min=-5.0, max=10.0),
    lk.Numeric(name="m", integer=True, min=0, max=100, missing=True, outside="missing"),
    lk.Numeric(name="log", min=0.0, max=1e6, scale="log", step=0.01),
    lk.Date(
        name="day", min=datetime.date(2000, 1, 1), max=datetime.date(2020, 1, 1), missing=True
    ),
    lk.Date(
        name="german",
        min=datetime.date(2000, 1, 1),
        max=datetime.date(2020, 1, 1),
        format="%d.%m.%Y",
    ),
    lk.DateTime(
        name="at", min=datetime.datetime(2000, 1, 1), max=datetime.datetime(2020, 1, 1), step="1 hour"
    ),
    lk.Duration(name="long", min="0:00", max="36:00"),
    lk.Category(name="c", values=("a", "b", "c")),
    lk.Category(name="d", values=("a", "b"), missing=True, outside="missing"),
    lk.Category(name="e", values=("a", "b"), outside="b"),
    lk.Category(name="f", values=(False, True), boolean=True),
    lk.Category(name="y", values=("no", "yes"), label=True),
)  # fmt: skip
SCHEMA = lk.Schema(dataset="laws", rows=50, columns=COLUMNS)
CELLS = {
    "n": ["1", "-5", "10", "1e300", "-1e300", "nan", "", "x", "0.30000000000000004", "7,5", "-0", "1e-9"],
    "m": ["0", "100", "101", "-1", "3.7", "", "NA", "x", "99999999999999999999"],
    "log": ["0", "0.01", "1e6", "1e7", "-3", "", "?", "12.34"],
    "day": ["2000-01-01", "2019-12-31", "1999-12-31", "2021", "", "01.02.2010", "today", "2010-02-03T23:00-05:00", "20100203"],
    "german": ["01.02.2010", "2010-02-01", "31.12.1999", "02.30.2010", "", "x", "1.2.2010"],
    "at": ["2000-01-01T00:00", "2010-05-06 07:08:09", "2010-05-06T07:08+01:00", "", "x", "2030-01-01"],
    "long": ["0:00", "36:00", "PT15M", "99:00", "-1:00", "", "x", "1.5 h"],
    "c": ["a", "b", "c", "d", "", "A", " a ", "1"],
    "d": ["a", "b", "z", "", "NA"],
    "e": ["a", "b", "z", "", "NA"],
    "f": ["yes", "no", "TRUE", "0", "1", "perhaps", ""],
    "y": ["yes", "no", "unsure", "", "YES"],
}  # fmt: skip


def _texts(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(cells, count) for name, cells in CELLS.items()})


def _csv(rows: pd.DataFrame, folder: Path) -> object:
    path = folder / "rows.csv"
    rows.to_csv(path, index=False)
    return path


def _parquet(rows: pd.DataFrame, folder: Path) -> object:
    path = folder / "rows.parquet"
    rows.astype(str).to_parquet(path)
    return path


READERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "csv": _csv,
    "parquet": _parquet,
    "pandas": lambda rows, folder: rows,
    "pandas objects": lambda rows, folder: rows.astype(object),
    "pandas categories": lambda rows, folder: rows.astype("category"),
    "arrow": lambda rows, folder: pa.Table.from_pandas(rows.astype(str), preserve_index=False),
    "polars": lambda rows, folder: polars.DataFrame({n: rows[n].tolist() for n in rows.columns}),
}


def _same(one: Rows, two: list[Rows]) -> None:
    for name in ("cells", "labels", "states"):
        parts = np.concatenate([getattr(rows, name) for rows in two])
        assert getattr(one, name).tobytes() == parts.tobytes(), name


@pytest.mark.parametrize("reader", READERS)
def test_reading_together_is_reading_apart(reader: str, tmp_path: Path) -> None:
    """Encoded cells, labels and states; a strange row first, last, in the middle, and twice."""

    def read(rows: pd.DataFrame) -> Rows:
        return lk.read(READERS[reader](rows, tmp_path), SCHEMA)._encoded()

    rows = _texts(24, seed=1)
    _same(read(rows), [read(rows.iloc[[i]]) for i in range(len(rows))])
    _same(read(rows), [read(rows.iloc[:7]), read(rows.iloc[7:])])
    strange = pd.DataFrame({name: [cells[-1]] for name, cells in CELLS.items()})
    for place in (0, 11, 24):
        parts = [rows.iloc[:place], strange, rows.iloc[place:]]
        whole = read(pd.concat(parts, ignore_index=True))
        _same(whole, [read(part) for part in parts if len(part)])


@pytest.mark.parametrize("column", SCHEMA.columns, ids=lambda c: c.name)
def test_an_encoded_cell_depends_on_nothing_but_itself(column: lk.Numeric) -> None:
    """Whatever else its column holds, and however often."""
    name, cells = column.name, CELLS[column.name]

    def encoded(listed: list[str]) -> list[bytes]:
        frame = pd.DataFrame({n: [c[0]] * len(listed) for n, c in CELLS.items()} | {name: listed})
        rows = lk.read(frame, SCHEMA)._encoded()
        place = [c.name for c in SCHEMA.inputs].index(name) if column in SCHEMA.inputs else None
        found = rows.labels if place is None else rows.cells[:, place]
        states = rows.states[:, [c.name for c in SCHEMA.columns].index(name)]  # type: ignore[index]
        return [a.tobytes() + b.tobytes() for a, b in zip(found, states, strict=True)]

    alone = {cell: encoded([cell])[0] for cell in cells}
    for listed in (cells, cells[::-1], cells * 3, [cells[-1]] * 9 + cells):
        assert encoded(listed) == [alone[cell] for cell in listed]


def test_an_encoded_cell_lies_in_the_unit_interval() -> None:
    """What features see of any row: numbers in [0, 1], and one value of a category at most."""
    rows = lk.read(_texts(200, seed=2), SCHEMA)._encoded()
    slots = SCHEMA.expand(rows.cells)
    assert slots.shape == (200, SCHEMA.slots) and np.isfinite(slots).all()
    assert slots.min() >= 0 and slots.max() <= 1
    start = 0
    for column in SCHEMA.inputs:
        block = slots[:, start : start + column.slots]
        start += column.slots
        if isinstance(column, lk.Category):
            assert set(block.sum(axis=1).tolist()) <= {0.0, 1.0}
            assert set(np.unique(block).tolist()) <= {0.0, 1.0}
    for strange in (1e30, -1e30, np.inf, np.nan):
        wild = np.full_like(rows.cells, strange)
        numbers = lk.Numeric(name="x", min=0, max=1, missing=True).expand(wild[:, 0])
        assert numbers.min() >= 0 and numbers.max() <= 1


def test_states_are_read_row_by_row() -> None:
    rows = _texts(40, seed=3)
    whole = lk.read(rows, SCHEMA)._encoded().states
    assert whole is not None
    for at in (0, 13, 39):
        alone = lk.read(rows.iloc[[at]], SCHEMA)._encoded().states
        assert alone is not None and (alone[0] == whole[at]).all()


@pytest.mark.parametrize(("low", "high"), [(0.0, 255.0), (0.0, 1.0), (-1.0, 1.0)])
def test_pixels_are_scaled_by_what_is_declared(low: float, high: float) -> None:
    schema = lk.Schema(
        dataset="p", rows=9, columns=(lk.Image(height=2, width=2, min=low, max=high),)
    )
    image = schema.image
    assert image is not None
    rng = np.random.default_rng(0)
    pixels = rng.uniform(low, high, (5, 2, 2, 1)).astype(np.float32)
    pixels[0] *= 0.3
    for odd in (np.nan, np.inf, -np.inf, 1e30, -1e30, high + 5, low - 5):
        strange = np.full((1, 2, 2, 1), odd, np.float32)
        whole = image.expand(image.encode(np.concatenate([pixels, strange])))
        assert whole.min() >= 0 and whole.max() <= 1
        apart = [image.expand(image.encode(p[None])) for p in (*pixels, strange[0])]
        assert whole.tobytes() == np.concatenate(apart).tobytes()
        assert whole[:5] == pytest.approx(
            ((pixels - low) / (high - low)).reshape(5, 4), rel=1e-5, abs=1e-6
        )


def test_an_id_is_read_as_the_schema_says() -> None:
    """A blank more, or a way of writing, makes no other person; no id makes none."""
    person = lk.Person(column="who", rows_at_most=1)
    rows = _texts(6, seed=1).assign(y="yes", who=["7", " 7 ", "7.0", "", None, "8"])
    given = lk.read(rows, lk.Schema(dataset="laws", rows=50, columns=COLUMNS, person=person))
    kept = given._bounded(b"key")
    assert (kept.labels >= 0).sum() == 2 and kept.sharing is not None
    persons = [p.tobytes() for p in kept.sharing.persons]
    assert len({*persons[:3]}) == 1 and persons[5] != persons[0]
    assert not kept.sharing.persons[3:5].any()


def test_no_error_quotes_a_cell(tmp_path: Path) -> None:
    """Whatever is wrong with a file: its words are not a cell's."""
    secret = "S3CR3T-cell-content"
    broken: dict[str, bytes] = {
        "r.parquet": b"PAR1" + secret.encode() + b"PAR1",
        "r.csv.gz": b"\x1f\x8b" + secret.encode(),
        "r.npz": b"PK\x03\x04" + secret.encode(),
        "r.png": b"\x89PNG" + secret.encode(),
        "r.csv": b"a,b\n" + secret.encode() + b",1\n",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(lk.LimbeckError) as refused:
            lk.read(tmp_path / name, table_schema())._encoded()
        assert secret not in str(refused.value) and "\n" not in str(refused.value)
