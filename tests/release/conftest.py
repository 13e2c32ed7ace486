"""Releases and certificates that are nobody's to change: tests copy them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge, calibrate, cost
from limbeck.release import certificate as _certificate


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that is nobody's to change: tests copy it."""
    folder = tmp_path_factory.mktemp("sealed")
    book = lk.Ledger(folder / "ledger.sqlite")
    data = lk.read(table_rows(150), table_schema())
    lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), out=folder / "release", ledger=book)
    return folder / "release"


@pytest.fixture
def release(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "release"))


@pytest.fixture(scope="session")
def gradients() -> dict[str, Any]:
    """The certificate of sampled steps, whose price is PLD's."""
    steps = Charge(name="gradient", sensitivity=1e-3, coordinates=40, sampling=0.1, steps=20)
    schema, budget = table_schema(), lk.Budget(1.0)
    planned = lk.plan(lk.DPMERF(**TINY), schema, budget)
    charges = tuple(calibrate([steps], [1.0], budget))
    planned = replace(planned, charges=charges, shares=(1.0,), cost=cost(charges, budget))
    made = _certificate.make_certificate(
        planned, charges, schema, seeded=False, law=False, source="defaults", public_seed=0
    )
    return json.loads(json.dumps(made))
