"""Laws of payment: what is booked, in which order, what counts, and what an unfinished run is known by."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dp_accounting.rdp import RdpAccountant
from helpers import TINY, table_rows, table_schema
from scipy.stats import norm

import limbeck as lk
from limbeck.accounting import ORDERS, Charge, calibrate, cost, gaussian_epsilon, mu_for, slack
from limbeck.ledger import Job, Run, book, spent
from limbeck.ledger.booked import planned_run
from limbeck.ledger.entries import entry_digest
from limbeck.ledger.identity import identity, kept_plan
from limbeck.privacy import Noise

ONE = Charge(name="one", sensitivity=1.0, coordinates=1)
KINDS = {
    "gaussian": [ONE],
    "several charges": [ONE, replace(ONE, name="two", steps=7)],
    "sampled": [replace(ONE, sampling=0.05, steps=50)],
    "thresholds": [replace(ONE, threshold_delta=2e-6)],
    "many numbers": [replace(ONE, coordinates=10**11)],
    "pure": [replace(ONE, mechanism="discrete laplace", noise_multiplier=3.0)],
}
"""Sorts of runs that a ledger adds up."""


def _run(charges: list[Charge], epsilon: float = 0.4, dataset: str = "d") -> Run:
    budget = lk.Budget(epsilon, 1e-5)
    made = calibrate(charges, [1.0] * len(charges), budget)
    price = cost(made, budget)
    return Run(
        id=uuid.uuid4().hex, dataset=dataset, method="m", epsilon=price.epsilon, delta=price.delta,
        adjacency="add-remove", charges=tuple(made), private=True, status="running",
        started="2020-01-01T00:00:00Z",
    )  # fmt: skip


def _life(filter: str, epsilon: float = 6.0, delta: float = 1e-3) -> lk.Lifetime:
    return lk.Lifetime(epsilon=epsilon, delta=delta, filter=filter)


def _aside(run: Run, life: lk.Lifetime) -> float:
    return slack(run.charges, life.epsilon) + sum(c.threshold_delta for c in run.charges)


def _pure(epsilon: float) -> float:
    """The mu whose trade-off curve lies below that of (epsilon, 0), squared."""
    return float(2 * norm.ppf(math.exp(epsilon) / (1 + math.exp(epsilon)))) ** 2


def _gdp(runs: list[Run], life: lk.Lifetime) -> float:
    squares, rest = 0.0, life.delta
    for run in runs:
        if any(c.sampling is not None for c in run.charges):
            squares, rest = squares + _pure(run.epsilon), rest - run.delta
            continue
        for c in run.charges:
            pure = c.mechanism != "discrete gaussian"
            squares += c.steps * (_pure(1 / c.noise_multiplier) if pure else c.noise_multiplier**-2)
        rest -= _aside(run, life)
    return gaussian_epsilon(math.sqrt(squares), rest) if rest > 0 else math.inf


def _rdp(runs: list[Run], life: lk.Lifetime) -> float:
    mu = mu_for(life.epsilon, life.delta)

    def converted(a: float) -> float:
        return (
            a * mu**2 / 2 + math.log((a - 1) / a) - (math.log(life.delta) + math.log(a)) / (a - 1)
        )

    accountant = RdpAccountant([min(ORDERS, key=converted)])
    for charge in (c for run in runs for c in run.charges):
        accountant.compose(charge.event(renyi=True))
    rest = life.delta - sum(_aside(run, life) for run in runs)
    return float(accountant.get_epsilon(rest)) if rest > 0 else math.inf


def _sum(runs: list[Run], life: lk.Lifetime) -> float:
    if sum(run.delta for run in runs) > life.delta:
        return math.inf
    return sum(run.epsilon for run in runs)


FILTERS = {"gdp": _gdp, "rdp": _rdp, "sum": _sum}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_counts_every_part_of_every_run(name: str) -> None:
    """Against the rule written down a second time: alone, twice, with others, and in any order."""
    runs = {kind: _run(charges) for kind, charges in KINDS.items()}
    life, tight = _life(name), _life(name, delta=3.3e-5)
    for kind, run in runs.items():
        for listed in ([run], [run, run], [runs["gaussian"], run], [run, runs["gaussian"]]):
            wanted = FILTERS[name](listed, life)
            assert spent(listed, life) == pytest.approx(wanted, rel=1e-9), kind
        assert spent([run, run], life) > spent([run], life) > 0
    whole = list(runs.values())
    for some in (life, tight):
        assert spent(whole, some) == pytest.approx(FILTERS[name](whole, some), rel=1e-9)
    assert spent(whole[::-1], life) == pytest.approx(spent(whole, life), rel=1e-9)


@pytest.mark.parametrize("name", FILTERS)
def test_a_lifetime_ends_with_the_run_that_overdraws_it(name: str, tmp_path: Path) -> None:
    ledger, life = lk.Ledger(tmp_path / "l.sqlite"), _life(name, 1.0, 1e-4)
    booked: list[Run] = []
    for _ in range(30):
        run = _run([ONE], 0.4)
        fits = FILTERS[name]([*booked, run], life) <= life.epsilon
        if not fits:
            with pytest.raises(lk.BudgetExceeded):
                ledger.charge(life, run)
            break
        ledger.charge(life, run)
        booked.append(run)
    assert 1 < len(booked) < 20 and len(ledger.accounts()[0].runs) == len(booked)
    assert ledger.accounts()[0].spent <= life.epsilon


@pytest.mark.parametrize("name", FILTERS)
def test_a_run_that_overdraws_by_a_little_is_refused(name: str, tmp_path: Path) -> None:
    ledger, run = lk.Ledger(tmp_path / "l.sqlite"), _run([ONE], 0.4)
    price = FILTERS[name]([run], _life(name))
    told = []
    for number in range(-6, 7):
        life = _life(name, price * (1 + number / 100))
        fits = FILTERS[name]([run], life) <= life.epsilon
        told.append(fits)
        if not fits:
            with pytest.raises(lk.BudgetExceeded):
                ledger.check("d", life, run)
        else:
            ledger.check("d", life, run)
    assert 2 < sum(told) < 11


@pytest.mark.parametrize("state", ["done", "abandoned", "stopped by its check", "interrupted"])
def test_what_became_of_a_run_does_not_change_what_it_cost(state: str, tmp_path: Path) -> None:
    ledger, runs = lk.Ledger(tmp_path / "l.sqlite"), [_run([ONE]) for _ in range(3)]
    for run in runs:
        ledger.charge(_life("gdp"), run)
    before = ledger.accounts()[0].spent
    ledger.finish(runs[1].id, state)
    ledger.charge(_life("gdp"), _run([ONE]), instead_of=runs[0].id)
    [account] = ledger.accounts()
    assert [r.charges for r in account.runs[:3]] == [r.charges for r in runs]
    assert account.spent > before
    assert account.spent == pytest.approx(_gdp([*runs, _run([ONE])], _life("gdp")))


def test_a_run_is_admitted_and_booked_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that both saw room for one must not both be booked: the second waits for the first."""
    ledger, life = lk.Ledger(tmp_path / "l.sqlite"), _life("sum", 1.0)
    admitted, both = book.check_admitted, threading.Barrier(2)

    def slowly(*given: Any) -> None:
        admitted(*given)
        try:
            both.wait(timeout=0.4)  # if another is admitted meanwhile, both go on together
        except threading.BrokenBarrierError:
            both.reset()

    monkeypatch.setattr(book, "check_admitted", slowly)
    told: list[str] = []

    def pay(run: Run) -> None:
        try:
            lk.Ledger(ledger.path).charge(life, run)
        except lk.BudgetExceeded:
            told.append("refused")
        except lk.LimbeckError as error:  # the file was locked: not booked either
            told.append(type(error).__name__)
        else:
            told.append("paid")

    racing = [threading.Thread(target=pay, args=(_run([ONE], 0.7),)) for _ in range(2)]
    for one in racing:
        one.start()
    for one in racing:
        one.join()
    assert sorted(told) == ["paid", "refused"]
    assert len(ledger.accounts()[0].runs) == 1


