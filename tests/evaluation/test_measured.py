"""Scores that may be published: noisy counts, their charge, and what is refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import TINY, image_rows, image_schema

import limbeck as lk
from limbeck.cli import main as cli
from limbeck.evaluation import figures_of
from limbeck.privacy import Noise

BUDGET = lk.Budget(0.5, 1e-5)


def two_classes(**lifetime: float) -> lk.Schema:
    return lk.Schema(
        dataset="people",
        rows=400,
        lifetime=lk.Lifetime(**({"epsilon": 4.0, "delta": 1e-3, "filter": "sum"} | lifetime)),  # type: ignore[arg-type]
        columns=(
            lk.Numeric(name="age", min=0.0, max=100.0),
            lk.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )


def rows(count: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, count)
    ill = np.where(age + rng.normal(0, 10, count) > 50, "yes", "no")
    return pd.DataFrame({"age": age, "ill": ill})


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> lk.Release:
    book = lk.Ledger(tmp_path_factory.mktemp("book") / "ledger.sqlite")
    given = lk.read(rows(400), two_classes())
    method = lk.Marginals(soft_rows=100, steps=20)
    return lk.distill(given, method, lk.Budget(3.0, 1e-5), seed=0, ledger=book)


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> lk.Release:
    book = lk.Ledger(tmp_path_factory.mktemp("book") / "ledger.sqlite")
    given = lk.read(image_rows(100), image_schema())
    method = lk.DPMERF(**TINY)  # type: ignore[arg-type]
    return lk.distill(given, method, lk.Budget(1.0, 1e-5), rows=30, seed=0, ledger=book)


def run(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_counts_are_close_and_charged(released: lk.Release, tmp_path: Path) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    test = lk.read(rows(2000, seed=1), released.schema)
    found = lk.measure_scores(released, test, BUDGET, ledger=book, seed=3)
    noise = found.certificate["charges"][0]["noise_multiplier"]
    assert abs(found.answers.sum() - 2000) < 6 * noise * np.sqrt(2)
    assert found.counts.shape == (2, 20)
    assert abs(found.counts.sum() - 2000) < 6 * noise * np.sqrt(40)
    assert found.figures["accuracy"]["value"] > 0.75
    assert 0 < found.figures["accuracy"]["noise_spread"] < 0.1
    assert found.figures["ROC AUC"]["value"] > 0.8
    (account,) = book.accounts()
    assert account.dataset == "people" and account.spent == pytest.approx(0.5, rel=1e-6)
    assert [r.method for r in account.runs] == ["measured-scores"]
    assert [f.name for f in tmp_path.rglob("*") if f.is_file()] == [
        "ledger.sqlite"
    ]  # no job is left


def test_without_data_the_rows_do_not_matter(
    released: lk.Release, pictured: lk.Release, tmp_path: Path
) -> None:
    """Law: with the data times zero, files from rows as unlike as can be are equal in every byte."""
    sides = [rows(50, seed=1), rows(300, seed=2).assign(ill="yes", age=np.nan)]
    pictures = [image_rows(20, seed=1), (255 - image_rows(35, seed=4)[0], np.full(35, 2))]
    for release, pair in ((released, sides), (pictured, pictures)):
        files = []
        for number, side in enumerate(pair):
            book = lk.Ledger(tmp_path / f"{release.schema.dataset}{number}" / "ledger.sqlite")
            test = lk.read(side, release.schema)
            found = lk.measure_scores(
                release, test, BUDGET, ledger=book, noise=Noise.from_seed(0, law=True)
            )
            assert "law mode" in " ".join(found.certificate["not_releasable_because"])
            files.append(found.save(tmp_path / f"{number}.json").read_bytes())
        assert files[0] == files[1]


def test_at_little_noise_the_counts_are_the_confusion_matrix(
    pictured: lk.Release, tmp_path: Path
) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    images, labels = image_rows(500, seed=7)
    schema = replace(pictured.schema, lifetime=lk.Lifetime(epsilon=30.0, delta=0.1, filter="sum"))
    given = replace(pictured, schema=schema)
    test = lk.read((images, labels), schema)
    found = lk.measure_scores(given, test, lk.Budget(20.0, 1e-3), ledger=book, seed=0)
    by_class = np.bincount(labels, minlength=3)
    assert found.counts.shape == (3, 3)
    np.testing.assert_allclose(found.counts.sum(axis=1), by_class, atol=6)


def test_an_exhausted_budget_is_refused(released: lk.Release, tmp_path: Path) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    test = lk.read(rows(50, seed=1), released.schema)
    lk.measure_scores(released, test, lk.Budget(3.8, 1e-5), ledger=book)
    with pytest.raises(lk.BudgetExceeded, match="may cost epsilon 4"):
        lk.measure_scores(released, test, BUDGET, ledger=book)
    assert len(book.accounts()[0].runs) == 1


def test_the_command_and_its_certificate(
    released: lk.Release, tmp_path: Path, monkeypatch, capsys
) -> None:
    folder = released.save(tmp_path / "release")
    rows(300, seed=1).to_csv(tmp_path / "test.csv", index=False)
    out = tmp_path / "measured.json"
    words = ("evaluate", folder, "--test", tmp_path / "test.csv", "--releasable", "0.5")
    assert run(*words, "--out", out, monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "charged to 'people'" in shown and "Internal" not in shown
    assert run("verify", out, monkeypatch=monkeypatch) == 0
    assert "0.5 at delta 1e-06" in capsys.readouterr().out
    facts = json.loads(out.read_text())
    assert facts["certificate"]["releasable"] and len(facts["roc"]["true_positive_rate"]) == 21
    page = tmp_path / "page.html"
    assert run("report", folder, "--scores", out, "--out", page, monkeypatch=monkeypatch) == 0
    assert "Internal" not in capsys.readouterr().out
    text = page.read_text()
    assert 'id="measured"' in text and 'id="internal"' not in text and "logistic" in text.lower()
    other = dict(facts["certificate"]["method"]["settings"], release="0" * 64)
    facts["certificate"]["method"]["settings"] = other
    (tmp_path / "other.json").write_text(json.dumps(facts))
    words_of_report = ("report", folder, "--scores", tmp_path / "other.json", "--out", page)
    assert run(*words_of_report, "--force", monkeypatch=monkeypatch) == 2
    assert "another release" in capsys.readouterr().err
    for change, word in (
        (lambda f: f["counts"][0].__setitem__(0, 900.0), "does not follow"),
        (lambda f: f["answers"].update(right=1e6), "does not follow"),
        (lambda f: f["certificate"]["charges"].pop(), "claims"),
        (lambda f: f["certificate"]["charges"][0].update(noise_multiplier=99.0), "claims"),
        (lambda f: f["certificate"]["guarantee"].update(epsilon=0.1), "cost"),
        (lambda f: f["counts"].append([1.0] * 20), "more counts"),
        (lambda f: f.update(format="x"), "does not hold"),
    ):
        changed = json.loads(out.read_text())
        change(changed)
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        assert run("verify", tmp_path / "changed.json", monkeypatch=monkeypatch) == 2
        assert word in capsys.readouterr().err
    assert run(*words, "--full", monkeypatch=monkeypatch) == 2
    assert "without --train" in capsys.readouterr().err


def test_other_schemas_and_missing_labels_are_refused(released, pictured, tmp_path) -> None:
    with pytest.raises(lk.DataError, match="another schema"):
        lk.measure_scores(released, lk.read(image_rows(9), pictured.schema), BUDGET)
    with pytest.raises(lk.LimbeckError, match="without noise"):
        lk.measure_scores(
            released, lk.read(rows(9), released.schema), lk.Budget(float("inf"), 1e-5)
        )


def test_figures_of_exact_counts() -> None:
    counts = np.array([[8.0, 2.0, 0.0, 0.0], [0.0, 1.0, 4.0, 5.0]])
    found = figures_of(np.array([1.0, 19.0]), counts, 0.0, 0.0)
    assert found["accuracy"] == pytest.approx({"value": 0.95, "noise_spread": 0.0})
    assert found["ROC AUC"]["value"] == pytest.approx(0.99)
