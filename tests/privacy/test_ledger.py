"""The ledger: nothing is overdrawn, across runs, filters and processes."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import limbeck as lk
from limbeck.privacy import Charge, Run, calibrate, cost, mu_for, new_run
from limbeck.privacy._ledger import spent

ONE = Charge(name="one", sensitivity=1.0, coordinates=1)
SAMPLED = Charge(name="many", sensitivity=1.0, coordinates=1, sampling=0.05, steps=50)


def _run(epsilon: float, charge: Charge = ONE, dataset: str = "d") -> Run:
    budget = lk.Budget(epsilon)
    charges = calibrate([charge], [1.0], budget)
    return new_run(dataset, "m", charges, cost(charges, budget), "add-remove")


def _life(epsilon: float, delta: float = 1e-5, filter: str = "gdp") -> lk.Lifetime:
    return lk.Lifetime(epsilon=epsilon, delta=delta, filter=filter)


@pytest.fixture
def ledger(tmp_path: Path) -> lk.Ledger:
    return lk.Ledger(tmp_path / "ledger.sqlite")


def test_one_run_may_use_the_whole_lifetime_and_then_nothing_more(ledger: lk.Ledger) -> None:
    ledger.charge(_life(1.0), _run(1.0))
    [account] = ledger.accounts()
    assert account.spent == pytest.approx(1.0) and account.remaining == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(lk.BudgetExceeded, match="Budget spent"):
        ledger.charge(_life(1.0), _run(0.1))
    assert len(ledger.accounts()[0].runs) == 1


def test_gaussian_runs_add_as_gaussians(ledger: lk.Ledger) -> None:
    for _ in range(4):
        ledger.charge(_life(10.0), _run(1.0))
    [account] = ledger.accounts()
    mu = 2 * mu_for(1.0, 1e-5)
    assert account.spent == pytest.approx(lk.privacy.gaussian_epsilon(mu, 1e-5), rel=1e-6)
    assert account.spent < 4 * 1.0


def test_sums_add_epsilons_and_deltas(ledger: lk.Ledger) -> None:
    life = _life(2.5, 2.5e-5, "sum")
    ledger.charge(life, _run(1.0))
    ledger.charge(life, _run(1.0, SAMPLED))
    assert ledger.accounts()[0].spent == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(lk.BudgetExceeded, match="cannot be paid at all"):
        ledger.charge(life, _run(0.3))  # its delta is one too many


def test_every_filter_bounds_what_the_plain_composition_gives() -> None:
    """A filter may be looser than composing a fixed plan, never tighter."""
    runs = [_run(0.5), _run(0.7), _run(0.4, SAMPLED)]
    charges = [c for r in runs for c in r.charges]
    honest = cost(charges, lk.Budget(20.0, 1e-4)).epsilon
    for name in ("gdp", "rdp", "sum"):
        assert spent(runs, _life(20.0, 1e-4, name)) >= honest * (1 - 1e-6)


def test_rdp_takes_sampled_runs_cheaply() -> None:
    runs = [_run(1.0, SAMPLED)] * 3
    assert spent(runs, _life(10.0, 1e-5, "rdp")) < spent(runs, _life(10.0, 1e-4, "gdp"))


def test_runs_without_noise_are_booked_and_not_counted(ledger: lk.Ledger) -> None:
    run = _run(math.inf)
    ledger.charge(_life(1.0), run)
    ledger.finish(run.id)
    [account] = ledger.accounts()
    assert account.spent == 0 and account.runs[0].status == "never released"


def test_data_sets_are_booked_apart(ledger: lk.Ledger) -> None:
    ledger.charge(_life(1.0), _run(1.0, dataset="a"))
    ledger.charge(_life(1.0), _run(1.0, dataset="b"))
    assert [a.dataset for a in ledger.accounts()] == ["a", "b"]


def test_a_lifetime_cannot_be_raised_by_editing_the_schema(ledger: lk.Ledger) -> None:
    ledger.charge(_life(1.0), _run(1.0))
    with pytest.raises(lk.LimbeckError, match="knowingly"):
        ledger.charge(_life(5.0), _run(1.0))
    ledger.set_lifetime("d", _life(5.0))
    ledger.charge(_life(5.0), _run(1.0))
    with pytest.raises(lk.LimbeckError, match="no data set"):
        ledger.set_lifetime("unknown", _life(5.0))


def test_the_set_aside_delta_counts(ledger: lk.Ledger) -> None:
    run = _run(1.0)
    costly = replace(run, charges=(replace(run.charges[0], threshold_delta=1e-5),))
    assert spent([costly], _life(10.0, 1e-5)) == math.inf


def test_two_processes_cannot_both_spend_the_last(tmp_path: Path) -> None:
    """Eight processes race for a lifetime that pays for three."""
    path = tmp_path / "ledger.sqlite"
    lk.Ledger(path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import test_ledger as t, limbeck as lk\n"
        "try:\n    lk.Ledger(sys.argv[1]).charge(t._life(3.0, 3e-5, 'sum'), t._run(1.0))\n"
        "except lk.BudgetExceeded:\n    print('refused')\n"
        "else:\n    print('paid')\n"
    )
    arguments = [sys.executable, "-c", code, str(path), str(Path(__file__).parent)]
    racing = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    told = [p.communicate(timeout=200)[0].strip() for p in racing]
    assert sorted(told) == ["paid"] * 3 + ["refused"] * 5
    assert len(lk.Ledger(path).accounts()[0].runs) == 3
