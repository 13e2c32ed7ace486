"""The papers' tables again: every one has a name, cells run, are kept, and say why where they do not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import FEW, TINY_SET, image_rows, image_schema

from limbeck import papers as papers
from limbeck.cli import main as cli
from limbeck.errors import LimbeckError
from limbeck.methods import METHODS
from limbeck.papers.bench import EXTRA, NotRun, bench, missing
from limbeck.papers.keep import Keep
from limbeck.papers.kernelerror import kernel_errors
from limbeck.papers.making import make_rows, method_of, unpaid_of
from limbeck.papers.running import identity_of
from limbeck.papers.scoring import SCORES, likelihood

NUMBERED = {
    "dp-kip": (7, 1),
    "dp-kip-scatternet": (16, 2),
    "dp-hp": (9, 6),
    "g-pate": (6, 3),
    "dp-ntk": (5, 4),
}
"""How many tables and figures each paper has."""


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of a few small pictures, of all three classes."""

    def make() -> tuple[object, object, object]:
        pictures = [image_rows(n, seed=n)[0] for n in (100, 40)]
        return (image_schema(), *((p, np.arange(len(p)) % 3) for p in pictures))

    monkeypatch.setitem(EXTRA, "little", make)  # type: ignore[arg-type]
    bench.cache_clear()


