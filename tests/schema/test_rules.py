"""Rules between columns: their grammar, what is refused, and the road of a row there and back."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck as lk
from limbeck.data import bare_rows, bare_values
from limbeck.schema.rules.parser import parse_rule
from limbeck.schema.rules.rule import Combination, Dependence, Order, Total

DAY = datetime.date
WARD = lk.Category(name="ward", values=("maternity", "surgery"))
SEX = lk.Category(name="sex", values=("female", "male"))
AGE = lk.Numeric(name="age", integer=True, min=0, max=110)
CITY = lk.Category(name="city", values=("Bonn", "Lyon", "New York"))
COUNTRY = lk.Category(name="country", values=("Germany", "France", "USA"))
TABLE = {"city -> country": {"Bonn": "Germany", "Lyon": "France", "New York": "USA"}}


def date(name: str, **changes: Any) -> lk.Date:
    return replace(lk.Date(name=name, min=DAY(2020, 1, 1), max=DAY(2022, 12, 31)), **changes)


def number(name: str, **changes: Any) -> lk.Numeric:
    return replace(lk.Numeric(name=name, min=0, max=100, step=0.01), **changes)


def schema(*columns: Any, rules: Any, **more: Any) -> lk.Schema:
    return lk.Schema(dataset="stays", rows=100, columns=columns, rules=rules, **more)


def drawn(ruled: lk.Schema, rows: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Values of rows whose learned cells are as they may be, at the edges too."""
    rng = np.random.default_rng(seed)
    slots = np.clip(rng.normal(0.5, 0.5, (rows, ruled.slots)), 0, 1)
    cells = ruled.collapse(slots, rng)
    return ruled.learned.values(cells, np.zeros(rows, np.int64))


def assert_kept(ruled: lk.Schema, values: dict[str, np.ndarray]) -> None:
    broken = ruled.learned.broken(values)
    assert set(broken) == set(ruled.rules)
    assert not any(marks.any() for marks in broken.values())


# ---- the grammar ------------------------------------------------------------------------------------


def test_each_kind_is_told_apart() -> None:
    assert isinstance(parse_rule("a >= b"), Order)
    assert isinstance(parse_rule("a = b + c"), Total)
    assert isinstance(parse_rule("a -> b"), Dependence)
    assert isinstance(parse_rule("not (a = x and b = y)"), Combination)


def test_names_and_values_with_blanks_stand_in_quotes() -> None:
    rule = parse_rule("if 'the ward' in ('intensive care', x) then \"a-b\" != 7")
    assert isinstance(rule, Combination)
    assert [(a.column, a.operator, a.values) for a in rule.forbidden] == [
        ("the ward", "in", ("intensive care", "x")),
        ("a-b", "in", ("7",)),
    ]


def test_several_ways_out_of_a_condition() -> None:
    rule = parse_rule("if a = x and b >= 3 then c = y or d < 2020-01-31")
    assert isinstance(rule, Combination)
    assert [(a.column, a.operator) for a in rule.forbidden] == [
        ("a", "in"), ("b", ">="), ("c", "not in"), ("d", ">="),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a >=", "expected a column's name, got the end"),
        ("a >= 3", "Bounds of one column are declared"),
        ("a >= b + c", "between two columns"),
        ("a >= b + 1 day c", "expected the end, got 'c'"),
        ("a == b + + c", "expected a column's name"),
        ("a >= a", "'a' stands there twice"),
        ("a ? b", "is not understood"),
        ("a => b", "'=>' is no sign; '>=' is"),
        ("not (a = b", "expected 'and' or '\\)'"),
        ("if a = b", "expected 'and' or 'then'"),
        ("a", "expected one of"),
        ("", "expected texts"),
        ("a" * 3000, "longer than"),
    ],
)
def test_what_is_not_understood_is_named(text: str, words: str) -> None:
    with pytest.raises(lk.SchemaError, match=words):
        parse_rule(text)


PIECES = ["a", "b", "'x y'", ">=", "<", "==", "=", "->", "+", "-", "3", "day", "not", "if", "then", "and",
          "or", "in", "(", ")", ",", "2020-01-01", "!=", "?", "'", "\u00e4"]  # fmt: skip


@given(
    st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_rule_or_an_error_of_ours(text: str) -> None:
    try:
        rule = parse_rule(text)
    except lk.SchemaError:
        return
    assert parse_rule(rule.text) == rule


@given(
    names=st.lists(
        st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), min_size=3, max_size=5, unique=True
    ),
    signs=st.lists(st.sampled_from("+-"), min_size=4, max_size=4),
)
@settings(deadline=None)
def test_a_sum_is_read_as_it_was_written(names: list[str], signs: list[str]) -> None:
    names = [f"c_{name}" for name in names]
    text = f"{names[0]} == {names[1]}"
    for sign, name in zip(signs, names[2:], strict=False):
        text += f" {sign} {name}"
    rule = parse_rule(text)
    assert isinstance(rule, Total)
    wanted = ["+", *signs]
    assert rule.parts == tuple(
        (1 if s == "+" else -1, n) for s, n in zip(wanted, names[1:], strict=False)
    )


