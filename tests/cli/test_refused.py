"""Bad input at the command line: one clear line, exit code 2, nothing written, nothing charged."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest
from bad_commands import COMMANDS
from bad_data import DATA
from bad_places import PLACES
from bad_releases import RELEASES
from bad_schemas import SCHEMAS
from bad_settings import SETUP
from desk import Builder, Desk, Outcome, check_refused
from typer.main import get_command

from limbeck.cli import main as cli

CASES = [*DATA, *SCHEMAS, *SETUP, *PLACES, *RELEASES, *COMMANDS]


@pytest.mark.parametrize(
    ("build", "words"), [pytest.param(build, words, id=name) for name, build, words in CASES]
)
def test_refused(desk: Desk, build: Builder, words: tuple[str, ...]) -> None:
    message = check_refused(desk, build(desk), words)
    if "LIMBECK_MESSAGES" in os.environ:  # to read them all as a data owner would
        with open(os.environ["LIMBECK_MESSAGES"], "a") as file:
            file.write(message)


def test_every_command_is_refused_something(desk: Desk) -> None:
    """No command is without a bad use of it in the table, and no case is without words to find."""
    assert len({name for name, _, _ in CASES}) == len(CASES)
    assert [name for name, _, words in CASES if not any(words)] == []
    tried = set()
    for number, (_, build, _) in enumerate(CASES):
        folder = desk.folder / f"{number}/desk"
        folder.mkdir(parents=True)
        own = replace(desk, folder=folder, run=lambda words: Outcome(0, "", ""), environment={})
        tried.add(build(own)[0])
    assert set(get_command(cli.app).commands) - {"demo"} <= tried  # type: ignore[attr-defined]


def test_same_job_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the job's lock, nothing is done and nothing is paid."""

    def taken(handle: int, how: int) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("fcntl.flock", taken)
    check_refused(desk, desk.distill(), ("same job", "already running", "Wait"))


def test_out_of_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise MemoryError

    monkeypatch.setattr("limbeck.data.csv_files.raw_columns", full)
    check_refused(desk, desk.distill(), ("Out of memory", "fewer features"))
