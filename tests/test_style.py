"""ruff and mypy are clean: what `make check` runs beside the documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
def test_tool_is_clean(tool: list[str]) -> None:
    pytest.importorskip(tool[0], reason=f"{tool[0]} is not installed")
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_contributors_check_the_same() -> None:
    """Every tool is a line of `make check`."""
    _, _, check = (ROOT / "Makefile").read_text().partition("\ncheck:")
    lines = check.split("\n\n")[0].splitlines()
    assert {f"\t$(BIN)/{' '.join(tool)}" for tool in TOOLS} <= {*lines}