def run(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_every_numbered_table_and_figure_has_a_name() -> None:
    wanted = set()
    for paper, (tables, figures) in NUMBERED.items():
        wanted |= {f"{paper}-table{n}" for n in range(1, tables + 1)}
        wanted |= {f"{paper}-figure{n}" for n in range(1, figures + 1)}
    assert set(papers.names()) == wanted


@pytest.mark.parametrize("name", papers.names())
def test_every_cell_can_be_run_or_says_why_not(name: str) -> None:
    exhibit = papers.find(name)
    assert exhibit.title and exhibit.paper
    seen = set()
    for cell in exhibit.cells:
        assert cell.name not in seen, cell.name
        seen.add(cell.name)
        if cell.making == "quoted":
            assert cell.theirs is not None or name.startswith("dp-kip")
            continue
        assert cell.data
        if exhibit.kind == "scores":
            assert cell.score in SCORES and cell.figure, cell.name
        if cell.making == "method" and exhibit.kind != "data":
            assert cell.method or cell.recipe, cell.name
            if (cell.method or "dp-kip") in METHODS and not missing(cell.data):
                for quick in (False, True):
                    method_of(cell, quick=quick)  # its recipe and settings are real ones


def test_numbers_of_the_papers() -> None:
    cells = {c.name: c for c in papers.find("dp-kip-scatternet-table2").cells}
    quote = cells["MNIST, 10 per class | ScatterNet, eps 1"].theirs
    assert quote == papers.Quote(96.3, 0.1)
    ours = cells["MNIST, 10 per class | measure-once, eps 1"]
    assert ours.theirs is None and ours.beside == quote
    tables = {c.name: c for c in papers.find("dp-hp-table7").cells}
    assert tables["credit | DP-HP, no noise, average precision"].theirs == papers.Quote(0.863)
    assert tables["covtype | DP-HP, F1"].theirs == papers.Quote(0.537)
    left = {c.name: c for c in papers.find("dp-kip-table2").cells}
    assert left["measure-once, 10 per class | MNIST, eps 1"].beside == papers.Quote(93.53)


TINY = papers.Exhibit(
    name="tiny",
    title="A table of tests",
    paper="No paper",
    percent=True,
    runs=5,
    refused=("It looked.",),
    cells=(
        papers.Cell(row="ours", column="one", data="little", method="measure-once",
                    settings=TINY_SET | {"goal": "ridge"}, epsilon=10.0, score="ridge",
                    figure="accuracy", beside=papers.Quote(50.0)),
        papers.Cell(row="ours", column="three", data="little", method="measure-once",
                    settings=TINY_SET | {"goal": "ridge", "per_class": 3}, epsilon=10.0,
                    score="ridge", figure="accuracy"),
        papers.Cell(row="kernel", column="one", data="little", method="dp-kip",
                    settings=FEW | {"ridge": 1e-4}, epsilon=1.0, score="ridge",
                    figure="accuracy", theirs=papers.Quote(80.0, 1.0),
                    reduced={"epochs": 0.1}),
        papers.Cell(row="real", column="one", data="little", making="real", per_class=1,
                    score="ridge", figure="accuracy", theirs=papers.Quote(40.0)),
        papers.Cell(row="to come", column="one", data="little", method="not-yet",
                    score="ridge", figure="accuracy", theirs=papers.Quote(1.0)),
        papers.Cell(row="far", column="one", data="celeba", method="measure-once",
                    score="ridge", figure="accuracy"),
        papers.Cell(row="quoted", column="one", making="quoted", theirs=papers.Quote(2.0)),
        papers.Cell(row="slow", column="one", data="little", method="measure-once",
                    score="ridge", figure="accuracy", quick=False),
    ),
)  # fmt: skip


def test_cells_are_run_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"quick": True, "cache": tmp_path}
    before = papers.estimate(TINY, **settings)  # type: ignore[arg-type]
    assert (before.run, before.cached, before.left_out) == (4, 0, 4) and before.minutes == 20.0
    unknown = papers.reproduce(TINY, **settings, known=True)  # type: ignore[arg-type]
    assert not any(r.values for r in unknown.results)
    phases: list[str] = []
    report = papers.reproduce(
        TINY,
        **settings,
        progress=lambda phase, done: phases.append(phase),  # type: ignore[arg-type]
    )
    found = {r.cell.name: r for r in report.results}
    assert [r.status for r in report.results] == ["done"] * 4 + ["not run"] * 2 + [
        "quoted",
        "not run",
    ]
    assert all(0 <= v <= 100 for r in report.results for v in r.values)
    assert found["kernel | one"].reduced and "epochs = 0.1" in found["kernel | one"].note
    first = found["ours | one"]
    assert first.difference == pytest.approx(first.values[0] - 50.0)
    assert found["to come | one"].note == "method not in this version"
    assert "cuhk" in found["far | one"].note and "LIMBECK_DATA" in found["far | one"].note
    assert found["slow | one"].note == "not in --quick"
    assert phases[0].startswith("1/8 ours | one")
    # The second size came from the first one's measurements, and all of it is known from now on.
    assert papers.estimate(TINY, **settings).cached == 4  # type: ignore[arg-type]
    monkeypatch.setattr("limbeck.papers.making.distill", _never)
    monkeypatch.setattr("limbeck.papers.running.bench", _never)
    again = papers.reproduce(TINY, **settings, known=True)  # type: ignore[arg-type]
    assert [r.values for r in again.results] == [r.values for r in report.results]
    text = report.markdown()
    assert "| to come | one | 1.0 | *not run* |" in text and "*reduced*" in text
    assert "(to 50.0)" in text and "refused here: It looked." in text and "averages 5" in text
    facts = json.loads(json.dumps(report.facts()))
    assert facts["cells"][0]["seeds"] == 1 and facts["runs_in_the_paper"] == 5


def test_figures_of_other_code_are_shown_as_such_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exhibit = replace(TINY, cells=(TINY.cells[3],))
    settings = {"quick": True, "cache": tmp_path}
    (first,) = papers.reproduce(exhibit, **settings).results  # type: ignore[arg-type]
    assert not first.older
    monkeypatch.setattr("limbeck.papers.running.code_digest", lambda *given, **named: "another")
    report = papers.reproduce(exhibit, **settings, known=True)  # type: ignore[arg-type]
    assert report.results[0].values == first.values and report.results[0].older
    assert f"*code of {report.results[0].older}*" in report.markdown()
    assert papers.estimate(exhibit, **settings).run == 1  # type: ignore[arg-type]
    (again,) = papers.reproduce(exhibit, **settings).results  # type: ignore[arg-type]
    assert again.values == first.values and not again.older
    assert papers.estimate(exhibit, **settings).run == 0  # type: ignore[arg-type]


