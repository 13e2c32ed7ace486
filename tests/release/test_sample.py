"""Rows of one's choice: exactly those that plain sampling would give, filtered."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import TINY, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.cli.main import main

MANY = 100_000
PAY = lk.Numeric(name="pay", integer=True, min=0, max=50_000)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> lk.Release:
    """Of a table with all kinds of column, pay following income, income following town."""
    rows = table_rows(3000)
    rows["income"] += np.where(rows["town"] == "north", 300, 0)
    noise = np.random.default_rng(1).normal(0, 2000, len(rows))
    rows["pay"] = (rows["income"].clip(0, 1000) * 40 + noise).clip(0, 50_000).round().astype(int)
    schema = table_schema(rows=3000, columns=(PAY, *table_schema().columns))
    return lk.distill(
        lk.read(rows, schema),
        lk.Marginals(soft_rows=150, steps=60),
        5.0,
        seed=0,
        ledger=lk.Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite"),
    )


@pytest.fixture(scope="module")
def plain(release: lk.Release) -> pd.DataFrame:
    drawn = release.sample(4 * MANY, seed=9)
    assert isinstance(drawn, pd.DataFrame)
    return drawn


def _parts(column: pd.Series) -> pd.Series:
    """A column in at most some twenty parts, as texts."""
    if column.name == "seen":
        return column.dt.year.astype(str)
    if column.name in ("age", "income", "pay"):
        width = {"age": 5, "income": 50, "pay": 2500}[str(column.name)]
        return (column.astype("Float64") // width).astype(str)
    return column.astype(object).astype(str)


def _distance(left: pd.DataFrame, right: pd.DataFrame, names: list[str]) -> float:
    """Total variation between the joint distributions of some columns."""
    shares = [
        pd.concat([_parts(frame[name]) for name in names], axis=1).value_counts(normalize=True)
        for frame in (left, right)
    ]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


@pytest.mark.parametrize(
    ("where", "rule"),
    [
        (["town=north"], "town == 'north'"),
        ({"pay": (12_345, 30_000), "town": ["south", "east"]}, "12345 <= pay <= 30000 and town in ['south', 'east']"),
        (["age>40", "income<600.5", "ill=no"], "age > 40 and income < 600.5 and ill == 'no'"),
        (["seen>=2010-05-05", "smoker=yes"], "seen >= '2010-05-05' and smoker"),
        (["town!=north"], "town != 'north'"),
    ],
)  # fmt: skip
def test_conditions_give_what_filtering_would(
    release: lk.Release, plain: pd.DataFrame, where: Any, rule: str
) -> None:
    drawn = release.sample(MANY, where=where)
    assert isinstance(drawn, pd.DataFrame) and len(drawn) == MANY
    assert len(drawn.query(rule)) == MANY
    filtered = plain.query(rule)
    assert len(filtered) > 20_000
    for name in drawn.columns:
        assert _distance(drawn, filtered, [name]) < 0.02, name
    assert _distance(drawn, filtered, ["town", "ill"]) < 0.02


def test_a_rare_condition_is_drawn_without_waiting(release: lk.Release) -> None:
    drawn = release.sample(1000, where=["pay=49999", "town=missing", "age=100"])
    assert set(drawn["pay"]) == {49_999} and drawn["town"].isna().all()


def test_shares_of_classes(release: lk.Release, plain: pd.DataFrame) -> None:
    even = release.sample(900, classes="even", where="ill!=unsure")["ill"].value_counts()
    assert even.tolist() == [450, 450]
    tilted = release.sample(MANY, classes={"no": 1, "yes": 3}, where="age<50")
    assert tilted["ill"].value_counts().to_dict() == {"yes": 75_000, "no": 25_000}
    one = plain.query("ill == 'no' and age < 50")
    assert _distance(tilted.query("ill == 'no'"), one, ["income"]) < 0.02


def test_completed_rows_keep_what_is_given_and_follow_it(
    release: lk.Release, plain: pd.DataFrame
) -> None:
    given = plain[["pay", "town", "age"]][:20_000]
    drawn = release.sample(like=given)
    for name in given.columns:
        pd.testing.assert_series_equal(drawn[name], given[name].reset_index(drop=True))
    for names in (["income"], ["ill"], ["town", "ill"], ["smoker"]):
        assert _distance(drawn, plain, names) < 0.03, names
    assert drawn["pay"].corr(drawn["income"]) == pytest.approx(
        plain["pay"].corr(plain["income"]), abs=0.02
    )


def test_completing_goes_through_the_frame_again_and_fills_its_gaps(release: lk.Release) -> None:
    given = pd.DataFrame(
        {"ill": ["yes", "no", None], "pay": [10, None, 30], "smoker": ["", "no", "?"]}
    )
    drawn = release.sample(300, like=given, where="town=east")
    assert drawn["ill"].to_numpy()[::3].tolist() == ["yes"] * 100
    assert drawn["pay"].to_numpy()[2::3].tolist() == [30] * 100
    assert drawn["pay"].to_numpy()[1::3].std() > 0
    assert drawn["smoker"].to_numpy()[::3].any() and not drawn["smoker"].to_numpy()[1::3].any()
    assert set(drawn["town"]) == {"east"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"where": "age>=200"}, "Column 'age' lies between 0 and 100: no row can meet age>=200."),
        ({"where": ["age>=60", "age<50"]}, "No row can meet age>=60 and age<50."),
        ({"where": ["age>60", "age<=60"]}, "No row can meet"),
        ({"where": ["town=north", "town!=north"]}, "No row can meet"),
        ({"where": "wrd=3"}, "There is no column 'wrd'"),
        ({"where": "ward"}, "Expected a condition such as ward=Oncology or age>=40, got 'ward'."),
        ({"where": {"town": "west"}}, "Column 'town' has no value 'west'. It has: north, south"),
        ({"where": "town>=3"}, "is a category: compare it by = or !="),
        ({"where": "age=old"}, "Column 'age': expected a number, got 'old'."),
        ({"where": "seen>spring"}, "expected a date such as 2020-01-31, got 'spring'."),
        ({"where": {"age": [1, 2]}}, "expected a value or a range"),
        ({"where": "ill=yes", "classes": {"no": 1}}, "A class that was asked for never occurs"),
        ({"classes": {"perhaps": 1}}, "has no value 'perhaps'"),
        ({"classes": {"no": -1}}, "Expected the share of a class"),
        ({"classes": "odd"}, 'Expected classes to be "even"'),
        ({"like": pd.DataFrame({"age": [3]}), "where": "age>2"}, "The frame gives 'age' already"),
        ({"like": pd.DataFrame({"ill": ["no"]}), "classes": "even"}, "not both"),
        ({"like": pd.DataFrame({"b": [3]})}, "has none of the columns"),
        ({"like": pd.DataFrame({"age": []})}, "has no rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(
    release: lk.Release, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(lk.LimbeckError) as refused:
        release.sample(10, **arguments)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_generators_make_classes_and_choose_rows(tmp_path: Path) -> None:
    made = lk.distill(
        lk.read(table_rows(200), table_schema()),
        lk.DPMERF(**TINY),
        1.0,
        seed=0,  # type: ignore[arg-type]
    )
    drawn = made.sample(50, where=["ill=yes", "age>=20"])
    assert set(drawn["ill"]) == {"yes"} and drawn["age"].min() >= 20
    even = made.sample(60, classes="even", where="age>=20")
    assert even["ill"].value_counts().tolist() == [20, 20, 20] and even["age"].min() >= 20
    assert made.sample(like=pd.DataFrame({"ill": ["yes", "no"]}))["ill"].tolist() == ["yes", "no"]
    with pytest.raises(lk.LimbeckError, match="of a given class only"):
        made.sample(like=pd.DataFrame({"age": [3]}))
    with pytest.raises(lk.LimbeckError, match="Hardly any row"):
        made.sample(5, where="income=12.5")


def test_images_come_by_class(tmp_path: Path) -> None:
    made = lk.distill(
        lk.read(image_rows(60), image_schema()),
        lk.DPMERF(**TINY),
        1.0,
        seed=0,  # type: ignore[arg-type]
    )
    label = made.schema.label
    assert label is not None
    drawn = made.sample(7, where={label.name: label.values[1]})
    assert isinstance(drawn, lk.Images)
    assert len(drawn.images) == 7 and set(drawn.labels.tolist()) == {label.values[1]}


def test_the_command_writes_rows_and_says_that_epsilon_stays(
    release: lk.Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["limbeck", "sample", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out + said.err

    release.save(tmp_path / "release")
    before = (tmp_path / "release" / "certificate.json").read_bytes()
    more, again = tmp_path / "more.csv", tmp_path / "again.parquet"
    one = ["--where", "town=north", "--where", "age>=40"]
    code, told = run(tmp_path / "release", "--rows", 30, *one, "--out", more)
    assert code == 0 and "30 rows" in told and "epsilon stays 5" in told
    rows = pd.read_csv(more)
    assert len(rows) == 30 and set(rows["town"]) == {"north"} and rows["age"].min() >= 40
    assert run(tmp_path / "release", "--like", more, "--out", again)[0] == 0
    assert pd.read_parquet(again)["pay"].tolist() == rows["pay"].tolist()
    tilted = ["--classes", "no=1", "--classes", "yes=3", "--rows", 40, "--force"]
    assert run(tmp_path / "release", *tilted, "--out", more)[0] == 0
    assert (pd.read_csv(more)["ill"] == "yes").sum() == 30
    assert (tmp_path / "release" / "certificate.json").read_bytes() == before
    lk.verify(tmp_path / "release")
