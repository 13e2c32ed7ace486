"""Runs that are disturbed: nobody listens, an interrupt, a full disk. What was paid stays paid."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import CSV, RECIPE, SCHEMA, Desk, command, contents, spend


@pytest.mark.parametrize("words", [["--help"], ["ledger"], ["ledger", "--json"]], ids=" ".join)
@pytest.mark.parametrize("stdout", ["closed", "read by nobody"])
def test_nobody_listens(desk: Desk, words: list[str], stdout: str) -> None:
    spend(desk)
    given, wanted = os.pipe()
    os.close(given)
    shell = ["sh", "-c", 'exec "$@" >&-' if stdout == "closed" else 'exec "$@"', "sh"]
    done = subprocess.run(
        [*shell, sys.executable, "-c", "from limbeck.cli.main import main; main()", *words],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        stdout=wanted,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(wanted)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_paid_run_goes_on_when_nobody_listens(desk: Desk) -> None:
    child = command(desk, desk.distill())
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert (child.wait(timeout=240), child.stderr.read()) == (0, "")
    child.stderr.close()
    assert desk.run(["verify", str(desk.out)]).code == 0


def test_interrupted_then_resumed(desk: Desk) -> None:
    words = desk.distill(recipe=desk.recipe("steps = 2", "steps = 10000000"))
    before = contents(desk.folder)
    child = command(desk, words)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if "mean embedding: done" in line:
                break
        time.sleep(0.5)  # into the fitting of the generator
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=240)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert err.startswith("limbeck: error: Interrupted") and err.count("\n") == 1
    assert "same command resumes" in err
    assert contents(desk.folder) == before
    first = desk.accounts()
    assert [run["state"] for run in first[0]["runs"]] == ["interrupted, resumable"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "limbeck.ledger.identity.origin", lambda kind: {"name": "limbeck", "version": "99.1"}
        )
        refused = desk.run(words)
        assert refused.code == 2 and refused.err.count("\n") == 1, refused.err
        for word in ("limbeck 99.1", "--pay-again", "plan "):
            assert word in refused.err
    # Settings are part of a job's identity, so the rest of the very same run is made short.
    resume_short(desk, words)
    last = desk.accounts()
    assert [run["state"] for run in last[0]["runs"]] == ["done"]
    assert last[0]["spent"] == first[0]["spent"]
    assert desk.run(["verify", str(desk.out)]).code == 0
    assert not list(desk.ledger.parent.rglob("secret"))


def resume_short(desk: Desk, words: list[str]) -> None:
    import limbeck.methods.mean_embedding.embedding as embedding

    fit = embedding.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "fit", lambda *a, **k: fit(*a, **(k | {"steps": 2})))
        done = desk.run(words)
    assert done.code == 0, done.err


@pytest.fixture
def small_disk(desk: Desk) -> Iterator[Path]:
    """A disk of 16 kB, in memory; only root may have one."""
    place = desk.folder / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "limbeck", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("cannot mount a small disk here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_full_disk(desk: Desk, small_disk: Path) -> None:
    """The charge is booked by then, but it pays for the same command on a larger disk."""
    got = desk.run(desk.distill(out=small_disk / "out"))
    assert got.code == 2 and got.err.count("\n") == 1, got.err
    for word in ("Cannot write the release", "disk/out", "No space left", "costs nothing more"):
        assert word in got.err
    assert list(small_disk.iterdir()) == []
    first = desk.accounts()
    assert desk.run(desk.distill()).code == 0
    last = desk.accounts()
    assert last[0]["spent"] == first[0]["spent"] and len(last[0]["runs"]) == 1


@pytest.mark.parametrize("name", ["save_table", "write_text"])
def test_failing_writes(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = contents(desk.folder) | {"people.csv": CSV.encode(), "recipe.toml": RECIPE.encode()}
    before["schema.toml"] = SCHEMA.encode()
    with monkeypatch.context() as patch:
        patch.setattr(f"limbeck.release.write.{name}", fail)
        got = desk.run(desk.distill())
    assert got.code == 2 and "Input/output error" in got.err and got.err.count("\n") == 1
    assert contents(desk.folder) == before
    assert desk.run(desk.distill()).code == 0
    assert len(desk.accounts()[0]["runs"]) == 1
