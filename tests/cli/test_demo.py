"""The demonstration and the plain commands, at the command line, on embedded data."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from helpers import TINY

import limbeck as lk
from limbeck import demo as _demo
from limbeck.cli import main as cli


def _limbeck(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    monkeypatch.setattr(sys, "argv", ["limbeck", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code == 0, told.err
    return told.out


def test_demo_leaves_two_complete_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = tuple(dataclasses.replace(c, method=lk.DPMERF(**TINY)) for c in _demo.COURSES)
    monkeypatch.setattr(_demo, "COURSES", quick)
    told = _limbeck(monkeypatch, capsys, "demo", "--out", str(tmp_path / "demo"))
    for words in ("epsilon 1.0", "First score", "contact-sheet.png", "mean embedding: 94%"):
        assert words in told
    for name in ("images", "table"):
        assert lk.verify(tmp_path / "demo" / name).epsilon == pytest.approx(1.0)
    assert told.split()[-1] == str(tmp_path / "demo" / "report.html")  # named last
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "data:image/png" in page and "May be published" in page
    assert lk.Ledger().accounts() == []


def test_plan_reads_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _limbeck(monkeypatch, capsys, "data", "adult", "--out", str(tmp_path / "adult"))
    train = tmp_path / "adult" / "train.csv"
    train.write_text(train.read_text().splitlines()[0] + "\n")  # a header is all there is
    words = [
        "plan",
        str(train),
        "--schema",
        str(tmp_path / "adult" / "schema.toml"),
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
    ]
    assert "No row was read" in _limbeck(monkeypatch, capsys, *words)
    facts = json.loads(_limbeck(monkeypatch, capsys, *words, "--json"))
    assert facts["epsilon"] == pytest.approx(1.0)
    assert lk.Ledger().accounts() == []


def test_public_data_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _limbeck(monkeypatch, capsys, "data")
    for name in lk.datasets.names():
        assert name in told
