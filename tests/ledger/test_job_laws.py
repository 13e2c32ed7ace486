"""Laws of an unfinished run: its job is its owner's alone, paid before it answers, and known by its plan."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk
from limbeck.ledger import Job
from limbeck.ledger.booked import planned_run
from limbeck.ledger.identity import identity, kept_plan
from limbeck.privacy import Noise

# ---- the job ---------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    mask = os.umask(0)
    try:
        with Job(tmp_path / "jobs", {"a": 1}) as made:
            made.begin("run", bytes(range(32)), "digest", {"charges": "x"})
            yield made
    finally:
        os.umask(mask)


def test_every_file_of_a_job_is_its_owners_alone(job: Job) -> None:
    job.save("an answer", np.ones(3), digest="d")
    job.part("run 0").save("an answer", np.ones(3), digest="d")
    assert {p.stat().st_mode & 0o777 for p in job.folder.iterdir()} == {0o600}
    assert {p.stat().st_mode & 0o777 for p in (job.folder, job.folder.parent)} == {0o700}


def test_a_job_that_others_could_read_is_closed_to_them(job: Job) -> None:
    folders = (job.folder, job.folder.parent)
    job.close()
    for folder in folders:
        folder.chmod(0o755)
    with Job(folders[1], {"a": 1}):
        assert {p.stat().st_mode & 0o777 for p in folders} == {0o700}


def test_parts_of_a_job_keep_answers_of_their_own(job: Job) -> None:
    places = {"": job, "0": job.part("run 0"), "1": job.part("run 1")}
    places["0/1"] = job.part("run 0").part("run 1")
    for number, answers in enumerate(places.values()):
        assert answers.load("counts") is None
        answers.save("counts", np.full(2, number))
    for number, answers in enumerate(places.values()):
        assert answers.load("counts").tolist() == [number, number]  # type: ignore[union-attr]


def test_every_file_of_a_job_is_on_the_disk_before_it_counts(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def spy(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    job.save("an answer", np.ones(3), digest="d")
    job.begin("run", bytes(32), "digest", {})
    kept = [p for p in job.folder.iterdir() if p.name != "lock"]
    assert {p.stat().st_ino for p in kept} <= set(synced) and len(kept) == 5


def test_a_secret_is_overwritten_before_it_goes(job: Job, tmp_path: Path) -> None:
    os.link(job.folder / "secret", tmp_path / "the same blocks")
    job.clear()
    assert (tmp_path / "the same blocks").read_bytes() == bytes(32)
    assert {p.name for p in job.folder.iterdir()} == {"lock"}


# ---- the order of payment --------------------------------------------------------------------


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("killed", [False, True])
def test_a_run_is_on_the_ledger_before_its_first_answer(
    killed: bool, check: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No measurement's noise is drawn whose charge is not booked, not even after a kill between the
    writing of the run's state and its booking; then nothing of the job stays."""
    ledger, served = lk.Ledger(tmp_path / "l.sqlite"), []
    stream = Noise.stream

    def spy(self: Noise, purpose: str) -> Any:
        runs = [run for account in ledger.accounts() for run in account.runs]
        served.append((purpose, {c.name for run in runs for c in run.charges}))
        return stream(self, purpose)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Noise, "stream", spy)
    given = lk.read(table_rows(60), table_schema())
    if killed:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(lk.Ledger, "charge", die)
            lk.distill(given, lk.DPMERF(**TINY), lk.Budget(1.0), ledger=ledger, check=check)
        assert not served and not ledger.accounts()
    lk.distill(given, lk.DPMERF(**TINY), lk.Budget(1.0), ledger=ledger, check=check)
    measured = [(name, booked) for name, booked in served if name != "rows of persons"]
    assert len(measured) == 2 + check
    assert all(name in booked for name, booked in measured)
    assert not [p for p in ledger.jobs.rglob("*") if p.is_file()]


def test_nothing_of_a_finished_run_stays_in_its_job(tmp_path: Path) -> None:
    ledger = lk.Ledger(tmp_path / "l.sqlite")
    given = lk.read(table_rows(60), table_schema())
    lk.distill(given, lk.DPMERF(**TINY), lk.Budget(1.0), ledger=ledger)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p != ledger.path]


# ---- what an unfinished run is known by ------------------------------------------------------


def _plan(schema: lk.Schema | None = None, **changes: Any) -> lk.Plan:
    settings = {"method": lk.DPMERF(**TINY), "budget": lk.Budget(1.0, 1e-5), "check": False}
    made = settings | changes
    return lk.plan(made["method"], schema or table_schema(), made["budget"], check=made["check"])


