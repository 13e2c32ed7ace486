"""A desk for each test, and one finished release for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from desk import Desk, Outcome

from limbeck.cli import main as cli


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release, made by the real command in a process of its own."""
    folder = tmp_path_factory.mktemp("made")
    desk = Desk(folder, folder / "ledger.sqlite", folder, run=lambda words: Outcome(0, "", ""))
    done = subprocess.run(
        [sys.executable, "-c", "from limbeck.cli.main import main; main()", *desk.distill()],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return desk.out


@pytest.fixture
def desk(
    tmp_path: Path,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    ledger = tmp_path / "state" / "ledger.sqlite"

    def run(words: list[str], **environment: str) -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["limbeck", *words])
            patch.chdir(tmp_path / "desk")
            for name, value in ({"LIMBECK_LEDGER": str(ledger)} | environment).items():
                patch.setenv(name, value)
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                cli.main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, out, err)

    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", ledger, made, run)
