"""Releases that protect persons with several rows: their certificate, the ledger, the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import TEACH, certificate, table_rows, table_schema
from laws import Case, release_in_law_mode
from typer.testing import CliRunner

import limbeck as lk
from limbeck.cli.main import app
from limbeck.ledger import Run

PERSON = lk.Person(column="patient", rows_at_most=4, persons=60)
SCHEMA = table_schema(person=PERSON, unit="one patient")
QUICK = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
CANARY = "patient-canary-7193"


def patients(seed: int = 0) -> pd.DataFrame:
    ids = np.random.default_rng(seed).integers(0, 50, 150)
    named = [CANARY if i == 7 else f"patient-{i}" for i in ids]
    return table_rows(150, seed).assign(patient=named)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("persons")
    data, ledger = lk.read(patients(), SCHEMA), lk.Ledger(place / "ledger.sqlite")
    lk.distill(data, QUICK, lk.Budget(1.0, 1e-5), out=place / "out", ledger=ledger)
    return place / "out"


def test_a_release_protects_persons_and_says_so(folder: Path) -> None:
    told = certificate(folder)
    assert told["unit"] == {
        "kind": "person",
        "rows_at_most": 4,
        "bounded_by": "at most that many rows of a person are kept, and each counts for one part in as "
        "many as are kept: together for no more than one row",
        "id_column": "patient",
        "id_column_kept_out": True,
    }
    data: Any = told["data"]
    assert data["declared_persons"] == 60
    assert "adding or removing all rows of one person" in json.dumps(told["guarantee"])
    assert "same id in all rows" in json.dumps(told["assumptions"])
    assert "a person with several rows is protected less" not in json.dumps(told)
    assert lk.verify(folder).cost.epsilon == pytest.approx(1.0, rel=1e-4)


def test_ids_are_nowhere_in_the_release(folder: Path) -> None:
    released = lk.Release.load(folder)
    assert list(released.data.columns) == ["patient", *(c.name for c in SCHEMA.columns)]
    assert list(released.data["patient"]) == list(range(1, released.rows + 1))  # fresh
    for file in folder.rglob("*"):
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("unit", "rows_at_most"), 2),
        (("unit", "kind"), "row"),
        (("unit", "bounded_by"), "nothing"),
        (("unit", "id_column"), "age"),
        (("data", "declared_persons"), 10),
        (("guarantee", "neighbours"), "adding or removing one unit's row"),
    ],
)
def test_a_forged_unit_is_found(
    folder: Path, tmp_path: Path, place: tuple[str, str], value: object
) -> None:
    from limbeck.release.arithmetic import recompute

    told: Any = certificate(folder)
    recompute(told)
    told[place[0]][place[1]] = value
    with pytest.raises(lk.ReleaseError):
        recompute(told)


def test_scores_take_rows_with_ids_and_a_release_without(folder: Path) -> None:
    released = lk.Release.load(folder)
    scores = lk.evaluate(released, patients(seed=1))
    assert scores.test_rows == 150
    bare = released.data.drop(columns="patient")
    with pytest.raises(lk.DataError, match=r"without_person"):
        lk.read(bare, released.schema)
    assert len(lk.read(bare, released.schema.without_person())._encoded()) > 0
    assert len(lk.read(released.data, released.schema.without_person())._encoded()) > 0


@pytest.mark.parametrize("ids", [{}, {"patient": ["a", "b", "b"]}])
def test_rows_are_completed_with_ids_or_without(folder: Path, ids: dict[str, list[str]]) -> None:
    some = pd.DataFrame({"age": [30.0, 50.0, 70.0], **ids})
    made = lk.Release.load(folder).sample(like=some)
    assert list(made.columns) == ["patient", *(c.name for c in SCHEMA.columns)]
    assert made["age"].tolist() == [30, 50, 70] and made["patient"].tolist() == [1, 2, 3]


def test_scores_warn_of_persons_who_are_in_both_files(folder: Path) -> None:
    released, rows = lk.Release.load(folder), patients()
    first = rows["patient"].rank(method="dense") <= 25
    assert lk.evaluate(released, rows[first], train=rows[~first]).test_rows == first.sum()
    with pytest.warns(lk.LimbeckWarning, match="Split a file by persons"):
        lk.evaluate(released, rows[:75], train=rows[75:])


def sizes(rows: pd.DataFrame) -> list[int]:
    """Rows of the persons of a release, in the order of their ids."""
    ids = rows["patient"].to_numpy()
    assert (np.diff(ids) >= 0).all() and set(ids) == set(range(1, ids[-1] + 1))
    return list(np.bincount(ids)[1:])


def test_rows_per_person_are_bought_and_given_to_fresh_ids(tmp_path: Path) -> None:
    """A planned question, charged: with the ids of a release come realistic numbers of rows."""
    bought = replace(SCHEMA, rows=None, person=replace(PERSON, rows_per_person="estimate"))
    budget, ledger = lk.Budget(50.0, 1e-5), lk.Ledger(tmp_path / "ledger.sqlite")
    bought = replace(bought, lifetime=lk.schema.Lifetime(epsilon=30.0, filter="sum"))
    data = lk.read(patients(), bought)
    with pytest.raises(lk.LimbeckError):
        lk.distill(data, QUICK, budget, ledger=ledger)
    planned = lk.plan(QUICK, bought, 20.0)
    charge = {c.name: c for c in planned.charges}["rows per person"]
    assert (charge.sensitivity, charge.coordinates) == (1.0, 4)
    made = lk.distill(data, QUICK, 20.0, ledger=ledger, out=tmp_path / "out", check=False, seed=1)
    shares = made.schema.person.shares if made.schema.person else None
    real = patients()["patient"].value_counts().clip(upper=4)
    assert shares == pytest.approx([(real == k).mean() for k in (1, 2, 3, 4)], abs=0.1)
    assert np.mean(sizes(made.data)) == pytest.approx(real.mean(), rel=0.1)
    persons = np.maximum(made.measurements["class counts"], 0).sum()
    assert made.rows == pytest.approx(persons * np.mean(sizes(made.data)), rel=0.05)
    told = certificate(tmp_path / "out")
    assert told["data"]["estimated_columns"] == ["patient"]  # type: ignore[index]
    assert lk.verify(tmp_path / "out", deep=True).open == ()
    again = lk.Release.load(tmp_path / "out")
    pd.testing.assert_frame_equal(again.data, made.data, check_dtype=False)
    assert np.mean(sizes(again.sample(900))) == pytest.approx(real.mean(), rel=0.1)
    assert again.sample(7, where=["ill=yes"])["patient"].is_monotonic_increasing
    card = (tmp_path / "out" / "README.md").read_text()
    assert "counted afresh from 1" in card and "on average" in card
    fields = json.loads((tmp_path / "out" / "croissant.json").read_text())["recordSet"][0]["field"]
    assert [f["name"] for f in fields] == [*(c.name for c in SCHEMA.columns), "patient"]


def test_declared_rows_per_person_cost_nothing(tmp_path: Path) -> None:
    person = replace(PERSON, rows_per_person=(0.5, 0.0, 0.5))
    declared = replace(SCHEMA, person=person)
    assert lk.plan(QUICK, declared, 1.0).charges == lk.plan(QUICK, SCHEMA, 1.0).charges
    declared.save(tmp_path / "stays.toml")
    assert lk.Schema.load(tmp_path / "stays.toml") == declared
    assert "rows_per_person = [0.5, 0.0, 0.5]" in (tmp_path / "stays.toml").read_text()


@pytest.mark.parametrize(
    "shares", ["measure", [], [0.0], [0.2, -0.1], [1, 1, 1, 1, 1], [float("nan")], 3, [True]]
)
def test_rows_per_person_are_shares(shares: Any) -> None:
    with pytest.raises(lk.SchemaError, match=r"\[person\]: expected rows_per_person"):
        lk.Person(column="patient", rows_at_most=4, rows_per_person=shares)


def test_noise_alone_decides_the_rows_per_person(tmp_path: Path) -> None:
    """Where rows count for nothing, two data sets give the same release, byte by byte."""
    schema = replace(SCHEMA, person=replace(PERSON, rows_per_person="estimate"))
    made = []
    for name, rows in (("one", patients()), ("two", patients(5)[:40].assign(patient="x"))):
        case = Case("persons", QUICK, schema, lambda: None, lambda: None)
        made.append(release_in_law_mode(case, rows, tmp_path / name))
    assert made[0] == made[1]


def test_a_data_set_has_one_unit_for_life(tmp_path: Path) -> None:
    """Persons after rows, rows after persons, and persons by another column are refused."""
    rows = patients().assign(ward="w" + patients()["patient"])
    units = {
        "row": replace(SCHEMA, person=None, ignore=("patient", "ward")),
        "person by patient": replace(SCHEMA, ignore=("ward",)),
        "person by ward": replace(
            SCHEMA, person=replace(PERSON, column="ward"), ignore=("patient",)
        ),
    }
    for first, schema in units.items():
        ledger = lk.Ledger(tmp_path / f"{first}.sqlite")
        lk.distill(lk.read(rows, schema), QUICK, lk.Budget(0.5, 1e-5), ledger=ledger)
        for second, other in units.items():
            data = lk.read(rows, other)
            if first == second:
                lk.distill(data, QUICK, lk.Budget(0.6, 1e-5), ledger=ledger)
                continue
            with pytest.raises(lk.LimbeckError, match=f"protect each {first}.* each {second}"):
                lk.distill(data, QUICK, lk.Budget(0.5, 1e-5), ledger=ledger)


def test_runs_that_were_never_released_fix_no_unit(tmp_path: Path) -> None:
    ledger, rows = lk.Ledger(tmp_path / "ledger.sqlite"), patients()
    plain = lk.read(rows, replace(SCHEMA, person=None, ignore=("patient",)))
    lk.distill(plain, QUICK, lk.Budget(np.inf, 1e-5), ledger=ledger, non_private=True)
    lk.distill(lk.read(rows, SCHEMA), QUICK, lk.Budget(0.5, 1e-5), ledger=ledger)


def test_entries_of_older_versions_are_of_rows() -> None:
    old = {
        "id": "a", "dataset": "d", "method": "m", "epsilon": 1.0, "delta": 1e-5, "charges": [],
        "adjacency": "add-remove", "private": True, "status": "done", "started": "",
    }  # fmt: skip
    assert Run.from_facts(old).unit == "row"


def test_a_killed_run_keeps_the_same_rows_of_persons(tmp_path: Path) -> None:
    """Resumed with its secret, a run chooses the rows that it chose before."""
    release = [
        lk.distill(
            lk.read(patients(), SCHEMA), QUICK, 1.0, seed=3,
            ledger=lk.Ledger(tmp_path / f"{turn}.sqlite"),
        )
        for turn in range(2)
    ]  # fmt: skip
    assert release[0].data.equals(release[1].data)


def test_methods_that_sample_need_a_number_of_persons() -> None:
    unknown = replace(SCHEMA, person=replace(PERSON, persons=None))
    with pytest.raises(lk.LimbeckError, match=r"number of persons in the schema's \[person\]"):
        lk.plan(lk.DPKIP(per_class=1, batch=20, start="noise"), unknown, 1.0)
    made = lk.plan(lk.DPKIP(per_class=1, batch=20, start="noise"), SCHEMA, 1.0)
    assert {c.sampling for c in made.charges} == {20 / 60}
    with pytest.raises(lk.LimbeckError, match="more than the 60 persons"):
        lk.plan(lk.DPKIP(per_class=1, batch=70), SCHEMA, 1.0)
    with pytest.raises(lk.LimbeckError, match="more than the 60 persons"):
        lk.plan(lk.GPATE(**TEACH | {"teachers": 61}), SCHEMA, 1.0)
    assert lk.plan(QUICK, replace(SCHEMA, rows=10**7), 1.0).budget.delta == 1e-5


def test_the_command_line_protects_persons(tmp_path: Path) -> None:
    patients().to_csv(tmp_path / "stays.csv", index=False)
    SCHEMA.save(tmp_path / "stays.toml")
    files = [str(tmp_path / "stays.csv"), "--schema", str(tmp_path / "stays.toml")]
    given = [*files, "--epsilon", "1", "--out", str(tmp_path / "out"), "--set", "steps=1"]
    done = CliRunner().invoke(app, ["distill", *given])
    assert done.exit_code == 0, done.output
    assert "person" in CliRunner().invoke(app, ["verify", str(tmp_path / "out")]).output
    text = (tmp_path / "stays.toml").read_text().split("[person]")
    plain = text[0] + "[[column]]" + text[1].split("[[column]]", 1)[1]
    (tmp_path / "rows.toml").write_text(plain.replace("ignore = []", 'ignore = ["patient"]'))
    files[2] = str(tmp_path / "rows.toml")
    refused = CliRunner().invoke(
        app, ["distill", *files, "--epsilon", "1", "--out", str(tmp_path / "rows")]
    )
    assert isinstance(refused.exception, lk.LimbeckError)  # which the program tells in a line
    assert "one unit for life" in str(refused.exception)
    assert not (tmp_path / "rows").exists()
