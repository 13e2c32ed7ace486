"""Laws of persons: a neighbour is a person with all their rows, whatever these are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import ask, planned, table_rows, table_schema
from kinds import CHOICE, KINDS, VALUES, Inquiry, Kind, answers, distance, moved, partial

import limbeck as lk
from limbeck.accounting import Charge
from limbeck.privacy import GridSum, Histogram, Noise, Planned, Private, Question, Sum, Unit
from limbeck.privacy.estimate.rows_of_persons import RowsOfPersons, shares_of
from limbeck.privacy.poisson.gradient_sum import GradientSum
from limbeck.privacy.poisson.sampling import PoissonBatches, Records
from limbeck.privacy.questions.choice import FINE, utilities

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
MOST = 3
OF_PERSONS = Kind("rows per person", RowsOfPersons(name="rows per person", bins=MOST))
"""A question about persons alone."""
each_kind_too = pytest.mark.parametrize("kind", [*KINDS, OF_PERSONS], ids=lambda k: k.name)
PERSON = lk.Person(column="id", rows_at_most=MOST, persons=60)
SCHEMA = table_schema(person=PERSON)


def people(count: int = 12, seed: int = 3) -> pd.DataFrame:
    """Persons with one to four rows each, in mixed order."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(count), rng.integers(1, 5, count))
    return table_rows(len(ids), seed).assign(id=rng.permutation(ids))


def data(rows: pd.DataFrame, schema: lk.Schema = SCHEMA) -> lk.Dataset:
    return lk.read(rows, schema)


def strange_persons() -> dict[str, pd.DataFrame]:
    """Persons who may join others, each with all their rows."""
    some = table_rows(9, seed=11).astype(object)
    nothing = {"age": np.nan, "income": np.nan, "town": None, "smoker": None, "seen": None}
    huge = {"age": 1e300, "income": 1e300, "seen": "9999-12-31"}
    labels = ["no", "yes", "unsure", "no", "yes", "unsure", "no", "yes", "unsure"]
    found = {
        "one row": some[:1],
        "as many as are kept": some[:MOST],
        "more than are kept": some,
        "in several classes": some.assign(ill=labels),
        "equal rows": some.iloc[[0] * 7],
        "equal rows, few": some.iloc[[0] * MOST],
        "extreme": some.assign(**huge),
        "nothing in them": some.assign(**nothing),
        "lone in a class": some.assign(ill="unsure"),
        "half without a label": some.assign(ill=["no", None, "?"] * 3),
        "all without a label": some.assign(ill=None),
        "several lone values": some.assign(town=[f"village {i}" for i in range(9)]),
    }
    return {name: rows.assign(id="new one") for name, rows in found.items()}


