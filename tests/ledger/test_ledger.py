"""The ledger: nothing is overdrawn, across runs, filters and processes."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import types
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import limbeck as lk
from limbeck.accounting import Charge, calibrate, cost, gaussian_epsilon, mu_for
from limbeck.ledger import Job, Run, spent, unfinished
from limbeck.ledger import lock as _lock

ONE = Charge(name="one", sensitivity=1.0, coordinates=1)
SAMPLED = Charge(name="many", sensitivity=1.0, coordinates=1, sampling=0.05, steps=50)


def _run(epsilon: float, charge: Charge = ONE, dataset: str = "d") -> Run:
    budget = lk.Budget(epsilon)
    charges = calibrate([charge], [1.0], budget)
    price = cost(charges, budget)
    private = math.isfinite(price.epsilon)
    return Run(
        id=uuid.uuid4().hex, dataset=dataset, method="m", epsilon=price.epsilon, delta=price.delta,
        adjacency="add-remove", charges=tuple(charges), private=private,
        status="running" if private else "never released",
        started="2020-01-01T00:00:00Z",
    )  # fmt: skip


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
    assert account.spent == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=1e-6)
    assert account.spent < 4 * 1.0


def test_sums_add_epsilons_and_deltas(ledger: lk.Ledger) -> None:
    life = _life(2.5, 2.5e-5, "sum")
    ledger.charge(life, _run(1.0))
    ledger.charge(life, _run(1.0, SAMPLED))
    assert ledger.accounts()[0].spent == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(lk.BudgetExceeded, match="needs more delta than that holds"):
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


# ---- the file: its form, its chain, who may read it ----------------------------------------

OLD = Path(__file__).parent / "ledger-version-0.sqlite"
"""Written by the version of limbeck whose ledger had neither a form nor a chain."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "old.sqlite"))


def test_an_old_ledger_keeps_every_run(old: Path) -> None:
    ledger = lk.Ledger(old)
    people, survey = ledger.accounts()
    assert (people.dataset, survey.dataset) == ("people", "town's survey")
    assert people.lifetime == _life(5.0, 1e-4) and survey.lifetime == _life(2.0, 1e-4, "sum")
    assert people.spent == spent(people.runs, people.lifetime) > 1.0
    assert [r.epsilon for r in people.runs] == [
        pytest.approx(1.0), pytest.approx(0.5, abs=1e-3), math.inf,
    ]  # fmt: skip
    assert [r.status for r in people.runs] == ["done", "abandoned", "never released"]
    assert people.runs[1].charges[0].steps == 50
    assert ledger.check_entries().entries == 6
    with sqlite3.connect(old) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
    assert lk.Ledger(old).accounts() == [people, survey]  # and is brought over once


def test_names_that_differ_in_spelling_are_one_data_set(ledger: lk.Ledger, old: Path) -> None:
    ledger.charge(_life(1.0), _run(0.6, dataset="People"))
    with pytest.raises(lk.BudgetExceeded):
        ledger.charge(_life(1.0), _run(0.9, dataset=" people "))
    assert ledger.account("PEOPLE") == ledger.accounts()[0]
    with sqlite3.connect(old) as database:
        database.execute("UPDATE runs SET dataset = 'People ' WHERE dataset = 'town''s survey'")
        database.execute("UPDATE datasets SET name = 'People ' WHERE name = 'town''s survey'")
    [account] = lk.Ledger(old).accounts()
    assert len(account.runs) == 4 and account.lifetime.epsilon == 2.0  # the smaller promise


def test_a_newer_ledger_is_refused(ledger: lk.Ledger) -> None:
    with sqlite3.connect(ledger.path) as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(lk.LimbeckError, match="newer version of limbeck .form 7"):
        lk.Ledger(ledger.path)


def test_a_program_of_the_old_form_cannot_take_the_ledger_for_an_empty_one(
    ledger: lk.Ledger,
) -> None:
    ledger.charge(_life(1.0), _run(1.0))
    with sqlite3.connect(ledger.path) as database, pytest.raises(sqlite3.Error):
        database.execute("INSERT OR IGNORE INTO datasets VALUES ('d', 1, 1, 'gdp')")
    with sqlite3.connect(ledger.path) as database, pytest.raises(sqlite3.Error):
        database.execute("INSERT INTO runs VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)")


def test_entries_are_never_changed(ledger: lk.Ledger) -> None:
    ledger.charge(_life(1.0), _run(1.0))
    for statement in ("UPDATE entries SET content = ''", "DELETE FROM entries"):
        with sqlite3.connect(ledger.path) as database, pytest.raises(sqlite3.Error, match="never"):
            database.execute(statement)


@pytest.mark.parametrize(
    "edit, word",
    [
        ("UPDATE entries SET content = replace(content, '0.5', '0.1') WHERE number = 3", "entry 3"),
        ("UPDATE entries SET dataset = 'other' WHERE number = 2", "entry 2"),
        ("UPDATE entries SET written = '2001-01-01T00:00:00Z' WHERE number = 4", "entry 4"),
        ("DELETE FROM entries WHERE number = 3", "entry 3 is missing"),
        ("DELETE FROM entries WHERE number = 1", "entry 1 is missing"),
        ("DELETE FROM entries WHERE number = 4", "noted digest"),
    ],
)
def test_an_edited_entry_is_found(ledger: lk.Ledger, edit: str, word: str) -> None:
    runs = [_run(0.5), _run(0.5)]
    for run in runs:
        ledger.charge(_life(3.0), run)
    ledger.finish(runs[0].id)
    seal = ledger.check_entries()
    assert seal.entries == 4 and ledger.check_entries(seal.digest) == seal
    ledger.finish(runs[0].id)  # nothing new to say
    assert ledger.check_entries() == seal
    with sqlite3.connect(ledger.path) as database:
        database.execute("DROP TRIGGER entries_stay")
        database.execute("DROP TRIGGER entries_remain")
        assert database.execute(edit).rowcount == 1
    with pytest.raises(lk.LimbeckError, match=word):
        ledger.check_entries(seal.digest)


