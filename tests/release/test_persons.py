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
    assert "patient" not in released.data.columns
    assert list(released.data.columns) == [c.name for c in SCHEMA.columns]
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
    with pytest.raises(lk.DataError, match=r"without_person"):
        lk.read(released.data, released.schema)
    assert len(lk.read(released.data, released.schema.without_person())._encoded()) > 0


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
