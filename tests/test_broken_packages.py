"""Packages with methods of their own that are broken, changed or absent: said in words, before anything is paid."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge, calibrate
from limbeck.methods import METHODS

# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (["nowhere:Method"], "The method 'mine' of nowhere:Method cannot be loaded"),
        (["limbeck.methods:METHODS"], "is no class of methods"),
        (["limbeck.methods:DPMERF"], "is called 'dp-merf', and its entry point 'mine'"),
        (["one:Method", "two:Method"], "comes from several packages"),
    ],
)
def test_what_is_wrong_with_an_entry_point_is_said(
    points: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [EntryPoint(name="mine", value=value, group="limbeck.methods") for value in points]
    monkeypatch.setattr("limbeck.methods.registry.metadata.entry_points", lambda **_: found)
    assert "mine" in list(METHODS)
    with pytest.raises(lk.LimbeckError, match=re.escape(words)):
        METHODS["mine"]


@dataclass(frozen=True, kw_only=True)
class Mine(lk.DPMERF):
    """A method of one's own."""

    name: ClassVar[str] = "mine"


def test_a_broken_package_is_not_held_against_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lk.read(table_rows(50), table_schema())
    lk.distill(data, Mine(**TINY), lk.Budget(1.0), out=tmp_path / "mine")
    found = [EntryPoint(name="mine", value="nowhere:Method", group="limbeck.methods")]
    monkeypatch.setattr("limbeck.methods.registry.metadata.entry_points", lambda **_: found)
    [words] = lk.verify(tmp_path / "mine").open
    assert "not known here" in words and "cannot be loaded" in words


def _inside_a_function() -> type[lk.DPMERF]:
    @dataclass(frozen=True, kw_only=True)
    class Local(lk.DPMERF):
        name: ClassVar[str] = "local"

    return Local


def _defined_anew() -> type[lk.DPMERF]:
    @dataclass(frozen=True, kw_only=True)
    class Again(lk.DPMERF):
        name: ClassVar[str] = "again"

    Again.__qualname__ = "Mine"
    return Again


@pytest.mark.parametrize(
    ("make", "words"),
    [(_inside_a_function, "Define it at the top"), (_defined_anew, "was defined anew")],
)
def test_a_class_that_no_map_could_be_made_of_is_refused_before_it_is_paid(
    make: Callable[[], type[lk.DPMERF]], words: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=words):
        lk.distill(lk.read(table_rows(9), table_schema()), make()(**TINY), lk.Budget(1.0))
    assert lk.Ledger().accounts() == []


def test_another_version_of_a_package_does_not_go_on_with_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its questions may be clipped or noised in another way, though they are charged the same."""
    data, paid = lk.read(table_rows(50), table_schema()), import_module("limbeck.ledger.identity")

    def version(number: str) -> None:
        def found(kind: type) -> dict[str, Any]:
            name, known = ("mine", number) if kind is Mine else ("limbeck", lk.__version__)
            return {"name": name, "version": known}

        monkeypatch.setattr(paid, "origin", found)

    def broken(self: Mine, *given: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    version("1.0")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Mine, "distill", broken)
        lk.distill(data, Mine(**TINY), lk.Budget(1.0))
    version("1.1")
    with pytest.raises(lk.LimbeckError, match=r"mine 1\.0; .*mine 1\.1\. "):
        lk.distill(data, Mine(**TINY), lk.Budget(1.0))
    version("1.0")
    lk.distill(data, Mine(**TINY), lk.Budget(1.0))
    assert len(lk.Ledger().accounts()[0].runs) == 1


def test_laplace_noise_without_a_price_is_refused() -> None:
    charge = Charge(name="mine", mechanism="discrete laplace", sensitivity=1.0, coordinates=1)
    for epsilon in (1.0, float("inf")):
        with pytest.raises(RuntimeError, match="'mine': Laplace noise is not calibrated"):
            calibrate([charge], [1.0], lk.Budget(epsilon))