def test_every_entry_is_sealed_with_all_before_it(tmp_path: Path) -> None:
    """An entry that was edited and sealed anew gives itself away by the next one."""
    ledger = lk.Ledger(tmp_path / "l.sqlite")
    for _ in range(3):
        ledger.charge(_life("gdp"), _run([ONE]))
    names = ("number", "kind", "dataset", "run", "content", "written")
    with sqlite3.connect(ledger.path) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(r) for r in database.execute("SELECT * FROM entries ORDER BY number")]
        database.execute("DROP TRIGGER entries_stay")
    for place in range(len(rows) - 1):
        edited = rows[place] | {"written": "2001-01-01T00:00:00Z"}
        before = rows[place - 1]["digest"] if place else "0" * 64
        digest = entry_digest(before, tuple(edited[n] for n in names))
        for row in (edited | {"digest": digest}, rows[place]):
            with sqlite3.connect(ledger.path) as database:
                database.execute(
                    "UPDATE entries SET written = ?, digest = ? WHERE number = ?",
                    (row["written"], row["digest"], row["number"]),
                )
            if row is not rows[place]:
                with pytest.raises(lk.LimbeckError, match=f"entry {place + 2}"):
                    ledger.check_entries()
    assert ledger.check_entries().entries == len(rows)


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