def test_an_index_hides_no_run(ledger: lk.Ledger) -> None:
    """The chain covers the table alone: whoever edits the index beside it must not get a fresh budget."""
    ledger.charge(_life(3.0), _run(2.9))
    spent = ledger.accounts()[0].spent
    with sqlite3.connect(ledger.path) as database:
        name = database.execute("SELECT DISTINCT dataset FROM entries NOT INDEXED").fetchone()[0]
        size = database.execute("PRAGMA page_size").fetchone()[0]
        page = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'entries_of_dataset'"
        ).fetchone()[0]
    content = bytearray(ledger.path.read_bytes())
    at = slice((page - 1) * size, page * size)
    content[at] = content[at].replace(name.encode(), b"z" * len(name.encode()))
    ledger.path.write_bytes(content)
    (account,) = lk.Ledger(ledger.path).accounts()
    assert account.dataset == name and account.spent == spent
    with pytest.raises(lk.BudgetExceeded):
        ledger.charge(_life(3.0), _run(2.9))
    with pytest.raises(lk.LimbeckError, match="damaged or was edited"):
        ledger.check_entries()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_can_read(tmp_path: Path) -> None:
    """Also where an older version, or a copy, left looser modes behind."""
    path = tmp_path / "ledger.sqlite"
    mask = os.umask(0)
    try:
        shutil.copy(OLD, path)
        (tmp_path / "jobs" / "key").mkdir(parents=True)
        for loose in (path, tmp_path / "ledger.sqlite-journal"):
            loose.touch()
            loose.chmod(0o666)
        ledger = lk.Ledger(path)
        assert path.stat().st_mode & 0o777 == 0o600
        fresh = lk.Ledger(tmp_path / "fresh" / "ledger.sqlite")
        with Job(fresh.jobs, {"a": 1}) as job:
            job.begin("run", b"secret", "digest", {})
            job.save("answer", np.zeros(3))
        private = [path, fresh.path, *(p for p in fresh.jobs.rglob("*") if p.is_file())]
        private += list(tmp_path.glob("ledger.sqlite-*"))
        assert len(private) >= 7
        for file in private:
            assert file.stat().st_mode & 0o777 == 0o600, file
        for folder in (ledger.jobs, fresh.jobs, job.folder, fresh.path.parent):
            assert folder.stat().st_mode & 0o777 == 0o700, folder
    finally:
        os.umask(mask)


# ---- jobs ----------------------------------------------------------------------------------


def test_an_answer_belongs_to_the_state_it_was_asked_with(tmp_path: Path) -> None:
    answer = np.arange(6.0).reshape(2, 3)
    with Job(tmp_path, {"a": 1}) as job:
        job.begin("run", b"secret", "digest", {})
        for place in (job, job.part("inner")):
            place.save("gradient-0", answer, digest="parameters")
            place.save("plain", answer)
            assert np.array_equal(place.load("gradient-0", digest="parameters"), answer)
            assert np.array_equal(place.load("plain"), answer)
            assert place.load("gradient-1", digest="parameters") is None
            for digest in ("others", ""):
                with pytest.raises(lk.LimbeckError, match="gradient-0.*pay_again=True"):
                    place.load("gradient-0", digest=digest)


def test_what_is_running_is_told_from_what_was_interrupted(tmp_path: Path) -> None:
    assert unfinished(tmp_path / "jobs") == {}
    with Job(tmp_path / "jobs", {"a": 1}) as job:
        job.begin("run 1", b"secret", "digest", {})
        assert unfinished(tmp_path / "jobs") == {"run 1": "running"}
    assert unfinished(tmp_path / "jobs") == {"run 1": "interrupted, resumable"}


def test_a_disk_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_lock, "_seize", no_locks)
    with pytest.raises(lk.LimbeckError, match="local disk"):
        Job(tmp_path, {"a": 1})


def test_windows_locks_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch for Windows, with its one call in place."""
    held: set[int] = set()

    def locking(handle: int, mode: int, count: int) -> None:
        place = os.fstat(handle).st_ino
        if place in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        assert (mode, count, os.lseek(handle, 0, os.SEEK_CUR)) == (2, 1, 0)
        held.add(place)

    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr(sys, "platform", "win32")
    source = Path(str(_lock.__file__)).read_text()
    windows: dict[str, object] = {
        "__name__": "limbeck.privacy.windows_lock",
        "__package__": "limbeck.privacy",
    }
    exec(compile(source, "windows_lock.py", "exec"), windows)
    assert "fcntl" not in windows
    first = windows["try_lock"](tmp_path / "lock")  # type: ignore[operator]
    assert first is not None and windows["try_lock"](tmp_path / "lock") is None  # type: ignore[operator]
    os.close(first)
