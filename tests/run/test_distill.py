"""Runs survive: killed ones resume, pay once, and give the same answers."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk
from limbeck.ledger import Job
from limbeck.methods.mean_embedding import embedding as _embedding
from limbeck.privacy.grid import GridSum

METHOD = lk.DPMERF(**TINY)
BUDGET = lk.Budget(1.0)


class Killed(BaseException):
    """Stands for a kill signal: nothing catches it on the way."""


@pytest.fixture
def ledger(tmp_path: Path) -> lk.Ledger:
    return lk.Ledger(tmp_path / "books" / "ledger.sqlite")


def _kill_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    if place == "first answer":
        monkeypatch.setattr(GridSum, "finalise", die)
    elif place == "post-processing":
        monkeypatch.setattr(_embedding, "fit", die)
    elif place == "charge":
        monkeypatch.setattr(lk.Ledger, "charge", die)
    else:
        monkeypatch.setattr(lk.Release, "save", die)


@pytest.mark.parametrize("place", ["charge", "first answer", "post-processing", "saving"])
def test_a_killed_run_resumes_without_paying_twice(
    place: str, ledger: lk.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, out = table_rows(100), tmp_path / "release"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, place)
        lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, ledger=ledger, out=out)
    assert not out.exists()
    [job] = list(ledger.jobs.iterdir())
    secret = (job / "secret").read_bytes()
    assert (job / "secret").stat().st_mode & 0o077 == 0 and job.stat().st_mode & 0o077 == 0
    kept = {p.name: np.load(p) for p in job.glob("[!c]*.npy")} | {
        p.name: np.load(p) for p in job.glob("class*.npy")
    }  # the check's are not among the measurements
    assert bool(kept) == (place in ("post-processing", "saving"))
    release = lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, ledger=ledger, out=out)
    for name, answer in kept.items():
        key = "class counts" if name.startswith("class") else "mean embedding"
        assert np.array_equal(release.measurements[key].ravel(), answer.ravel())
    [account] = ledger.accounts()
    assert len(account.runs) == 1 and account.runs[0].status == "done"
    assert list(ledger.jobs.iterdir()) == []
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or secret not in path.read_bytes(), path
    assert lk.verify(out).epsilon == pytest.approx(1.0)


def test_a_resumed_run_draws_the_same_noise(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after noise was drawn but before the answer was kept: the same answer comes again."""
    rows, seen = table_rows(100), []
    save = Job.save

    def die(job: object, name: str, answer: np.ndarray, digest: str) -> None:
        seen.append(answer.copy())
        raise Killed

    monkeypatch.setattr(Job, "save", die)
    for _ in range(2):
        with pytest.raises(Killed):
            lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, ledger=ledger, check=False)
    monkeypatch.setattr(Job, "save", save)
    release = lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, ledger=ledger, check=False)
    for answer in seen:
        assert np.array_equal(answer.ravel(), release.measurements["class counts"])


def test_changed_rows_start_anew_and_pay_anew(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = table_schema()
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, "post-processing")
        lk.distill(lk.read(table_rows(100), schema), METHOD, BUDGET, ledger=ledger)
    [job] = list(ledger.jobs.iterdir())
    secret = (job / "secret").read_bytes()
    changed = table_rows(100)
    changed.loc[0, "income"] = 299.0
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, "post-processing")
        lk.distill(lk.read(changed, schema), METHOD, BUDGET, ledger=ledger)
    assert (job / "secret").read_bytes() != secret
    lk.distill(lk.read(changed, schema), METHOD, BUDGET, ledger=ledger)
    [account] = ledger.accounts()
    assert [r.status for r in account.runs] == ["abandoned", "done"]


def _begun(ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes]:
    """A run that was killed after it had been answered: its job's folder and secret."""
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, "post-processing")
        lk.distill(lk.read(table_rows(100), table_schema()), METHOD, BUDGET, ledger=ledger)
    [job] = list(ledger.jobs.iterdir())
    return job, (job / "secret").read_bytes()


def _louder(*told: object, **also: object) -> lk.Plan:
    planned = lk.plan(*told, **also)  # type: ignore[arg-type]
    raised = [replace(c, noise_multiplier=2 * c.noise_multiplier) for c in planned.charges]
    return replace(planned, charges=tuple(raised))


