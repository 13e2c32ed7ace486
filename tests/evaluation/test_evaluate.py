"""`evaluate`: scores of releases of images and tables, and what it refuses."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    TINY,
    image_rows,
    image_schema,
    only_what_was_there,
    table_rows,
    table_schema,
    ways_inside,
)

import limbeck as lk
from limbeck.cli import main as cli

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def run(*arguments: str | Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release of a table and one of images, with real test rows beside them."""
    place = tmp_path_factory.mktemp("evaluate")
    book = lk.Ledger(place / "ledger.sqlite")
    budget, method = lk.Budget(1.0, 1e-5), lk.DPMERF(**TINY)  # type: ignore[arg-type]
    table = lk.read(table_rows(200), table_schema())
    lk.distill(table, method, budget, out=place / "table", seed=0, ledger=book)
    images = lk.read(image_rows(100), image_schema())
    lk.distill(images, method, budget, out=place / "images", rows=30, seed=0, ledger=book)
    table_rows(120, seed=1).to_csv(place / "test.csv", index=False)
    pictures, labels = image_rows(40, seed=1)
    np.savez(place / "test.npz", images=pictures, labels=labels)
    return {p.name: p for p in place.iterdir()}


def test_a_table(folders, monkeypatch, capsys, tmp_path) -> None:
    out = tmp_path / "scores.json"
    arguments = (folders["table"], "--test", folders["test.csv"], "--train", folders["test.csv"])
    assert run("evaluate", *arguments, "--out", out, monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "Internal: not covered by epsilon" in shown and "real rows" in shown
    assert "all 2-way marginals" in shown and "no evidence of privacy" in shown
    scores = lk.Scores.load(out)
    assert scores.stamp == "internal: not covered by epsilon" and scores.epsilon == 1.0
    assert (scores.released_rows, scores.test_rows) == (200, 120)
    assert {s.of for s in scores.scores} == {"released", "real", "between"}
    assert {s.figure for s in scores.scores} == {
        "accuracy", "F1", "total variation", "median distance", "mean absolute size", "mean error"
    }  # fmt: skip
    assert len(scores.pairs) == 6 and "columns that correlate most" in shown


def test_images(folders, monkeypatch, capsys) -> None:
    arguments = (folders["images"], "--test", folders["test.npz"], "--json")
    assert run("evaluate", *arguments, monkeypatch=monkeypatch) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stamp"] == "internal: not covered by epsilon"
    names = [s["name"] for s in facts["scores"]]
    assert names == [
        "kernel ridge, FC-NTK", "kernel ridge, scattering", "Frechet, scattering",
        "nearest test row",
    ]  # fmt: skip
    assert lk.Scores.from_facts(facts).facts() == facts


def test_full_scores_of_images_have_a_spread(folders, monkeypatch) -> None:
    monkeypatch.setattr("limbeck.scores.batteries.EPOCHS", 1)
    monkeypatch.setattr("limbeck.scores.batteries.FOUR", lk.scores.FOUR[:1])
    release = lk.Release.load(folders["images"])
    test = lk.read(folders["test.npz"], release.schema)
    scores = lk.evaluate(release, test, full=True, seeds=2)
    found = {(s.name, s.figure): s for s in scores.scores}
    net = found["ConvNet", "accuracy"]
    assert len(net.values) == 2 and net.note == "1 epochs" and "±" in net.text
    assert ("logistic regression", "accuracy") in found


def test_a_table_without_a_label_has_distances_only() -> None:
    columns = tuple(c for c in table_schema().columns if c.kind != "label")
    schema = table_schema(columns=columns)
    data = lk.read(table_rows(50).drop(columns="ill"), schema)
    release = lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0, 1e-5), seed=0)
    scores = lk.evaluate(release, lk.read(table_rows(50, seed=1).drop(columns="ill"), schema))
    assert {s.figure for s in scores.scores} == {
        "total variation", "median distance", "mean absolute size", "mean error"
    }  # fmt: skip


def refused(*arguments: str | Path, monkeypatch, capsys) -> str:
    assert run("evaluate", *arguments, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.startswith("limbeck: error:") and "Traceback" not in said
    return said


def test_what_is_refused(folders, monkeypatch, capsys, tmp_path) -> None:
    def says(*arguments: str | Path) -> str:
        return refused(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    test = folders["test.csv"]
    assert "is not a release" in says(tmp_path, "--test", test)
    assert "No file or folder" in says(folders["table"], "--test", tmp_path / "none.csv")
    table_rows(20).drop(columns="income").to_csv(tmp_path / "other.csv", index=False)
    assert "income" in says(folders["table"], "--test", tmp_path / "other.csv")
    assert "images" in says(folders["table"], "--test", folders["test.npz"])
    table_rows(20).assign(ill="green").to_csv(tmp_path / "green.csv", index=False)
    with warnings.catch_warnings(action="default"):  # as at a command line
        run("evaluate", folders["table"], "--test", tmp_path / "green.csv", monkeypatch=monkeypatch)
    warned, told = capsys.readouterr().err.splitlines()
    assert warned.startswith("limbeck: warning:") and "column 'ill': nearly all" in warned
    assert told.startswith("limbeck: error:") and "declared values of 'ill'" in told
    inside = folders["table"] / "scores.json"
    assert "is a release" in says(folders["table"], "--test", test, "--out", inside)
    with only_what_was_there(folders["table"]):
        for way in ways_inside(folders["table"], tmp_path):
            assert "is a release" in says(folders["table"], "--test", test, "--out", way)
            paid = ("--releasable", "1", "--out", way)
            assert "is a release" in says(folders["table"], "--test", test, *paid)
    assert lk.Ledger().accounts() == []
    assert "seeds > 0" in says(folders["table"], "--test", test, "--seeds", "0")


def test_a_changed_certificate_is_refused(folders, monkeypatch, capsys, tmp_path) -> None:
    import shutil

    copy = shutil.copytree(folders["table"], tmp_path / "copy")
    text = (copy / "certificate.json").read_text()
    (copy / "certificate.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 0.5', 1))
    said = refused(copy, "--test", folders["test.csv"], monkeypatch=monkeypatch, capsys=capsys)
    assert "was changed after" in said


def test_a_missing_extra_is_named(folders, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    arguments = (folders["table"], "--test", folders["test.csv"])
    said = refused(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert "pip install 'limbeck[eval]'" in said


def test_rows_of_another_schema_are_refused(folders) -> None:
    release = lk.Release.load(folders["table"])
    columns = (lk.Numeric(name="age", min=0, max=50), *table_schema().columns[1:])
    other = lk.read(table_rows(9), table_schema(columns=columns))
    with pytest.raises(lk.DataError, match="another schema"):
        lk.evaluate(release, other)


def test_a_file_that_holds_no_scores_is_named(tmp_path) -> None:
    (tmp_path / "x.json").write_text('{"format": 1}')
    with pytest.raises(lk.LimbeckError, match="does not hold scores"):
        lk.Scores.load(tmp_path / "x.json")
    with pytest.raises(lk.LimbeckError, match="Cannot read"):
        lk.Scores.load(tmp_path / "none.json")