# ---- what is refused when the schema is made ----------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "rules", "words"),
    [
        ((date("a"), date("b")), ["a >= c"], "there is no column 'c'"),
        ((date("a"), WARD), ["a >= ward"], "'ward' is a category"),
        ((date("a"), AGE), ["a >= age"], "that is one date"),
        ((date("a"), AGE), ["age >= a"], "'age' is a integer, the other side is not"),
        ((date("a"), date("b")), ["a >= b + 1"], None),
        ((date("a"), date("b")), ["a >= b + 5 hours"], "counts whole days"),
        ((date("a"), date("b")), ["a >= b + 5 apples"], "no length of time"),
        ((number("a"), number("b")), ["a >= b + 2 days"], "2 days cannot be added"),
        ((date("a"), date("b")), ["a >= b", "b >= a"], "by a circle of rules among a, b"),
        ((date("a"), date("b")), ["a >= b + 10", "a <= b + 5"], "no values can keep it"),
        ((date("a"), date("b", min=DAY(2024, 1, 1), max=DAY(2024, 2, 1))), ["a >= b"], "no values can"),
        ((date("a"), date("b"), date("c")), ["c >= a", "c <= b"], "it demands b >= a. Make that a rule"),
        ((number("a"), number("b", max=90), number("c", max=20)), ["a == b + c"], "from 0 to 110"),
        ((number("a", step=1), number("b", max=50), number("c", max=50)), ["a == b + c"], "has steps of 1"),
        ((number("a"), number("b"), number("c")), ["a == b", "a >= c"], "by it and by another rule"),
        ((number("a", step=None), number("b", step=None)), ["a > b"], "needs columns with `step`"),
        ((lk.Numeric(name="a", outer=(0, 9)), number("b")), ["a >= b"], "'a' are to be estimated"),
        ((lk.Category(name="a", most=5), SEX), ["not (a = x and sex = male)"], "'a' are to be estimated"),
        ((WARD, SEX), ["not (ward = oncology and sex = male)"], "declares no value 'oncology'"),
        ((WARD, SEX), ["not (ward in (maternity, surgery) and sex in (male, female))"], "no combination"),
        ((WARD, AGE), ["not (ward = maternity and age = 3)"], "compare it by >="),
        ((WARD, AGE), ["not (ward = maternity and age < old)"], "compared with a number, got 'old'"),
        ((WARD, AGE), ["not (ward > 3 and age < 3)"], "compare it by =, !="),
        ((CITY, COUNTRY), ["city -> country"], "give its public table"),
        ((CITY, AGE), ["city -> age"], "must be a category"),
        ((date("a"), date("b")), ["a >= b", "a  >=  b"], "stands there twice"),
        ((date("a"), date("b")), [3], "a list of texts"),
        ((date("a"), date("b")), "a >= b", "a list of texts"),
    ],
)  # fmt: skip
def test_refused_when_the_schema_is_made(columns: Any, rules: Any, words: str | None) -> None:
    if words is None:
        schema(*columns, rules=rules)
        return
    with pytest.raises(lk.SchemaError, match=words):
        schema(*columns, rules=rules)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"Bonn": "Germany"}, "lacks 'Lyon'"),
        (
            TABLE["city -> country"] | {"Bonn": "Prussia"},
            "'Prussia', which column 'country' does not declare",
        ),
    ],
)
def test_a_table_must_know_every_value(table: dict[str, str], words: str) -> None:
    with pytest.raises(lk.SchemaError, match=words):
        schema(CITY, COUNTRY, rules=["city -> country"], tables={"city -> country": table})


def test_a_table_without_its_rule_is_refused() -> None:
    with pytest.raises(lk.SchemaError, match="'city -> land' is none of the rules"):
        schema(CITY, COUNTRY, rules=["city -> country"], tables=TABLE | {"city -> land": {}})


def test_what_rules_decide_has_no_combinations() -> None:
    with pytest.raises(lk.SchemaError, match="Say it of city instead"):
        schema(
            CITY,
            COUNTRY,
            SEX,
            rules=["city -> country", "not (country = USA and sex = male)"],
            tables=TABLE,
        )


def test_a_label_must_stay_possible() -> None:
    ill = lk.Category(name="ill", values=("no", "yes"), label=True)
    with pytest.raises(lk.SchemaError, match="leave no row to the label's value 'yes'"):
        schema(SEX, ill, rules=["not (ill = yes and sex in (male, female))"])


# ---- as a file ----------------------------------------------------------------------------------------


def test_rules_are_saved_and_loaded(tmp_path: Path) -> None:
    ruled = schema(
        date("a"),
        date("b"),
        CITY,
        COUNTRY,
        rules=["b >= a + 1 day", "city -> country"],
        tables=TABLE,
    )
    ruled.save(tmp_path / "schema.toml")
    again = lk.Schema.load(tmp_path / "schema.toml")
    assert again == ruled and again.digest == ruled.digest != ruled.without_rules().digest
    assert ruled.facts()["rules"] == ["b >= a + 1 day", "city -> country"]


def test_a_table_may_be_a_file_beside_the_schema(tmp_path: Path) -> None:
    ruled = schema(CITY, COUNTRY, rules=["city -> country"], tables=TABLE)
    text = ruled.toml().replace(
        ruled.toml().split("[tables]\n")[1].split("\n")[0], '"city -> country" = "t.csv"'
    )
    (tmp_path / "schema.toml").write_text(text)
    with pytest.raises(lk.SchemaError, match="cannot read its table"):
        lk.Schema.load(tmp_path / "schema.toml")
    (tmp_path / "t.csv").write_text(
        "country,city,x\nGermany,Bonn,1\nFrance,Lyon,2\nUSA,New York,3\nItaly,Rome,4\n"
    )
    loaded = lk.Schema.load(tmp_path / "schema.toml")
    assert_kept(loaded, drawn(loaded))
    assert lk.Schema.parse(loaded.toml()) == loaded  # which needs no file any more


def test_a_schema_without_rules_is_as_it_was() -> None:
    assert "rules" not in schema(AGE, rules=()).facts()
    assert schema(AGE, rules=[]) == schema(AGE, rules=())


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