def test_a_job_is_known_by_everything_that_was_asked_for() -> None:
    plans = [
        _plan(),
        _plan(table_schema(rows=201)),
        _plan(table_schema(unit="one visit")),
        _plan(method=lk.DPMERF(**TINY | {"steps": 3})),
        _plan(method=lk.DPMERF(**TINY | {"features": 26})),
        _plan(budget=lk.Budget(1.1, 1e-5)),
        _plan(budget=lk.Budget(1.0, 2e-5)),
        _plan(budget=lk.Budget(1.0, 1e-5, "replace-one")),
        _plan(check=True),
    ]
    known = [json.dumps(identity(plan, Noise()), sort_keys=True, default=str) for plan in plans]
    noises = [Noise.from_seed(1), Noise.from_seed(2), Noise.from_seed(2, law=True)]
    known += [json.dumps(identity(plans[0], n), sort_keys=True, default=str) for n in noises]
    assert len(set(known)) == len(known)
    assert identity(plans[0], Noise()) == identity(plans[0], Noise())


def test_an_unfinished_run_is_known_by_every_part_of_its_plan() -> None:
    plan = _plan()
    parts = [plan.charges]
    before = kept_plan(plan, parts)
    assert kept_plan(plan, parts) == before
    changes: list[dict[str, Any]] = [
        {"name": "another"}, {"sensitivity": 9.0}, {"noise_multiplier": 9.0}, {"coordinates": 9},
        {"sampling": 0.5}, {"steps": 9}, {"threshold_delta": 1e-9}, {"mechanism": "discrete laplace"},
    ]  # fmt: skip
    for change in changes:
        for at in range(len(plan.charges)):
            charges = list(plan.charges)
            charges[at] = replace(charges[at], **change)
            assert kept_plan(replace(plan, charges=tuple(charges)), parts) != before
            assert kept_plan(plan, [tuple(charges)]) != before
    assert kept_plan(plan, []) != before


@pytest.mark.parametrize("column", ["age", "income", "town", "smoker", "seen", "ill"])
def test_a_resumed_run_notices_any_change_of_the_rows(column: str) -> None:
    rows = table_rows(30).astype(object)
    other = rows.copy()
    other.loc[7, column], other.loc[8, column] = rows.loc[8, column], rows.loc[7, column]
    values = {"age": 55.0, "income": 1.5, "town": "zz", "smoker": None, "seen": "2011-01-01"}
    other.loc[9, column] = values.get(column, "unsure")
    for change in (other, rows.iloc[:-1], pd.concat([rows, rows.iloc[[0]]])):
        one, two = (lk.read(r, table_schema())._digest(b"key") for r in (rows, change))
        assert one != two


def test_a_resumed_run_notices_another_persons_row() -> None:
    """The same rows, of which one belongs to somebody else."""
    rows = table_rows(30).assign(who=[f"p{number % 5}" for number in range(30)])
    schema = table_schema(person=lk.Person(column="who", rows_at_most=2))
    other = rows.copy()
    other.loc[3, "who"] = "p0"
    assert lk.read(rows, schema)._digest(b"key") != lk.read(other, schema)._digest(b"key")


def test_the_digest_of_the_rows_in_a_job_is_keyed() -> None:
    """Else whoever finds it could try candidates for the rows."""
    given = lk.read(table_rows(30), table_schema())
    assert given._digest(b"one") != given._digest(b"two") == given._digest(b"two")


def test_which_rows_of_a_person_are_kept_is_a_secret_of_the_run(tmp_path: Path) -> None:
    from helpers import ask

    from limbeck.privacy import Histogram

    rows = table_rows(40).assign(who=[f"p{i % 5}" for i in range(40)])
    person = lk.Person(column="who", rows_at_most=2)
    kept = []
    for seed in (1, 2, 1):
        given = lk.read(rows, table_schema(person=person))
        ask(given, Histogram(name="counts", bins=3), noise=Noise.from_seed(seed)).ask("counts")
        assert given._kept is not None
        kept.append(tuple(given._kept[1].labels >= 0))
    assert kept[0] != kept[1] and kept[0] == kept[2]


def test_a_run_is_booked_for_whom_it_protects() -> None:
    person = lk.Person(column="who", rows_at_most=2)
    assert planned_run(_plan()).unit == "row"
    assert planned_run(_plan(table_schema(person=person))).unit == "person by who"