def joined(rows: pd.DataFrame, person: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Rows with a person's put among them, here and there."""
    places = np.random.default_rng(seed).integers(0, len(rows) + 1, len(person))
    both = pd.concat([rows.astype(object), person], ignore_index=True)
    return both.iloc[np.argsort(np.r_[np.arange(len(rows)), places - 0.5], kind="stable")]


def moves(kind: Kind, one: lk.Dataset, two: lk.Dataset, **asking: Any) -> list[list[float]]:
    return [
        [moved(*each) for each in zip(kind.question.measured(), left, right, strict=True)]
        for left, right in zip(
            answers(kind, one, **asking), answers(kind, two, **asking), strict=True
        )
    ]


# ---- neighbours --------------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [0.0, 1.0, 60.0])
@each_kind_too
def test_no_strange_person_moves_an_answer_beyond_its_sensitivity(
    kind: Kind, multiplier: float
) -> None:
    rows = people(6)
    limits = [c.sensitivity for c in kind.question.charges(Unit())]
    longest = np.zeros(len(limits))
    for name, person in strange_persons().items():
        more = data(joined(rows, person))
        for step in moves(kind, data(rows), more, multiplier=multiplier):
            assert all(m <= c * (1 + 1e-9) for m, c in zip(step, limits, strict=True)), name
            longest = np.maximum(longest, step)
    assert longest[-1] > 0.85 * limits[-1]  # the bound is used, not hidden behind zeros


@pytest.mark.parametrize("name", strange_persons())
def test_no_strange_person_moves_a_utility_by_more_than_one(name: str) -> None:
    """Of a choice nothing but utilities is near in two data sets: all of them, whoever joins."""
    unit, rows = Unit(person=True, rows_at_most=MOST), people(6)
    charges = tuple(replace(c, noise_multiplier=1.0) for c in CHOICE.question.charges(unit))
    planned = Planned(question=CHOICE.question, charges=charges)
    before, after = (
        utilities(partial(CHOICE, data(some), planned, unit), CHOICE.row_map, FINE)
        for some in (rows, joined(rows, strange_persons()[name]))
    )
    gaps = [abs(one - other) for one, other in zip(before, after, strict=True)]
    assert max(gaps) <= FINE * FINE
    assert name == "all without a label" or max(gaps) > 0.3 * FINE * FINE


@each_kind_too
def test_no_person_taken_out_moves_an_answer_beyond_its_sensitivity(kind: Kind) -> None:
    """Brute force over every person who can be removed, noise frozen."""
    rows = people(10)
    rows.loc[rows["id"] == 0, "ill"] = "who knows"
    limits = [c.sensitivity for c in kind.question.charges(Unit())]
    for gone in range(10):
        fewer = data(rows[rows["id"] != gone])
        for step in moves(kind, data(rows), fewer, multiplier=1.0):
            assert all(m <= c * (1 + 1e-12) for m, c in zip(step, limits, strict=True))
            assert gone != 0 or not any(step)  # no row with a declared label: in no question


@each_kind
def test_a_charge_for_a_person_is_that_for_a_row(kind: Kind) -> None:
    """At the same budget and shape: what is bounded is what a person adds."""
    plans = [
        lk.plan(Inquiry(question=kind.question), schema, lk.Budget(1.0, 1e-5))
        for schema in (SCHEMA.without_person(), SCHEMA)
    ]
    assert plans[0].charges == plans[1].charges
    assert (plans[1].unit.person, plans[1].unit.rows_at_most) == (True, MOST)


def test_a_person_across_two_files_is_one(tmp_path: Path) -> None:
    """Rows of one person in two files count for one person, as in one file."""
    rows = people(8).assign(id=lambda r: r["id"].astype(str))
    half = len(rows) // 2
    rows[:half].to_parquet(tmp_path / "a.parquet")
    rows[half:].assign(id=lambda r: " " + r["id"] + ".0").to_parquet(tmp_path / "b.parquet")
    question = Histogram(name="counts", bins=3)
    split, whole = (
        ask(given, question, multiplier=0.0).ask("counts").values
        for given in (lk.read(tmp_path, SCHEMA), data(rows))
    )
    assert np.allclose(split, whole)
    assert whole.sum() == pytest.approx(8, abs=1e-6)


# ---- rows per person ---------------------------------------------------------------------------


def test_persons_are_counted_by_their_kept_rows() -> None:
    """At no noise: by hand, with those of many rows among those of as many as are kept."""
    rows = people(40)
    rows.loc[rows["id"] == 0, "ill"] = "who knows"
    usable = rows[rows["ill"].isin(["no", "yes", "unsure"])]["id"].value_counts().clip(upper=MOST)
    found = ask(data(rows), OF_PERSONS.question, multiplier=0.0).ask("rows per person").values
    assert np.allclose(found, [(usable == k).sum() for k in range(1, MOST + 1)], atol=1e-5)
    assert shares_of(found) == pytest.approx(found / found.sum(), abs=1e-4)
    with pytest.raises(lk.LimbeckError, match=r"no \[person\]"):
        ask(lk.read(rows.drop(columns="id"), table_schema()), OF_PERSONS.question).ask(
            "rows per person"
        )


def test_shares_of_noisy_counts_are_shares() -> None:
    assert shares_of(np.array([-3.0, -1.0])) == (0.0, 1.0)
    assert shares_of(np.array([-300.0, 0.0, 0.0])) == pytest.approx((0.0, 0.5, 0.5))
    rng = np.random.default_rng(0)
    for _ in range(50):
        shares = shares_of(rng.normal(5, 20, 30))
        assert min(shares) >= 0 and sum(shares) == pytest.approx(1, abs=2e-3) and shares[-1] > 0


# ---- frequent values -------------------------------------------------------------------------


def test_a_person_supports_one_value() -> None:
    rows = people(6)
    asked = planned(VALUES, multiplier=1.0, schema=SCHEMA)[0]
    unit, kind = Unit(person=True, rows_at_most=MOST), Kind("", VALUES)
    without = partial(kind, data(rows), asked, unit)
    for name, person in strange_persons().items():
        with_them = partial(kind, data(joined(rows, person)), asked, unit)
        assert distance(without, with_them) <= 1, name
        new = set(with_them) - set(without)
        assert len(new) <= 1 and all(with_them[value] == 1 for value in new), name


# ---- batches of persons ------------------------------------------------------------------------


def test_a_batch_holds_whole_persons_by_a_coin_of_their_own() -> None:
    """Whoever joins, the others are in the same batches; a person is in with all rows or with none."""
    rows = people(60)
    drawn = []
    for given in (rows, joined(rows, strange_persons()["more than are kept"])):
        held = data(given)._bounded(b"secret")
        records = Records(held, Noise.from_seed(0).stream("records"))
        batches, some = PoissonBatches(0.3, 60), []
        for step in range(40):
            places = batches.draw(records, Noise.from_seed(0).stream(f"{step}"))
            ids = given["id"].to_numpy()[places]
            counts = pd.Series(ids).value_counts()
            wanted = given["id"].value_counts().clip(upper=MOST)
            assert all(counts[name] == wanted[name] for name in counts.index)
            some.append(set(ids) - {"new one"})
        drawn.append(some)
    assert drawn[0] == drawn[1]
    assert np.mean([len(s) for s in drawn[0]]) == pytest.approx(18, abs=2.5)


# ---- what cannot have persons ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Alone(Question):
    """A kind that nobody has proved for persons."""

    def measured(self) -> tuple[Charge, ...]:
        return (Charge(name=self.name, sensitivity=1.0, coordinates=1),)

    def calibrated(self, charges: Any, unit: Unit, row_map: Any = None) -> Any:
        return None


def test_a_kind_that_is_bounded_for_rows_alone_is_refused_when_planned() -> None:
    inquiry, budget = Inquiry(question=_Alone(name="alone")), lk.Budget(1.0, 1e-5)
    lk.plan(inquiry, SCHEMA.without_person(), budget)
    with pytest.raises(lk.LimbeckError, match=r"bounded for rows, not for persons"):
        lk.plan(inquiry, SCHEMA, budget)


def test_a_plan_for_rows_is_not_answered_about_persons() -> None:
    """And none for another number of rows: the room for roundings would be too small."""
    question, noise = Sum(name="s", bound=1.0, size=5, groups=3), Noise.from_seed(0)
    for unit in (Unit(), Unit(person=True, rows_at_most=MOST - 1), Unit(rows_at_most=MOST)):
        with pytest.raises(RuntimeError, match="unit"):
            Private(data(people()), planned(question), unit, noise)


@pytest.mark.parametrize("most", [2, 5])
def test_rounding_has_room_for_all_rows_of_a_person(most: int) -> None:
    """On grids so coarse that rounding every row up would pass the bound: the room that is left for
    it is needed, and is enough."""
    weights, places = np.full(most, 1 / most), np.arange(most)
    labels, rows = np.r_[np.zeros(most), np.full(64 - most, -1)], np.full((most, 36), 9.0)
    source = SimpleNamespace(blocks=lambda parameters, slots, labels: [(0, rows)])
    longest = {"sum": 0.0, "without room": 0.0, "gradients": 0.0}
    for steps in range(150, 210):  # to the bound
        coarse: dict[str, Any] = {"noise": 2.0**24 / steps, "size": 36}
        one_row = GridSum(**coarse, bound=1.0, groups=1)
        person = replace(one_row, rows_at_most=most)
        gradients = GradientSum(**coarse, sensitivity=1.0, shape=64, rows_at_most=most)
        found = {
            "sum": person.accumulate(rows, 0 * places, weights),
            "without room": one_row.accumulate(rows, 0 * places, weights),
            "gradients": gradients.total(
                source, np.zeros(36), places, lambda p: (p, labels), weights
            ),
        }
        for name, total in found.items():
            longest[name] = max(longest[name], float(np.linalg.norm(total)) * person.grid)
    assert max(longest["sum"], longest["gradients"]) <= 1 < longest["without room"]


def test_a_schema_says_what_is_wrong_with_person() -> None:
    column = {"column": "id", "rows_at_most": 3}
    text = SCHEMA.toml()
    assert lk.Schema.parse(text) == SCHEMA
    for change, words in [
        ({"rows_at_most": 0}, "whole number from 1"),
        ({"rows_at_most": True}, "whole number from 1"),
        ({"persons": 2.5}, "whole number from 1"),
        ({"kind": "float"}, "must be"),
        ({"column": ""}, "column"),
        ({"column": "age"}, "never released"),
    ]:
        with pytest.raises(lk.SchemaError, match=words):
            table_schema(person=lk.Person(**(column | change)))  # type: ignore[arg-type]
    for section, words in [
        ('column = "id"', "rows_at_most"),
        ("rows_at_most = 3", "column"),
        ('column = "id"\nrows_at_most = 3\nrow = 1', "unknown key 'row'"),
    ]:
        broken = (
            text.split("[person]")[0]
            + f"[person]\n{section}\n\n[[column]]"
            + (text.split("[[column]]", 1)[1])
        )
        with pytest.raises(lk.SchemaError, match=words):
            lk.Schema.parse(broken)
    assert replace(SCHEMA, unit="one row").unit == "one person"