@pytest.mark.parametrize("changed", ["plan", "version", "both kept by an older version"])
def test_a_resumed_run_never_mixes_two_plans(
    changed: str, ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, secret = _begun(ledger, monkeypatch)
    data = lk.read(table_rows(100), table_schema())
    if changed == "plan":
        monkeypatch.setattr("limbeck.run.distilling.plan", _louder)
    elif changed == "version":
        monkeypatch.setattr(
            "limbeck.ledger.identity.origin", lambda kind: {"name": "limbeck", "version": "99.1"}
        )
    else:
        (job / "plan").unlink()
    with pytest.raises(lk.LimbeckError, match="unfinished run.*pay_again=True") as refused:
        lk.distill(data, METHOD, BUDGET, ledger=ledger)
    told = str(refused.value)
    assert told.count("mean embedding") == (1 if changed.startswith("both") else 2)
    assert (told.count("limbeck 99.1"), told.count("plan ")) == (changed == "version", 2)
    assert data._rows is None and (job / "secret").read_bytes() == secret  # nothing was touched
    [account] = ledger.accounts()
    assert [r.status for r in account.runs] == ["interrupted, resumable"]
    lk.distill(data, METHOD, BUDGET, ledger=ledger, pay_again=True)
    [account] = ledger.accounts()
    assert [r.status for r in account.runs] == ["abandoned", "done"]
    assert list(ledger.jobs.iterdir()) == []


def test_paying_again_erases_the_old_secret_and_draws_anew(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, secret = _begun(ledger, monkeypatch)
    [kept] = [np.load(p) for p in job.glob("mean-embedding*.npy")]
    data = lk.read(table_rows(100), table_schema())
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, "post-processing")
        lk.distill(data, METHOD, BUDGET, ledger=ledger, pay_again=True)
    assert (job / "secret").read_bytes() != secret
    [anew] = [np.load(p) for p in job.glob("mean-embedding*.npy")]
    assert not np.array_equal(anew, kept)
    statuses = [r.status for r in ledger.accounts()[0].runs]
    assert statuses == ["abandoned", "interrupted, resumable"]


def test_paying_again_without_the_budget_keeps_the_unfinished_run(
    ledger: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = table_schema(lifetime=lk.Lifetime(epsilon=1.0, delta=1e-5))
    data = lk.read(table_rows(100), schema)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        _kill_at(patched, "post-processing")
        lk.distill(data, METHOD, BUDGET, ledger=ledger)
    with pytest.raises(lk.BudgetExceeded):
        lk.distill(data, METHOD, BUDGET, ledger=ledger, pay_again=True)
    lk.distill(data, METHOD, BUDGET, ledger=ledger)
    assert [r.status for r in ledger.accounts()[0].runs] == ["done"]


def test_an_overdraft_is_refused_before_a_row_is_read(ledger: lk.Ledger) -> None:
    schema = table_schema(lifetime=lk.Lifetime(epsilon=1.0, delta=1e-5))
    lk.distill(lk.read(table_rows(50), schema), METHOD, BUDGET, ledger=ledger)
    data = lk.read(table_rows(50), schema)
    with pytest.raises(lk.BudgetExceeded):
        lk.distill(data, METHOD, lk.Budget(0.5), ledger=ledger)
    assert data._rows is None
    assert not ledger.jobs.exists() or list(ledger.jobs.iterdir()) == []


def test_the_same_job_cannot_run_twice_at_once(ledger: lk.Ledger) -> None:
    failures = []

    def meddle(phase: str, done: float) -> None:
        if phase == "generator" and not failures:
            failures.append(phase)
            with pytest.raises(lk.LimbeckError, match="already running"):
                lk.distill(lk.read(table_rows(50), table_schema()), METHOD, BUDGET, ledger=ledger)

    data = lk.read(table_rows(50), table_schema())
    lk.distill(data, METHOD, BUDGET, ledger=ledger, progress=meddle)
    assert failures and len(ledger.accounts()[0].runs) == 1


def test_unseeded_releases_of_the_same_rows_differ(ledger: lk.Ledger) -> None:
    """P6, P20: no fixed seed anywhere by default."""
    data = lk.read(table_rows(50), table_schema())
    one, two = (lk.distill(data, METHOD, BUDGET, ledger=ledger) for _ in range(2))
    assert not np.allclose(one.measurements["mean embedding"], two.measurements["mean embedding"])
    assert one.certificate["releasable"] and not one.certificate["noise"]["seeded"]


def test_output_size_and_divisors_use_public_or_noisy_counts(ledger: lk.Ledger) -> None:
    """P17, P22: a release has the declared number of rows, or a noisy one; never the true one."""
    rows = table_rows(137)
    declared = lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, ledger=ledger)
    assert len(declared.data) == 200
    bought = table_schema(rows=None, dataset="unknown size")
    sizes = {
        len(lk.distill(lk.read(rows, bought), METHOD, BUDGET, ledger=ledger).data) for _ in range(4)
    }
    assert len(sizes) > 1
    assert (
        len(lk.distill(lk.read(rows, table_schema()), METHOD, BUDGET, rows=11, ledger=ledger).data)
        == 11
    )


def test_a_process_killed_outright_resumes(tmp_path: Path) -> None:
    """SIGKILL in the middle of a real command line; the same command finishes the job."""
    rows = table_rows(400)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "schema.toml").write_text(table_schema().toml())
    recipe = (
        'method = "dp-merf"\n[settings]\nfeatures = 20\nsteps = 6000\nbatch = 8\nhidden = [4]\n'
    )
    (tmp_path / "recipe.toml").write_text(recipe)
    limbeck = [sys.executable, "-c", "from limbeck.cli.main import main; main()"]
    command = limbeck + [
        "distill",
        "rows.csv",
        "--schema",
        "schema.toml",
        "--recipe",
        "recipe.toml",
    ]
    command += ["--epsilon", "1", "--out", "release"]
    world = os.environ | {"LIMBECK_LEDGER": str(tmp_path / "ledger.sqlite")}
    running = subprocess.Popen(command, cwd=tmp_path, env=world, stdout=subprocess.DEVNULL)
    jobs = tmp_path / "jobs"
    for _ in range(600):
        if len(list(jobs.glob("*/mean-embedding*.npy"))) == 1:
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not (tmp_path / "release").exists()
    [kept] = [np.load(p) for p in jobs.glob("*/mean-embedding*.npy")]
    (tmp_path / "recipe.toml").write_text(recipe)
    done = subprocess.run(command, cwd=tmp_path, env=world, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    release = lk.Release.load(tmp_path / "release")
    assert np.array_equal(release.measurements["mean embedding"], kept)
    [account] = lk.Ledger(tmp_path / "ledger.sqlite").accounts()
    assert [r.status for r in account.runs] == ["done"]


def test_redistilling_is_free_and_certified(tmp_path: Path) -> None:
    """Another generator from the same measurements: same charges, nothing booked, verified."""
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    data = lk.read(table_rows(50), table_schema())
    first = lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), out=tmp_path / "a", ledger=book)
    spent = book.accounts()[0].spent
    again = lk.redistill(lk.Release.load(tmp_path / "a"), {"steps": 5}, out=tmp_path / "b", rows=17)
    assert book.accounts()[0].spent == spent
    assert len(again.data) == 17
    assert lk.verify(tmp_path / "b").epsilon == lk.verify(tmp_path / "a").epsilon
    made = again.certificate
    assert (
        made["method"]["settings"]["steps"] == 5 and made["charges"] == first.certificate["charges"]
    )
    assert len(made["method"]["redistilled_from"]) == 64
    same = lk.redistill(first, {})
    assert np.array_equal(
        same.source.arrays()["class_weights"], first.source.arrays()["class_weights"]
    )


