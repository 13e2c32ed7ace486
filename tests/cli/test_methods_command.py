"""`limbeck methods`: every method and recipe with the facts that help to choose."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import limbeck as lk
from limbeck.cli import main as cli
from limbeck.run import Recipe, packaged_recipes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def call(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["limbeck", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        assert ended.value.code == 0, told.err
        return told.out

    return call


def test_every_method_has_all_facts(run) -> None:
    facts = {fact["name"]: fact for fact in json.loads(run("methods", "--json"))}
    assert list(facts) == list(lk.METHODS)
    for name, fact in facts.items():
        assert (
            fact["what"].endswith(".") and fact["good_for"] and fact["family"] and fact["package"]
        ), name
        assert set(fact["data_kinds"]) <= {"tables", "images"} and fact["data_kinds"], name
        assert bool(fact["measures"]) == fact["private"] == (name not in ("kip", "full-mmd"))
        assert fact["settings"] == lk.METHODS[name]().settings()
    assert facts["marginals"]["measures"] == ["class counts", "single columns", "pairs of columns"]
    assert facts["marginals"]["data_kinds"] == ["tables"]
    assert "random networks" in facts["measure-once"]["measures"]


def test_kinds_of_data_are_those_that_methods_take() -> None:
    label = lk.Category(name="label", values=("a", "b"), label=True)
    kinds = {"tables": lk.Numeric(name="x", min=0, max=1), "images": lk.Image(height=28, width=28)}
    for name, method in lk.METHODS.items():
        for kind, column in kinds.items():
            schema = lk.Schema(dataset="d", rows=10_000, columns=(column, label))
            if kind in method.data_kinds:
                assert method().questions(schema), name
            else:
                with pytest.raises(lk.LimbeckError, match=f"for {method.data_kinds[0]}"):
                    method().questions(schema)


def test_people_read_it_by_method_and_one_shows_settings(run) -> None:
    told = run("methods")
    assert [line for line in told.splitlines() if line in lk.METHODS] == list(lk.METHODS)
    one = run("methods", "marginals")
    assert "soft_rows" in one and "dp-merf" not in one and "soft_rows" not in told


def test_a_method_of_another_package_is_listed_and_a_broken_one_does_no_harm(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [
        metadata.EntryPoint("broken", "no_such_package:Method", "limbeck.methods"),
        metadata.EntryPoint("dp-hp", "limbeck.methods:DPHP", "limbeck.methods"),
    ]

    def entry_points(group: str, name: str | None = None) -> list[metadata.EntryPoint]:
        return [p for p in points if p.group == group and name in (None, p.name)]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    told = run("methods")
    assert re.search(r"^broken\n +cannot be used: .*no_such_package", told, re.MULTILINE)
    assert told.count("\ndp-hp\n") == 1


def test_recipes_are_listed_with_names_that_work(run) -> None:
    facts = json.loads(run("methods", "--recipes", "--json"))
    assert {f["name"] for f in facts} == set(packaged_recipes()) and len(facts) >= 21
    for fact in facts:
        for variant in [f"#{name}" for name in fact["variants"]] or [""]:
            assert Recipe.load(fact["name"] + variant).method.name == fact["method"]
    told = run("methods", "dp-merf", "--recipes")
    assert "dp-merf-tables" in told and "dp-hp-tables" not in told and "adult" in told
