"""Two processes under `jax.distributed`: the same bytes, and a clear word when one of them dies."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people

import limbeck as lk

pytestmark = pytest.mark.filterwarnings("ignore::limbeck.LimbeckWarning")


def both(mode: str, folder: Path) -> tuple[dict[str, str], int]:
    """What the first process printed, and how it ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = str(Path(__file__).parent / "on_processes.py")
    words = [[sys.executable, script, str(me), str(port), mode, str(folder)] for me in (0, 1)]
    first, other = (
        subprocess.Popen(w, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for w in words
    )
    try:
        shown, errors = first.communicate(timeout=250)
    finally:
        other.kill()
        other.communicate()
    found = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    assert found, errors[-2000:]
    return found, first.returncode


def test_a_process_that_dies_is_told_and_the_same_call_goes_on(tmp_path: Path) -> None:
    found, code = both("die", tmp_path)
    assert code == 2
    assert "Process 1 died while" in found["error"] and "pays nothing more" in found["error"]
    found, code = both("again", tmp_path)
    assert code == 0 and found["runs"] == "1"
    here = measured(lk.read(people(), SCHEMA), COUNTS)[0]
    assert found["counts"] == found["anew"] == here
    assert found["floats"] == measured(lk.read(people(), SCHEMA), FLOATS)[0] != here
