"""What a machine does to a run: damaged files, no room, little memory, a clock that goes back. Nothing is
paid twice, nothing is given away."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk

METHOD, BUDGET = lk.DPMERF(**TINY | {"steps": 1}), lk.Budget(1.0, 1e-5)


@pytest.fixture
def ledger(tmp_path: Path) -> lk.Ledger:
    return lk.Ledger(tmp_path / "books" / "ledger.sqlite")


def run(ledger: lk.Ledger, **more: Any) -> lk.Release:
    return lk.distill(
        lk.read(table_rows(60), table_schema()), METHOD, BUDGET, ledger=ledger, **more
    )


def broken_off(ledger: lk.Ledger) -> Path:
    """The job of a run that was killed when all was measured."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("limbeck.methods.mean_embedding.embedding.fit", die)
        run(ledger)
    (job,) = ledger.jobs.iterdir()
    return job


WOUNDS = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "not UTF-8": lambda content: b"\xff\xfe" + content[2:],
    "longer": lambda content: content * 4,
}


@pytest.mark.parametrize("name", ["secret", "plan", "digest", "run", "mean-embedding"])
def test_a_damaged_job_is_told_of_and_can_be_given_up(name: str, ledger: lk.Ledger) -> None:
    """Whatever is left of its files: a second run is paid for, or refused in one line until it is."""
    job = broken_off(ledger)
    (path,) = [p for p in job.iterdir() if p.name.startswith(name)]
    whole, before = path.read_bytes(), ledger.accounts()[0].spent
    shutil.copytree(ledger.path.parent, kept := ledger.path.parent.with_name("kept"))
    for wound in WOUNDS.values():
        shutil.rmtree(ledger.path.parent)
        shutil.copytree(kept, ledger.path.parent)
        path.write_bytes(wound(whole))
        try:
            made = run(ledger)
        except lk.LimbeckError as refused:
            assert "\n" not in str(refused) and "pay_again=True" in str(refused)
            assert name in ("plan", "mean-embedding")
            made = run(ledger, pay_again=True)
        assert made.certificate["releasable"]
        (account,) = ledger.accounts()
        resumed = (
            account.spent == before and name == "mean-embedding"
        )  # what it holds is still there
        assert (account.spent > 1.2 * before or resumed) and account.runs[-1].status == "done"
        assert not [p for p in ledger.jobs.rglob("*") if p.is_file()]


@pytest.mark.parametrize("wound", WOUNDS)
def test_a_damaged_ledger_is_never_taken_for_an_empty_one(wound: str, ledger: lk.Ledger) -> None:
    run(ledger)
    spent = ledger.accounts()[0].spent
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(
        WOUNDS[wound](content) if wound != "longer" else content[:100] + content
    )
    if wound == "empty":  # all is gone: no program can know what there was
        return
    try:
        again = lk.Ledger(ledger.path)
        again.check_entries()
        assert again.accounts()[0].spent >= spent
    except lk.LimbeckError as refused:
        assert "\n" not in str(refused) and str(ledger.path) in str(refused)
    else:
        raise AssertionError("a damaged ledger passed for a whole one")