def test_quick_scores_may_learn_from_fewer_rows(tmp_path: Path) -> None:
    cell = replace(TINY.cells[3], per_class=None, reduced_rows=30, reduced_minutes=1.0)
    small = replace(cell, row="small", reduced_rows=10**6)
    exhibit = replace(TINY, cells=(cell, small))
    results = papers.reproduce(exhibit, quick=True, cache=tmp_path).results
    assert [r.reduced for r in results] == [True, False]
    assert results[0].note == "classifiers see 30 rows" and results[0].values != results[1].values
    assert papers.estimate(exhibit, quick=True, cache=tmp_path / "none").minutes == 6.0


def test_what_is_known_in_full_is_shown_instead_of_what_is_reduced(tmp_path: Path) -> None:
    full = replace(TINY.cells[3], per_class=None)
    exhibit = replace(TINY, cells=(replace(full, reduced_rows=30, quick=False),))
    settings = {"cache": tmp_path, "seeds": 1}
    (unknown,) = papers.reproduce(exhibit, quick=True, known=True, **settings).results  # type: ignore[arg-type]
    assert unknown.note == "takes about 5 minutes on two cores"
    (whole,) = papers.reproduce(exhibit, **settings).results  # type: ignore[arg-type]
    (shown,) = papers.reproduce(exhibit, quick=True, known=True, **settings).results  # type: ignore[arg-type]
    assert shown.values == whole.values and not shown.reduced


def test_scores_of_decoded_rows_are_others_than_of_exact_numbers(tmp_path: Path) -> None:
    exact = TINY.cells[2]
    exhibit = replace(TINY, cells=(exact, replace(exact, column="decoded", decoded=True)))
    first, second = papers.reproduce(exhibit, quick=True, cache=tmp_path).results
    assert first.status == second.status == "done"
    assert len(list((tmp_path / "releases").iterdir())) == 1
    cells = [identity_of(cell, 0, True) for cell in exhibit.cells]
    assert cells[0]["made"] == cells[1]["made"] and cells[1]["decoded"]
    made = [
        make_rows(
            cell,
            bench("little"),
            seed=0,
            quick=True,
            keep=Keep(tmp_path),
            progress=lambda phase, done: None,
        ).slots
        for cell in exhibit.cells
    ]
    assert made[0].shape == made[1].shape and not np.allclose(made[0], made[1])


def test_what_a_recipe_read_off_the_rows_is_told() -> None:
    cells = {c.name: c for c in papers.find("dp-kip-table1").cells}
    fashion = cells["Fashion-MNIST, 1 per class | DP-KIP FC, eps 1"]
    assert "spread" in unpaid_of(fashion)
    assert unpaid_of(cells["MNIST, 1 per class | DP-KIP FC, eps 1"]) == ""
    assert unpaid_of(replace(fashion, recipe="")) == ""


def _never(*given: object, **named: object) -> None:
    raise AssertionError("should have been known")


def test_a_method_that_arrives_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = replace(TINY.cells[4], recipe="no-such-recipe#x")
    with pytest.raises(NotRun, match="not in this version"):
        method_of(cell, quick=False)
    monkeypatch.setitem(METHODS._own, "not-yet", METHODS["dp-merf"])
    monkeypatch.setattr("limbeck.papers.making.make_method", lambda n, s=None: METHODS[n]())
    method, remark = method_of(replace(cell, method="not-yet"), quick=False)
    assert method == METHODS["dp-merf"]() and "no recipe" in remark
    with pytest.raises(NotRun, match="no recipe"):
        method_of(replace(cell, method=""), quick=False)


def test_a_failing_cell_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = replace(TINY.cells[0], settings={"per_class": 10**9, "surprise": 1})
    wrong = replace(TINY.cells[3], row="wrong figure", figure="surprise")
    exhibit = replace(TINY, cells=(broken, TINY.cells[3], wrong))
    results = papers.reproduce(exhibit, quick=True, cache=tmp_path).results
    assert [r.status for r in results] == ["not run", "done", "not run"]
    assert "surprise" in results[0].note and "no 'surprise'" in results[2].note


