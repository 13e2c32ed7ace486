"""Laws of payment: what is booked, in which order, what counts, and what an unfinished run is known by."""

from __future__ import annotations

import math
import sqlite3
import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

import limbeck as lk
from limbeck.accounting import ORDERS, Charge, calibrate, cost, gaussian_epsilon, mu_for, slack
from limbeck.ledger import Run, book, spent
from limbeck.ledger.entries import entry_digest

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
    price = 0.4
    for _ in range(5):  # the filter by Renyi divergence prices by an order that suits the lifetime
        price = FILTERS[name]([run], _life(name, price))
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
