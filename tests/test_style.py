"""ruff is clean; mypy, which takes longer, runs with it in `make check`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("tool", [["check", "."], ["format", "--check", "."]], ids=" ".join)
def test_ruff_is_clean(tool: list[str]) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    words = [sys.executable, "-m", "ruff", *tool]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_submission_is_checked_for_types() -> None:
    """mypy is a line of `make check`, which runs on every submission."""
    _, _, check = (ROOT / "Makefile").read_text().partition("\ncheck:")
    lines = check.split("\n\n")[0].splitlines()
    assert {"\t$(BIN)/ruff check .", "\t$(BIN)/ruff format --check .", "\t$(BIN)/mypy"} <= {*lines}
    ci = ROOT / ".ci" / "run"
    if ci.exists():  # not in a source distribution
        assert {"make test", "make check"} <= {*ci.read_text().splitlines()}