def test_a_clock_that_goes_back_changes_nothing(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is spent, the order of entries and their chain do not rest on the time of day."""
    run(ledger)
    once = ledger.accounts()[0].spent
    monkeypatch.setattr(time, "gmtime", lambda *_: time.struct_time((1999, 1, 1, 0, 0, 0, 4, 1, 0)))
    run(ledger)
    (account,) = ledger.accounts()
    assert [r.started[:4] for r in account.runs][1] == "1999" and account.spent > 1.2 * once
    assert ledger.check_entries().entries >= 5
    tight = table_schema(lifetime=lk.Lifetime(epsilon=0.1, delta=1e-5), dataset="another")
    with pytest.raises(lk.BudgetExceeded):
        lk.distill(lk.read(table_rows(60), tight), METHOD, BUDGET, ledger=ledger)


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so a file stands where the folder should be."""
    (tmp_path / "books").write_text("")
    with pytest.raises(lk.LimbeckError, match="Cannot open the ledger") as refused:
        lk.Ledger(tmp_path / "books" / "ledger.sqlite")
    assert "\n" not in str(refused.value)


def test_a_full_disk_beside_the_ledger_is_told_of(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is paid, and the next call does it all."""

    def full(handle: int) -> None:
        raise OSError(28, os.strerror(28))  # ENOSPC

    with monkeypatch.context() as patch:
        patch.setattr("limbeck.ledger.answers.os.fsync", full)
        with pytest.raises(lk.LimbeckError, match="Cannot keep what a run resumes from") as told:
            run(ledger)
    assert "No space left" in str(told.value) and "\n" not in str(told.value)
    assert ledger.accounts() == []
    assert run(ledger).certificate["releasable"] and len(ledger.accounts()[0].runs) == 1


def test_a_network_drive_without_locks_is_refused_before_anything_is_paid(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(handle: int) -> None:
        raise OSError(37, os.strerror(37))  # ENOLCK

    monkeypatch.setattr("limbeck.ledger.lock._seize", no_locks)
    with pytest.raises(lk.LimbeckError, match="Cannot lock files"):
        run(ledger)
    assert ledger.accounts() == []


PROGRAM = """
import resource, signal, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from helpers import TINY, table_rows, table_schema
import limbeck as lk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def told(phase, done):
    print(phase, flush=True)
    if phase == "class counts" and done == 1:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        for name, most in {limits!r}.items():
            most += used if name == "RLIMIT_AS" else 0
            resource.setrlimit(getattr(resource, name), (most, most))


data = lk.read(table_rows(60), table_schema())
lk.distill(data, lk.DPMERF(**TINY | {{"steps": {steps}}}), lk.Budget(1.0, 1e-5), out={out!r},
           ledger=lk.Ledger(Path({book!r})), progress=told)
"""


def program(tmp_path: Path, **more: Any) -> list[str]:
    told = {"out": str(tmp_path / "out"), "book": str(tmp_path / "books" / "l.sqlite"), "steps": 1}
    told["limits"] = {}  # type: ignore[assignment]
    text = PROGRAM.format(paths=[str(Path(__file__).parents[1])], **(told | more))
    return [sys.executable, "-c", text]


def whole_or_nothing(tmp_path: Path) -> None:
    """Nothing half written; what was paid is booked once, and the next run comes to its end."""
    out, book = tmp_path / "out", lk.Ledger(tmp_path / "books" / "l.sqlite")
    assert not out.exists() or lk.verify(out, questions=False)
    book.check_entries()
    assert sum(len(account.runs) for account in book.accounts()) <= 1
    lk.distill(
        lk.read(table_rows(60), table_schema()), METHOD, BUDGET, out=out, force=True, ledger=book
    )
    assert lk.verify(out, questions=False).epsilon == pytest.approx(1.0)
    assert not [p for p in book.jobs.rglob("*") if p.is_file()]
    assert len(book.accounts()[0].runs) == 1


LIMITS = {
    "a full disk": {"RLIMIT_FSIZE": 100},
    "little memory": {"RLIMIT_AS": 20 << 20},
}
"""Files that cannot grow further, and an address space that ends: both after the run was paid for."""


@pytest.mark.parametrize("name", LIMITS)
def test_a_machine_without_room_loses_nothing(name: str, tmp_path: Path) -> None:
    world = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    words = program(tmp_path, limits=LIMITS[name])
    done = subprocess.run(words, capture_output=True, text=True, env=world)
    assert done.returncode != 0 and "class counts" in done.stdout, done.stderr
    (account,) = lk.Ledger(tmp_path / "books" / "l.sqlite").accounts()
    assert account.spent > 0 and account.runs[0].status == "interrupted, resumable"
    whole_or_nothing(tmp_path)


def test_two_interrupts_lose_nothing(tmp_path: Path) -> None:
    child = subprocess.Popen(
        program(tmp_path, steps=10_000_000), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdout is not None
    try:
        for line in child.stdout:
            if b"generator" in line:
                break
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=200)
    finally:
        child.kill()
    assert child.returncode != 0
    book = lk.Ledger(tmp_path / "books" / "l.sqlite")
    assert [r.status for r in book.accounts()[0].runs] == ["interrupted, resumable"]
    assert not (tmp_path / "out").exists()
