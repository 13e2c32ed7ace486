"""What long commands show while they run: bars on a terminal, lines elsewhere, nothing with --json."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from limbeck.cli import show


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120, highlight=False)
    monkeypatch.setattr(show, "console", console)
    return text


def test_a_terminal_shows_phase_step_time_and_budget(screen: io.StringIO) -> None:
    with show.progress_bars(steps={"gradient": 40}, spent=show.booked(1.0)) as report:
        report("reading", 1.0)
        report("candidate 1, gradient", 0.25)
        report("[odd] phase", 0.5)
    shown = screen.getvalue()
    assert "10/40" in shown and "epsilon 1 booked" in shown and "[odd] phase" in shown
    assert "50%" in shown and "0:00:0" in shown
    reading = next(line for line in shown.splitlines() if "reading" in line)
    assert "booked" not in reading  # nothing is paid while files are read


def test_elsewhere_a_line_per_phase_and_nothing_for_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = io.StringIO()
    monkeypatch.setattr(show, "console", Console(file=text, width=80))
    for quiet in (False, True):
        with show.progress_bars(quiet=quiet) as report:
            report("gradient", 0.5)
            report("gradient", 1.0)
            report("gradient", 1.0)
    assert text.getvalue() == "  gradient: done\n"


def test_nothing_is_booked_without_a_budget() -> None:
    assert show.booked(float("inf")) == ""
