"""Columns that rules tie together, small, for tests of rules."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import numpy as np

import limbeck as lk

DAY = datetime.date
WARD = lk.Category(name="ward", values=("maternity", "surgery"))
SEX = lk.Category(name="sex", values=("female", "male"))
AGE = lk.Numeric(name="age", integer=True, min=0, max=110)
CITY = lk.Category(name="city", values=("Bonn", "Lyon", "New York"))
COUNTRY = lk.Category(name="country", values=("Germany", "France", "USA"))
TABLE = {"city -> country": {"Bonn": "Germany", "Lyon": "France", "New York": "USA"}}


def date(name: str, **changes: Any) -> lk.Date:
    return replace(lk.Date(name=name, min=DAY(2020, 1, 1), max=DAY(2022, 12, 31)), **changes)


def number(name: str, **changes: Any) -> lk.Numeric:
    return replace(lk.Numeric(name=name, min=0, max=100, step=0.01), **changes)


def schema(*columns: Any, rules: Any, **more: Any) -> lk.Schema:
    return lk.Schema(dataset="stays", rows=100, columns=columns, rules=rules, **more)


def drawn(ruled: lk.Schema, rows: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Values of rows whose learned cells are as they may be, at the edges too."""
    rng = np.random.default_rng(seed)
    slots = np.clip(rng.normal(0.5, 0.5, (rows, ruled.slots)), 0, 1)
    cells = ruled.collapse(slots, rng)
    return ruled.learned.values(cells, np.zeros(rows, np.int64))


def assert_kept(ruled: lk.Schema, values: dict[str, np.ndarray]) -> None:
    broken = ruled.learned.broken(values)
    assert set(broken) == set(ruled.rules)
    assert not any(marks.any() for marks in broken.values())
