"""Rules between columns hold in every released row, by whatever method it came, and in those drawn later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import FEW, TEACH, TINY, TINY_SET

import limbeck as lk
from limbeck.cli.main import main
from limbeck.evaluation import by_column
from limbeck.methods import AbstractMethod
from limbeck.report import make_report

SCHEMA = """
dataset = "stays"
rows = 400
confirmed = true
decimal = ","
rules = [
  "discharged >= admitted", "discharged <= admitted + 60 days", "bill == room + drugs", "city -> country",
  "not (ward = maternity and sex = male)", "if ward = maternity then age >= 12", "if ill = yes then ward != none",
]
[lifetime]
filter = "sum"
[tables]
"city -> country" = { Bonn = "Germany", Koeln = "Germany", Lyon = "France" }
[[column]]
name = "admitted"
kind = "date"
min = 2022-01-01
max = 2023-12-31
format = "%d.%m.%Y"
missing = true
[[column]]
name = "discharged"
kind = "date"
min = 2022-01-01
max = 2024-12-31
format = "%d.%m.%Y"
missing = true
[[column]]
name = "ward"
kind = "category"
values = ["maternity", "surgery", "none"]
[[column]]
name = "sex"
kind = "category"
values = ["female", "male"]
[[column]]
name = "age"
kind = "integer"
min = 0
max = 99
[[column]]
name = "room"
kind = "float"
min = 0
max = 6000
decimals = 2
[[column]]
name = "drugs"
kind = "float"
min = 0
max = 3000
decimals = 2
[[column]]
name = "bill"
kind = "float"
min = 0
max = 9000
decimals = 2
[[column]]
name = "city"
kind = "category"
values = ["Bonn", "Koeln", "Lyon"]
[[column]]
name = "country"
kind = "category"
values = ["Germany", "France"]
[[column]]
name = "ill"
kind = "label"
values = ["no", "yes"]
"""
RULED = lk.Schema.parse(SCHEMA)
QUICK = lk.Marginals(grid=32, groups=4, soft_rows=150, steps=20)
METHODS: list[AbstractMethod] = [
    QUICK,
    replace(QUICK, pairs="correlations"),
    lk.DPMERF(**TINY),
    lk.MeasureOnce(**TINY_SET),
    lk.DPKIP(**FEW | {"per_class": 5}),
    lk.GPATE(**TEACH),
    lk.DPGAN(
        steps=3, batch=20, discriminator_steps=2, discriminator_hidden=(4,), code=3, hidden=(6,)
    ),
]


def stays(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Generated stays that keep the rules, but for some that do not."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["maternity", "surgery", "none"], rows, p=[0.3, 0.5, 0.2])
    admitted = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), unit="D")
    days = np.minimum(rng.gamma(1.5, 4, rows).round(), 60)
    days[:10] = -5  # ten rows break the order
    discharged = admitted + pd.to_timedelta(days, unit="D")
    room, drugs = 80.0 * np.maximum(days, 1), rng.uniform(0, 900, rows).round(2)
    city = rng.choice(["Bonn", "Koeln", "Lyon"], rows)
    return pd.DataFrame(
        {
            "admitted": admitted.strftime("%d.%m.%Y"),
            "discharged": np.where(
                np.arange(rows) % 20 == 0, None, discharged.strftime("%d.%m.%Y")
            ),
            "ward": ward,
            "sex": np.where(ward == "maternity", "female", rng.choice(["female", "male"], rows)),
            "age": np.where(
                ward == "maternity", rng.integers(16, 46, rows), rng.integers(0, 99, rows)
            ),
            "room": room,
            "drugs": drugs,
            "bill": (room + drugs).round(2),
            "city": city,
            "country": np.where(city == "Lyon", "France", "Germany"),
            "ill": np.where(ward == "none", "no", rng.choice(["no", "yes"], rows)),
        }
    )


def assert_kept(frame: pd.DataFrame) -> None:
    """In the frame's own words, apart from limbeck's code."""
    stay = (frame["discharged"] - frame["admitted"]).dt.days.dropna()
    assert stay.between(0, 60).all()
    cents = (frame[["room", "drugs", "bill"]] * 100).round()
    np.testing.assert_allclose(frame[["room", "drugs", "bill"]] * 100, cents, atol=1e-6)
    assert (cents["bill"] == cents["room"] + cents["drugs"]).all()
    assert ((frame["city"] == "Lyon") == (frame["country"] == "France")).all()
    maternity = frame["ward"] == "maternity"
    assert not (maternity & (frame["sex"] == "male")).any()
    assert (frame.loc[maternity, "age"] >= 12).all()
    assert not ((frame["ill"] == "yes") & (frame["ward"] == "none")).any()


def made(tmp_path: Path, method: Any, schema: lk.Schema = RULED, **more: Any) -> lk.Release:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    return lk.distill(lk.read(stays(), schema), method, 3.0, seed=0, ledger=book, **more)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> lk.Release:
    folder = tmp_path_factory.mktemp("stays")
    made(folder, QUICK, out=folder / "release")
    return lk.Release.load(folder / "release")


@pytest.mark.parametrize(
    "method", METHODS, ids=lambda m: f"{m.name} {getattr(m, 'pairs', '')}".strip()
)
def test_every_released_row_keeps_the_rules(method: AbstractMethod, tmp_path: Path) -> None:
    release = made(tmp_path, method, out=tmp_path / "release", check=False)
    assert isinstance(release.data, pd.DataFrame)
    assert_kept(release.data)
    lk.verify(tmp_path / "release")
    again = lk.Release.load(tmp_path / "release")
    assert again.schema == RULED and isinstance(again.data, pd.DataFrame)
    pd.testing.assert_frame_equal(again.data, release.data)
    written = pd.read_csv(tmp_path / "release" / "data.csv", sep=";", decimal=",")
    dates = {n: pd.to_datetime(written[n], format="%d.%m.%Y") for n in ("admitted", "discharged")}
    assert_kept(written.assign(**dates))
    if release.source.kind != "distilled":
        assert_kept(release.sample(700, seed=3))  # type: ignore[arg-type]


def targeted(name: str) -> lk.Schema:
    """The same stays with a number that models predict, and the label a column like any other."""
    columns = []
    for column in RULED.columns:
        if column.kind == "label":
            column = replace(column, label=False)  # type: ignore[call-arg]
        elif column.name == name:
            column = replace(column, target=True, bins=4)  # type: ignore[call-arg]
        columns.append(column)
    return replace(RULED, dataset="stays with a target", columns=tuple(columns))


@pytest.mark.parametrize("method", [QUICK, lk.DPMERF(**TINY)], ids=lambda m: m.name)
@pytest.mark.parametrize("name", ["room", "age"])
def test_a_target_stands_beside_rules(method: AbstractMethod, name: str, tmp_path: Path) -> None:
    """One in a sum, and one in a forbidden combination, whose rows are drawn again in their own bins."""
    schema = targeted(name)
    release = made(tmp_path, method, schema, out=tmp_path / "release", check=False)
    assert_kept(release.data)  # type: ignore[arg-type]
    lk.verify(tmp_path / "release")
    again = lk.Release.load(tmp_path / "release")
    more = again.sample(300, where=["ward=maternity"])
    assert_kept(more)  # type: ignore[arg-type]
    if method is QUICK:
        assert lk.evaluate(again, stays(seed=5)).test_rows == 400
        some = stays(seed=2)[["ward", "city", "age" if name == "room" else "sex"]]
        assert_kept(again.sample(like=some[some["ward"] == "none"]))  # type: ignore[arg-type]


def test_a_target_that_rules_decide_is_refused() -> None:
    with pytest.raises(
        lk.SchemaError, match=r"rule 'bill == room \+ drugs' decides 'bill'.*target"
    ):
        targeted("bill")


def test_persons_have_rules_too(tmp_path: Path) -> None:
    schema = replace(RULED, dataset="people", person=lk.Person(column="id", rows_at_most=3))
    rows = stays().assign(id=np.arange(400) // 3)
    release = lk.distill(
        lk.read(rows, schema), QUICK, 3.0, seed=0, ledger=lk.Ledger(tmp_path / "ledger.sqlite")
    )
    assert_kept(release.data)  # type: ignore[arg-type]


def test_without_a_label_and_with_estimated_bounds_of_another_column(tmp_path: Path) -> None:
    weight = lk.Numeric(name="weight", outer=(0, 500))
    columns = (*(c for c in RULED.columns if c.kind != "label"), weight)
    rules = tuple(rule for rule in RULED.rules if "if ill" not in rule)
    schema = replace(RULED, dataset="weighed", columns=columns, rules=rules)
    rows = stays().drop(columns="ill").assign(weight=70.0)
    release = lk.distill(
        lk.read(rows, schema), QUICK, 3.0, seed=0, ledger=lk.Ledger(tmp_path / "ledger.sqlite")
    )
    assert_kept(release.data.assign(ill="no"))  # type: ignore[union-attr]
    assert release.schema.rules == rules and not release.schema.estimated


# ---- rows drawn later --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "query"),
    [
        (["ward=maternity", "age>=20"], "ward == 'maternity' and age >= 20"),
        (["discharged>=2023-01-01", "sex=male"], "discharged >= '2023-01-01' and sex == 'male'"),
        (["country=France", "ill=yes"], "country == 'France' and ill == 'yes'"),
        (["bill<500"], "bill < 500"),
    ],
)
def test_conditions_and_rules_hold_together(
    release: lk.Release, where: list[str], query: str
) -> None:
    found = release.sample(300, where=where, seed=1)
    assert isinstance(found, pd.DataFrame) and len(found) == len(found.query(query)) == 300
    assert_kept(found)


def test_conditions_that_rules_exclude_are_named(release: lk.Release) -> None:
    with pytest.raises(lk.LimbeckError, match="No row can meet country=France and city=Bonn"):
        release.sample(10, where=["country=France", "city=Bonn"])


def test_classes_may_be_balanced(release: lk.Release) -> None:
    found = release.sample(600, classes="even", seed=2)
    assert isinstance(found, pd.DataFrame)
    assert_kept(found)
    assert found["ill"].value_counts().tolist() == [300, 300]


def test_given_columns_stay_as_they_are(release: lk.Release) -> None:
    frame = pd.DataFrame(
        {
            "discharged": ["01.03.2022", "05.01.2022", None, "31.12.2023"],
            "country": ["France", "Germany", "France", None],
            "sex": ["male", "male", "female", None],
            "age": [5, 40, 11, 70],
        }
    )
    found = release.sample(80, like=frame, seed=4)
    assert isinstance(found, pd.DataFrame)
    assert_kept(found)
    for name in frame:
        wanted = pd.concat([frame[name]] * 20, ignore_index=True)
        there = wanted.notna()
        own = found[name].dt.strftime("%d.%m.%Y") if name == "discharged" else found[name]
        assert (own[there] == wanted[there]).all(), name
    stay = (found["discharged"] - found["admitted"]).dt.days
    assert stay[[0, 4, 8]].nunique() >= 1 and stay.dropna().mean() > 1


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            {"admitted": ["02.02.2023"], "discharged": ["01.02.2023"]},
            "break the rule 'discharged >= admitted'",
        ),
        ({"city": ["Bonn"], "country": ["France"]}, "break the rule 'city -> country'"),
        ({"ward": ["maternity"], "sex": ["male"]}, "break the rule 'not"),
        ({"bill": ["100"]}, "gives 'bill', which is a sum"),
    ],
)
def test_a_frame_that_breaks_a_rule_is_refused(
    release: lk.Release, frame: dict[str, list[str]], words: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=words):
        release.sample(like=pd.DataFrame(frame))


# ---- what is told ------------------------------------------------------------------------------------


def test_the_check_says_how_many_rows_break_each_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMBECK_LEDGER", str(tmp_path / "ledger.sqlite"))
    look = lk.check(lk.read(stays(), RULED), ledger=lk.Ledger(tmp_path / "other.sqlite"))
    assert look.rules["discharged >= admitted"] == "1 to 10 %"
    assert set(look.rules.values()) == {"none", "1 to 10 %"}
    stays().to_csv(tmp_path / "stays.csv", index=False, sep=";", decimal=",")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    words = ["check", str(tmp_path / "stays.csv"), "--schema", str(tmp_path / "schema.toml")]
    monkeypatch.setattr("sys.argv", ["limbeck", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "rows that break it" in capsys.readouterr().out


def test_card_report_and_certificate_list_the_rules(release: lk.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    card = (tmp_path / "release" / "README.md").read_text()
    certificate = json.loads((tmp_path / "release" / "certificate.json").read_text())
    page = make_report([release])
    for rule in RULED.rules:
        assert f"`{rule}`" in card
    assert "every released row (100 %)" in card and "every released row (100 %)" in page
    assert certificate["data"]["schema"]["rules"] == list(RULED.rules)
    told = certificate["data"]["rules"]
    assert (
        told["kept"] == "in every released row"
        and 0 <= told["drawn_evenly"] <= told["drawn_again"] <= 1
    )


def test_a_release_whose_rows_break_a_rule_is_named(release: lk.Release, tmp_path: Path) -> None:
    frame = release.data
    assert isinstance(frame, pd.DataFrame)
    broken = frame.assign(bill=frame["bill"] + np.where(np.arange(len(frame)) == 3, 1.0, 0.0))
    replace(release, data=broken).save(tmp_path / "release")
    with pytest.raises(
        lk.ReleaseError, match="1 of its rows break the rule 'bill == room \\+ drugs'"
    ):
        lk.Release.load(tmp_path / "release")


def test_scores_compare_the_columns_themselves(release: lk.Release) -> None:
    data = lk.read(stays(seed=5), RULED)
    assert [c.name for c in by_column(data).schema.inputs] == [c.name for c in RULED.columns[:-1]]
    scores = lk.evaluate(release, stays(seed=5))
    assert scores.test_rows == 400
    page = make_report([release], real=lk.read(stays(seed=5), release.schema))
    assert "Correlations of real columns" in page and "discharged" in page


def test_where_nothing_else_is_left_rows_are_drawn_evenly(release: lk.Release) -> None:
    """Soft rows that put all men into maternity, as noise might: the release says what became of them."""
    from limbeck.release import drawn

    source, schema = (
        release.source,
        replace(RULED, rules=(*RULED.rules, "if age >= 0 then ward = maternity")),
    )
    came = drawn(schema, source, 200, seed=0, wanted=lk.methods.Wanted())
    assert (came.data["ward"] == "maternity").all() and came.again > 0  # type: ignore[index]
    assert came.told_in({"data": {}}, schema)["data"]["rules"]["drawn_again"] == came.again / 200
