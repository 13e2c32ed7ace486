"""Rules between columns: their grammar, what is refused, and the road of a row there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
from limbeck.schema.rules.parser import parse_rule
from limbeck.schema.rules.rule import Combination, Dependence, Order, Total

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
