"""Cells say what they are: own methods, own recipes, minutes that add up, and the code that made them."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from limbeck import papers
from limbeck.datasets import registry
from limbeck.papers import code, exhibit, scoring
from limbeck.papers.bench import NotRun, bench
from limbeck.papers.making import TrainingRows, method_of
from limbeck.papers.running import identity_of, minutes_of
from limbeck.papers.scoring import Task, likelihood


def cell_of(name: str, row: str, column: str) -> papers.Cell:
    return next(c for c in papers.find(name).cells if (c.row, c.column) == (row, column))


@pytest.mark.parametrize("name", papers.names())
def test_a_recipe_is_of_the_cells_own_method(name: str) -> None:
    """Otherwise a row named DP-MERF would run its column's DP-NTK."""
    for cell in papers.find(name).cells:
        if cell.making == "method" and cell.method and cell.recipe:
            try:
                method, _ = method_of(cell, quick=False)
            except NotRun:
                continue
            assert method.name == cell.method, cell.name


def test_a_row_with_its_own_method_leaves_the_columns_recipe() -> None:
    column = {"name": "one", "recipe": "dp-ntk-images#celeba", "minutes": 10.0}
    assert exhibit._of_column(column, {"method": "dp-merf"}) == {"name": "one", "minutes": 10.0}
    assert exhibit._of_column(column, {"times": 3})["minutes"] == 30.0
    with pytest.raises(RuntimeError, match="minutes both"):
        exhibit._of_column(column, {"minutes": 40})


def test_the_estimate_grows_with_the_images_that_are_learned() -> None:
    hours = [
        minutes_of(cell_of("dp-kip-scatternet-table2", f"MNIST, {n} per class", "ScatterNet, eps 1"), False) / 60
        for n in (1, 10, 50)
    ]  # fmt: skip
    assert hours[0] < hours[1] < hours[2] and hours[2] > 100


def test_without_noise_the_recipe_is_the_one_without_noise() -> None:
    cells = [c for c in papers.find("dp-ntk-figure4").cells if c.row == "DP-NTK"]
    assert {math.isinf(c.epsilon) for c in cells} == {True, False}
    assert all(c.recipe.endswith("-non-private") == math.isinf(c.epsilon) for c in cells)


def test_fewer_teachers_come_with_their_own_noise() -> None:
    made = {
        c.row: method_of(c, quick=False)[0]
        for c in papers.find("g-pate-table6").cells
        if c.column == "G-PATE"
    }
    assert {m.teachers for m in made.values()} == {2000, 3000, 4000}  # type: ignore[attr-defined]
    assert made["2000 teachers"].projection == 5  # type: ignore[attr-defined]
    assert len({m.threshold_share for m in made.values()}) == 3  # type: ignore[attr-defined]