@pytest.mark.parametrize(
    "settings, word",
    [
        ({"features": 48}, "measure something else"),
        ({"stepz": 3}, "no setting"),
        ({"steps": 0}, "steps"),
    ],
)
def test_redistilling_changes_free_settings_only(
    settings: dict[str, object], word: str, tmp_path: Path
) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    data = lk.read(table_rows(50), table_schema())
    made = lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), ledger=book)
    with pytest.raises(lk.LimbeckError, match=word):
        lk.redistill(made, settings, out=tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_redistilling_another_versions_release_names_the_version(tmp_path: Path) -> None:
    """Not a setting that this version lacks, which is all that would be seen of it."""
    data = lk.read(table_rows(50), table_schema())
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    made = lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), ledger=book)
    older = replace(made, certificate=copy.deepcopy(made.certificate))
    older.certificate["method"] |= {"version": 0}
    older.certificate["method"]["settings"]["gone"] = 1
    with pytest.raises(
        lk.LimbeckError, match="dp-merf in version 0, and here it is version"
    ) as said:
        lk.redistill(older, {}, out=tmp_path / "b")
    assert "gone" not in str(said.value)
    assert not (tmp_path / "b").exists()


def test_settings_read_off_the_rows_are_not_for_release(ledger: lk.Ledger) -> None:
    data = lk.read(table_rows(40), table_schema())
    release = lk.distill(data, METHOD, BUDGET, ledger=ledger, unpaid="a mean of all ages")
    assert not release.certificate["releasable"]
    assert "a mean of all ages" in release.certificate["not_releasable_because"][0]