def test_a_missing_extra_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    for module in ("sklearn.linear_model", "sklearn.neural_network"):
        monkeypatch.setitem(sys.modules, module, None)
    cell = replace(TINY.cells[3], score="pair", figure="logistic regression: accuracy")
    (result,) = papers.reproduce(replace(TINY, cells=(cell,)), quick=True, cache=tmp_path).results
    assert result.status == "not run" and "pip install 'limbeck[eval]'" in result.note


def test_the_mixture_has_the_entropy_of_its_formula() -> None:
    from limbeck.papers.making import TrainingRows
    from limbeck.papers.scoring import Task

    stand = bench("gaussian-mixture")
    rows = TrainingRows(*stand.rows("train"))
    assert len(rows.labels) == 90_000
    found = likelihood(Task(TINY.cells[0], stand, rows, 0, lambda done: None))["nll"]
    # Of one point: log 25 plus the entropy of a round Gaussian in the plane.
    entropy = np.log(25) + np.log(2 * np.pi * np.e * 0.2**2)
    assert found == pytest.approx(90_000 * entropy, rel=0.01)


def test_hermite_features_need_few_orders() -> None:
    found = {(r.cell.row, r.cell.column): r.values[0] for r in kernel_errors()}
    small = "length scale 0.71"
    assert found[small, "Hermite features of order 20"] < 1e-5
    assert found[small, "Hermite features of order 10"] < found[small, "500 random features"]


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("LIMBECK_MIRROR", "http://127.0.0.1:9")  # nothing is downloaded in tests
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "downloads"))
    assert run("reproduce", "--list", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in papers.names())
    assert run("reproduce", "--list", "--json", monkeypatch=monkeypatch) == 0
    assert [e["name"] for e in json.loads(capsys.readouterr().out)] == papers.names()
    out = tmp_path / "table.md"
    words = ("reproduce", "dp-kip-table4", "--cache", tmp_path / "cache", "--out", out)
    assert run(*words, monkeypatch=monkeypatch) == 0
    assert (
        "about no time" in capsys.readouterr().out
        and "| adult | rows | 48,842 |" in out.read_text()
    )
    words = (
        "reproduce",
        "dp-kip-scatternet-table2",
        "--only",
        "SVHN",
        "--cache",
        tmp_path,
        "--json",
    )
    assert run(*words, monkeypatch=monkeypatch) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {c["status"] for c in facts["cells"]} == {"not run"} and len(facts["cells"]) == 150
    assert sum("127.0.0.1:9/svhn" in c["note"] for c in facts["cells"]) == 30
    report = tmp_path / "report.md"
    assert run(*words[:-1], "--out", report, monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert report.read_text().count("http://ufldl.stanford.edu") == 1  # said once, below the table
    for name in ("dp-kip-table5", "g-pate-figure1", "dp-kip-table7"):
        assert run("reproduce", name, "--cache", tmp_path, monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "dp-kip-fc-ntk-eps1.toml" in shown and "nothing to run" in shown and "XGBoost" in shown


def test_what_is_refused(tmp_path: Path, monkeypatch, capsys) -> None:
    assert run("reproduce", "dp-ntk-table9", monkeypatch=monkeypatch) == 2
    assert "There are dp-ntk-figure1" in capsys.readouterr().err
    assert run("reproduce", "no-paper", monkeypatch=monkeypatch) == 2
    assert "--list" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert (
        run(
            "reproduce",
            "dp-kip-table4",
            "--cache",
            tmp_path / "file" / "x",
            monkeypatch=monkeypatch,
        )
        == 2
    )
    assert "cache" in capsys.readouterr().err
    with pytest.raises(LimbeckError, match="seeds > 0"):
        papers.reproduce(TINY, seeds=0, cache=tmp_path)