def test_kip_runs_with_the_settings_of_its_recorded_figures() -> None:
    benchmark = Path(__file__).parents[2] / "benchmarks" / "kip.py"
    for node in ast.walk(ast.parse(benchmark.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "KIP_SETTINGS":
            assert isinstance(node.value, ast.Dict)
            recorded = ast.literal_eval(node.value.values[0])  # of the first kernel, the FC-NTK
    for table in ("dp-kip-table1", "dp-kip-scatternet-table1"):
        cell = next(
            c for c in papers.find(table).cells if c.column.endswith("FC") or "FC-" in c.column
        )
        settings = method_of(cell, quick=False)[0].settings()
        assert {name: settings[name] for name in recorded} == recorded and settings["steps"] == 1000


def test_networks_are_taught_soft_labels_and_never_a_kernels(monkeypatch) -> None:
    taught = []
    monkeypatch.setattr(
        scoring,
        "convnet_accuracy",
        lambda x, targets, *rest, **named: taught.append(targets) or 0.5,
    )
    monkeypatch.setattr(scoring, "_images", lambda task: (np.zeros((2, 4, 4, 1)),) * 3)
    hard, soft, centred = np.array([0, 1]), np.full((2, 2), 0.5), np.full((2, 2), -0.5)
    for rows in (
        TrainingRows(centred, hard, centred, soft),
        TrainingRows(centred, hard, targets=centred),
    ):
        bare = SimpleNamespace(schema=SimpleNamespace(classes=(0, 1)))
        cell = papers.Cell(row="", column="")
        scoring.convnet(Task(cell, bare, rows, 0, lambda done: None))  # type: ignore[arg-type]
    assert taught[0] is soft and taught[1] is hard


def test_figure_2_compares_the_density_that_was_published() -> None:
    stand = bench("gaussian-mixture")
    cell = papers.find("dp-hp-figure2").cells[0]
    rows = TrainingRows(*stand.rows("train"))
    found = likelihood(Task(cell, stand, rows, 0, lambda done: None))
    assert found["nll as published"] - found["nll"] == pytest.approx(0.62e5, abs=0.01e5)
    assert cell.figure == "nll as published"


def test_a_figure_is_known_by_the_code_that_made_it(monkeypatch, tmp_path: Path) -> None:
    module = tmp_path / "made.py"

    def digest(text: str) -> str:
        module.write_text(text, encoding="utf-8")
        for cached in (code.code_digest, code._own_digest, code._imported, code._path):
            cached.cache_clear()
        monkeypatch.setattr(code, "PACKAGE", "made")
        return code.code_digest("made")

    monkeypatch.syspath_prepend(str(tmp_path))
    first = digest('"""Says this."""\nNOISE = 1.0\n')
    assert digest('"""Says that."""\n# and why\nNOISE = 1.0\n') == first
    assert digest('"""Says this."""\nNOISE = 0.5\n') != first


def test_code_is_followed_through_imports() -> None:
    of_marginals = code._closure("limbeck.methods.marginals.marginals")
    assert "limbeck.schema.schema" in of_marginals and "limbeck.accounting.budget" in of_marginals
    assert not any(name.startswith("limbeck.methods.kip") for name in of_marginals)


def test_what_would_be_downloaded_is_said_to_be_elsewhere(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path))
    monkeypatch.delenv("LIMBECK_DATA", raising=False)
    exhibit = papers.find("dp-kip-table1")
    found = {r.cell.row: r.note for r in papers.reproduce(exhibit, known=True).results}
    assert found["SVHN, 1 per class"] == "data not here: svhn would be downloaded"
    assert not (tmp_path / "svhn").exists()
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path))
    for name in registry.entry("svhn").sources[0].files:
        (tmp_path / name).write_bytes(b"")
    found = {r.cell.row: r.note for r in papers.reproduce(exhibit, known=True).results}
    assert found["SVHN, 1 per class"].startswith("takes about")


def test_a_figure_is_asked_for_by_the_settings_that_are_given() -> None:
    """Defaults are part of the code: a method that gets a setting more does not lose its figures."""
    cells = {
        c.column: c for c in papers.find("dp-kip-table1").cells if c.row.startswith("MNIST, 1 ")
    }
    published, ours = (
        identity_of(cells[column], 0, False)["made"]
        for column in ("DP-KIP FC, eps 1", "DP-KIP FC, our settings, eps 1")
    )
    assert ours["given"] == {"per_class": 1}  # type: ignore[index]
    assert {"start", "clip", "per_class"} <= set(published["given"])  # type: ignore[index]
    assert "start_share" not in published["given"]  # type: ignore[index]
    changed = replace(
        cells["DP-KIP FC, our settings, eps 1"], settings={"per_class": 1, "clip": 2.0}
    )
    assert identity_of(changed, 0, False)["made"] != ours


def test_ablations_of_g_pate_differ_in_what_they_name_alone() -> None:
    for table, data in (("g-pate-table3", "mnist"), ("g-pate-table6", "fashion-mnist")):
        made = [
            method_of(c, quick=False)[0]
            for c in papers.find(table).cells
            if c.data == data and c.column == "G-PATE"
        ]
        for name in (
            "code",
            "hidden",
            "channels",
            "filters",
            "teacher_hidden",
            "generator",
            "clip",
        ):
            assert len({str(m.settings()[name]) for m in made}) == 1, name
    ours = [c for c in papers.find("g-pate-table3").cells if c.column != "G-PATE"]
    assert all(method_of(c, quick=False)[0].settings()["aggregation"] == "directions" for c in ours)
