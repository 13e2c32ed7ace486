"""Schemas and columns: public bounds in, the owner's own values out."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck as lk
from limbeck.schema import Values, dataset_name


def test_a_schema_survives_its_file(tmp_path: object) -> None:
    schema = table_schema(ignore=("id",), rows=None)
    again = lk.Schema.parse(schema.toml())
    assert again == schema and again.digest == schema.digest
    assert table_schema(unit="one household").digest != schema.digest


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=8), min_size=1, unique=True))
def test_any_name_and_value_survives_the_file(name: str, values: list[str]) -> None:
    try:
        column = lk.Category(name=name, values=tuple(values))
    except lk.SchemaError:
        return  # two spellings of one value
    schema = lk.Schema(dataset="d", rows=5, columns=(column,))
    assert lk.Schema.parse(schema.toml()) == schema


def test_rows_come_back_as_they_were_declared() -> None:
    schema, rows = table_schema(), table_rows(300)
    held = lk.read(rows, schema)._encoded()
    back = schema.decode(held.cells, held.labels)
    assert list(back.columns) == list(rows.columns)
    assert np.array_equal(back["age"].isna(), rows["age"].isna())
    assert (back["age"].dropna() == rows["age"].dropna().astype(int)).all()
    assert np.allclose(back["income"], rows["income"].clip(-10, 1000), atol=1e-3)
    assert back["town"].isna().equals(rows["town"] == "?")
    assert (back["town"].dropna() == rows["town"][rows["town"] != "?"]).all()
    assert back["smoker"].dtype == bool and (back["smoker"] == rows["smoker"]).all()
    assert (back["seen"].dt.strftime("%Y-%m-%d") == rows["seen"]).all()
    assert (back["ill"] == rows["ill"]).all()


def test_kinds_of_decoded_columns() -> None:
    whole = lk.Numeric(name="n", integer=True, min=0, max=9)
    gaps = lk.Numeric(name="n", integer=True, min=0, max=9, missing=True)
    codes = lk.Category(name="c", values=(1, 2, 7))
    assert whole.decode(np.array([0.5], np.float32)).dtype == np.int64
    assert str(gaps.decode(np.array([np.nan, 0.5], np.float32)).dtype) == "Int64"
    assert codes.decode(np.array([2.0])).tolist() == [7]
    assert codes.decode(np.array([2.0])).dtype == np.int64


def test_wide_integers_keep_their_units() -> None:
    column = lk.Numeric(name="n", integer=True, min=0, max=1_000_000)
    values = np.array([0.0, 1.0, 123_457.0, 999_999.0, 1_000_000.0])
    assert column.decode(column.encode(values)).tolist() == values.astype(int).tolist()


@pytest.mark.parametrize(
    ("outside", "missing", "expected"),
    [
        ("clip", False, [0.0, 1.0, 0.5]),
        ("clip", True, [0.0, 1.0, np.nan]),
        ("missing", True, [np.nan] * 3),
    ],
)
def test_values_outside_the_bounds_follow_the_policy(
    outside: str, missing: bool, expected: list[float]
) -> None:
    column = lk.Numeric(name="n", min=0, max=10, outside=outside, missing=missing)
    cells = column.encode(np.array([-5.0, np.inf, np.nan]))
    assert np.array_equal(cells, np.array(expected, np.float32), equal_nan=True)


def test_undeclared_categories_follow_the_policy() -> None:
    raw = Values(np.array([0, 1, -1]), ["a", "strange"])
    plain = lk.Category(name="c", values=("a", "b"))
    gaps = lk.Category(name="c", values=("a", "b"), missing=True)
    other = lk.Category(name="c", values=("a", "b"), outside="b")
    assert plain.encode(raw).tolist() == [0, -1, -1]
    assert gaps.encode(raw).tolist() == [0, 2, 2]
    assert other.encode(raw).tolist() == [0, 1, -1]
    assert plain.expand(plain.encode(raw)).sum(axis=1).tolist() == [1, 0, 0]


def test_a_constant_column_is_fine() -> None:
    column = lk.Numeric(name="n", min=3, max=3)
    assert column.decode(column.encode(np.array([3.0, 8.0]))).tolist() == [3.0, 3.0]


def test_generated_slots_collapse_by_their_weights() -> None:
    column = lk.Category(name="c", values=("a", "b", "c"))
    slots = np.tile([[0.2, 0.8, 0.0]], (20_000, 1))
    drawn = column.collapse(slots, np.random.default_rng(0))
    assert np.abs(np.bincount(drawn.astype(int), minlength=3) / 20_000 - [0.2, 0.8, 0]).max() < 0.02
    empty = column.collapse(np.zeros((9, 3)), np.random.default_rng(0))
    assert set(empty) <= {0.0, 1.0, 2.0}


def test_booleans_in_many_spellings() -> None:
    column = lk.Category(name="b", values=(False, True), boolean=True)
    raw = Values(np.arange(6), ["yes", "No", "TRUE", "0", "t", "maybe"])
    assert column.encode(raw).tolist() == [1, 0, 1, 0, 1, -1]


def test_schema_without_label_has_one_class() -> None:
    schema = lk.Schema(dataset="d", rows=5, columns=(lk.Numeric(name="x", min=0, max=1),))
    assert schema.classes == ("",)
    rows = lk.read(pd.DataFrame({"x": [0.1, 0.2]}), schema)._encoded()
    assert rows.labels.tolist() == [0, 0]


def test_dates_are_whole_days() -> None:
    day = datetime.date
    column = lk.Date(name="d", min=day(1950, 1, 1), max=day(2050, 1, 1), missing=True)
    stamps = pd.Series(pd.to_datetime(["1960-05-04", None, "2031-12-31"]))
    schema = lk.Schema(dataset="d", rows=5, columns=(column,))
    for frame in (pd.DataFrame({"d": stamps}), pd.DataFrame({"d": stamps.dt.strftime("%Y-%m-%d")})):
        cells = lk.read(frame, schema)._encoded().cells
        back = schema.decode(cells, np.zeros(3, int))["d"]
        assert back.isna().tolist() == [False, True, False]
        assert back.dropna().dt.strftime("%Y-%m-%d").tolist() == ["1960-05-04", "2031-12-31"]


def test_only_the_open_side_of_a_bound_is_estimated() -> None:
    column = lk.Numeric(name="x", max=50, outer=(0, 200))
    schema = lk.Schema(dataset="d", rows=5, columns=(column,))
    settled = schema.resolve({"x": (3.0, 180.0)}).columns[0]
    assert (settled.min, settled.max) == (3.0, 50)


def test_the_values_of_a_label_are_declared() -> None:
    label = lk.Category(name="y", label=True, most=3)
    with pytest.raises(lk.SchemaError, match="'y'.*must be declared"):
        lk.Schema(dataset="d", columns=(lk.Numeric(name="x", min=0, max=1), label))


@pytest.mark.parametrize(
    "written", ["people", "PEOPLE ", "\tPeople", "ｐｅｏｐｌｅ", "people\u00a0"]
)  # fmt: skip
def test_one_data_set_has_one_name(written: str) -> None:
    """Under two spellings the ledger would have granted the lifetime budget twice."""
    columns = (lk.Numeric(name="x", min=0, max=1),)
    schema = lk.Schema(dataset=written, columns=columns)
    assert schema.dataset == "people"
    assert schema.digest == lk.Schema(dataset="people", columns=columns).digest
    assert lk.Schema.parse(schema.toml()).dataset == "people"


@given(st.text(max_size=8))
def test_names_of_data_sets_are_settled_at_once(written: str) -> None:
    name = dataset_name(written)
    assert dataset_name(name) == name == dataset_name(f"  {written} ")
    assert dataset_name(written.upper().lower().casefold()) == dataset_name(written.upper())


def test_an_ignored_column_need_not_be_filled_in() -> None:
    schema = lk.Schema.parse(
        'dataset = "d"\nrows = 9\nconfirmed = true\nignore = ["note"]\n'
        '[[column]]\nname = "note"\nkind = "category"\nvalues = "?"\n'
        '[[column]]\nname = "x"\nkind = "float"\nmin = 0\nmax = 1\n'
    )
    assert [c.name for c in schema.columns] == ["x"] and schema.ignore == ("note",)


def test_a_saved_schema_is_the_same_when_loaded(tmp_path: Path) -> None:
    schema = table_schema()
    schema.save(tmp_path / "schema.toml")
    assert lk.Schema.load(tmp_path / "schema.toml") == schema
    with pytest.raises(lk.SchemaError, match="Cannot write .*nowhere"):
        schema.save(tmp_path / "nowhere" / "schema.toml")


def test_a_confirmation_below_the_top_is_said_to_stand_there() -> None:
    text = 'dataset = "d"\nrows = 9\n[lifetime]\nconfirmed = true\n[[column]]\nname = "x"\nkind = "float"\nmin = 0\nmax = 1\n'
    with pytest.raises(lk.SchemaError, match=r"confirmed = true before the first \[section\]"):
        lk.Schema.parse(text)
