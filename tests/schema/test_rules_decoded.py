"""Rows out keep every rule, whatever the cells are."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruled import (
    AGE,
    CITY,
    COUNTRY,
    DAY,
    SEX,
    TABLE,
    WARD,
    assert_kept,
    date,
    drawn,
    number,
    schema,
)

import limbeck as lk
from limbeck.data import bare_rows, bare_values

# ---- rows out: whatever the cells are, every rule holds ---------------------------------------------------

MOMENT = lk.DateTime(
    name="a",
    min=datetime.datetime(2020, 1, 1),
    max=datetime.datetime(2022, 1, 1),
    step="15 minutes",
)
ZONED = replace(MOMENT, zone="Europe/Berlin")
SPAN = lk.Duration(name="a", min="0:00", max="50:00", step="1 minute")
RULED = {
    "dates": schema(date("a"), date("b"), rules=["b >= a"]),
    "strict, with an offset": schema(date("a"), date("b"), rules=["b > a + 1 day"]),
    "the other way": schema(date("a"), date("b"), rules=["a <= b - 3"]),
    "at most so far": schema(date("a"), date("b"), rules=["b >= a", "b <= a + 60 days"]),
    "a chain": schema(date("a"), date("b"), date("c"), rules=["b >= a", "c > b", "c <= b + 2 weeks"]),
    "between": schema(date("a"), date("b"), date("c"), rules=["b >= a", "c >= a", "c <= b"]),
    "two lower ones": schema(date("a"), date("b"), date("c"), rules=["c >= a", "c >= b + 1"]),
    "narrower bounds": schema(date("a"), date("b", max=DAY(2021, 1, 1)), rules=["b >= a"]),
    "datetimes": schema(MOMENT, replace(MOMENT, name="b"), rules=["b >= a + 45 minutes"]),
    "with a zone": schema(ZONED, replace(ZONED, name="b", step="1 second"), rules=["b > a", "b <= a + 3 days"][:1]),
    "durations": schema(SPAN, replace(SPAN, name="b", scale="log"), rules=["b < a"]),
    "numbers": schema(number("a"), number("b", step=None), rules=["a >= b + 0.5"]),
    "fractions of any size": schema(number("a", step=None), number("b", step=None), rules=["a >= b"]),
    "integers": schema(AGE, lk.Numeric(name="years", integer=True, min=0, max=80), rules=["years <= age"]),
    "sum": schema(number("a"), number("b"), number("t", max=205), rules=["t == a + b + 5"]),
    "difference": schema(number("a"), number("b"), number("t", min=-100), rules=["t == a - b"]),
    "fixed offset": schema(number("a"), number("t", max=200), rules=["t == a + 30"]),
    "days between": schema(
        date("a"), date("b"), lk.Numeric(name="n", integer=True, min=0, max=1095), rules=["b >= a", "n == b - a"]
    ),
    "time between": schema(
        MOMENT, replace(MOMENT, name="b"), lk.Duration(name="n", min="0:00", max="731 days", step="15 minutes"),
        rules=["b >= a", "n == b - a"],
    ),
    "day and time": schema(
        date("a", max=DAY(2022, 12, 1)), lk.Duration(name="n", min="0 days", max="30 days", step="1 day"), date("b"),
        rules=["b == a + n"],
    ),
    "below a sum": schema(
        number("a"), number("b"), number("t", max=200), number("paid", max=150),
        rules=["t == a + b", "paid <= t"],
    ),
    "table": schema(CITY, COUNTRY, rules=["city -> country"], tables=TABLE),
    "missing order": schema(date("a", missing=True), date("b", missing=True), rules=["b >= a", "b <= a + 9"]),
    "missing anchor": schema(date("a", missing=True), date("b"), rules=["b >= a"]),
    "missing sum": schema(
        number("a", missing=True), number("b"), number("t", max=200, missing=True), rules=["t == a + b"]
    ),
    "missing in a table": schema(
        replace(CITY, missing=True), replace(COUNTRY, missing=True), rules=["city -> country"], tables=TABLE
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULED)
def test_decoded_rows_keep_every_rule(name: str) -> None:
    ruled = RULED[name]
    values = drawn(ruled)
    assert_kept(ruled, values)
    frame = ruled.table(values)
    assert list(frame) == [c.name for c in ruled.columns]
    # As it is shown, and read again by each column's own declaration.
    again = lk.read(frame, ruled)
    for raw in bare_values(again):
        assert_kept(ruled, ruled.learned.values_of(raw))
    by_itself = lk.read(frame, ruled.without_rules())
    states = bare_rows(by_itself).states
    assert states is not None and not (states >= 2).any()  # within every declaration


@pytest.mark.parametrize("name", RULED)
def test_rows_that_keep_the_rules_come_back(name: str) -> None:
    """Encoding and decoding gives the same rows, but for what cells round."""
    ruled = RULED[name]
    frame = ruled.table(drawn(ruled))
    rows = bare_rows(lk.read(frame, ruled))
    back = ruled.decode(rows.cells, rows.labels)
    for column in ruled.columns:
        if isinstance(column, lk.Category):
            pd.testing.assert_series_equal(back[column.name], frame[column.name])
            continue
        one, other = (pd.to_numeric(f[column.name]).astype("float64") for f in (frame, back))
        near = 1e-4 * max(float(np.nanmax(np.abs(one)) - np.nanmin(np.abs(one))), 1e-9)
        np.testing.assert_allclose(other, one, atol=near)


@pytest.mark.parametrize("name", RULED)
def test_encoding_is_row_local_and_never_fails(name: str) -> None:
    """Rows that break rules are moved to what is allowed, each by itself."""
    ruled = RULED[name]
    rng = np.random.default_rng(1)
    plain = ruled.without_rules()
    cells = plain.collapse(rng.random((40, plain.slots)), rng)
    wild = plain.decode(cells, np.zeros(40, np.int64)).astype(object)
    wild.iloc[::3, 0] = None  # a gap is filled by what the column declares, not by other rows
    whole = bare_rows(lk.read(wild, ruled)).cells
    alone = [bare_rows(lk.read(wild.iloc[i : i + 1], ruled)).cells for i in range(0, 40, 7)]
    np.testing.assert_array_equal(whole[::7], np.concatenate(alone))
    held = np.nan_to_num(whole)
    codes = [isinstance(c, lk.Category) for c in ruled.inputs]
    assert ((held >= np.where(codes, -1, 0)) & (held <= np.where(codes, 10, 1))).all()


def test_a_row_that_breaks_an_order_is_moved_to_the_nearest() -> None:
    ruled = RULED["at most so far"]
    frame = pd.DataFrame({"a": ["2021-05-05", "2021-05-05"], "b": ["2021-05-01", "2021-12-31"]})
    rows = bare_rows(lk.read(frame, ruled))
    back = ruled.decode(rows.cells, rows.labels)
    assert (back["b"] - back["a"]).dt.days.tolist() == [0, 60]


def test_what_is_learned_is_the_distance() -> None:
    distance = RULED["at most so far"].inputs[1]
    assert isinstance(distance, lk.Numeric)
    assert (distance.name, distance.min, distance.max, distance.scale) == ("b - a", 0, 60, "linear")
    far = RULED["dates"].inputs[1]
    assert isinstance(far, lk.Numeric) and far.scale == "log" and far.max == 1095
    assert [c.name for c in RULED["sum"].inputs] == ["a", "b"]
    assert [c.name for c in RULED["table"].inputs] == ["city"]
    assert [c.name for c in RULED["missing anchor"].inputs] == ["a", "b", "b - a"]
    tightened = RULED["narrower bounds"].inputs[0]
    assert isinstance(tightened, lk.Date) and tightened.max == DAY(2021, 1, 1)


def test_a_table_that_decides_the_label_ties_both() -> None:
    country = replace(COUNTRY, label=True)
    ruled = schema(CITY, country, rules=["city -> country"], tables=TABLE)
    assert [c.name for c in ruled.inputs] == ["city"] and ruled.learned.ties
    values = {"city": np.asarray([0.0, 1.0]), "country": np.asarray([0.0, 2.0])}
    assert ruled.learned.broken(values)["city -> country"].tolist() == [False, True]


def test_missing_cells_break_no_rule() -> None:
    ruled = schema(
        replace(WARD, missing=True), SEX, rules=["not (ward = maternity and sex = male)"]
    )
    values = {"ward": np.asarray([0.0, 2.0]), "sex": np.asarray([1.0, 1.0])}
    assert ruled.learned.broken(values)[ruled.rules[0]].tolist() == [True, False]


@given(seed=st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_broken_combinations_are_mended_evenly_and_as_little_as_can_be(seed: int) -> None:
    rules = ["not (ward = maternity and sex = male)", "if ward = maternity then age >= 12"]
    ruled = schema(WARD, SEX, AGE, rules=rules)
    values, rng = drawn(ruled, 60, seed), np.random.default_rng(seed)
    (tie,) = ruled.learned.ties
    mended, stuck = tie.repaired(values, {}, rng)
    assert not tie.broken(mended).any() and not stuck.any()
    fine = ~tie.broken(values)
    for name, before in values.items():
        np.testing.assert_array_equal(mended[name][fine], before[fine])
    only_age = tie.clauses[1].broken(values) & ~tie.clauses[0].broken(values)
    np.testing.assert_array_equal(mended["sex"][only_age], values["sex"][only_age])
    kept, stuck = tie.repaired(values, {"ward": np.ones(60, bool)}, rng)
    np.testing.assert_array_equal(kept["ward"], values["ward"])
    assert not tie.broken(kept).any() and not stuck.any()
