"""The public API: what is there, that it is documented and typed."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

import limbeck as lk

PUBLIC = {
    "BudgetExceeded", "DataError", "LimbeckError", "LimbeckWarning", "ReleaseError", "SchemaError",
    "Unread", "Category", "Date", "Duration", "Image", "DateTime", "Numeric", "Lifetime", "Person", "Schema",
    "Dataset", "read", "draft_schema", "check", "audit", "Audit",
    "redistill", "evaluate", "Scores", "measure_scores", "MeasuredScores", "tune",
    "Budget", "Ledger", "Plan", "plan", "distill", "classify", "Model", "Release", "Images", "verify", "Verdict",
    "AIM", "DPCGAN", "DPDM", "DPGAN", "DPHP", "DPKIP", "DPMEPF", "DPMERF", "DPNTK", "DPSinkhorn", "DPSGD", "DataLens", "FullMMD", "GPATE", "GSWGAN", "KIP", "LinearHead", "Marginals", "MeasureOnce", "METHODS", "MST", "NDPDC", "PATEGAN", "PEARL", "PSG", "PrivBayes",
    "datasets",
}  # fmt: skip


def _public() -> set[str]:
    house = Path(lk.__file__).parent
    rooms = {path.stem for path in house.iterdir()} - {"datasets"}  # importable as such
    return {n for n in dir(lk) if not n.startswith("_")} - rooms - {"TYPE_CHECKING", "lazily"}


def test_the_table_of_contents_is_the_public_api() -> None:
    assert _public() == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC - {"METHODS", "datasets"}))
def test_public_names_are_documented_and_typed(name: str) -> None:
    thing = getattr(lk, name)
    assert inspect.getdoc(thing), name
    functions = [thing] if inspect.isfunction(thing) else []
    if inspect.isclass(thing):
        functions += [f for n, f in vars(thing).items() if inspect.isfunction(f) and n[0] != "_"]
    for function in functions:
        missing = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.annotation is p.empty and p.name not in ("self", "cls")
        ]
        assert not missing, f"{name}.{function.__name__}: {missing}"
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty


def test_every_setting_of_a_method_is_plain_and_has_a_default() -> None:
    for method in lk.METHODS.values():
        settings = method().settings()
        again = method.from_settings(settings)
        assert again == method() and dataclasses.is_dataclass(again)


def test_nouns_are_immutable() -> None:
    budget = lk.Budget(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        lk.DPMERF().features = 3  # type: ignore[misc]


def test_a_setting_that_is_not_there_is_named() -> None:
    with pytest.raises(lk.LimbeckError, match="no setting 'feature'"):
        lk.DPMERF.from_settings({"feature": 3})
