"""Small data sets and settings that many tests share."""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import limbeck as lk
from limbeck.accounting import calibrate
from limbeck.audits.small import SMALL
from limbeck.privacy import Noise, Planned, Private, Question, Unit
from limbeck.privacy.private import Answers

TINY = SMALL["dp-merf"]
"""Settings under which a mean-embedding method runs in a moment."""

TINY_HERMITE = SMALL["dp-hp"]
"""The same for DP-HP."""

TINY_TANGENT = SMALL["dp-ntk"]
"""The same for tangent features."""

TINY_SET = SMALL["measure-once"]
"""The same for measure-once."""

FEW = {"per_class": 1, "epochs": 0.3, "batch": 20, "clip": 1e-3, "start": "noise"}
"""Settings under which a method of noisy gradients runs in a moment: two to four steps."""

TEACH = {
    "teachers": 6, "updates": 2, "points": 6, "teacher_rate": 0.05, "code": 3, "hidden": (6,),
    "channels": (2, 2), "networks": 1, "network_width": 4, "features": 8,
}  # fmt: skip
"""The same for a method of teachers."""


def table_schema(**changes: object) -> lk.Schema:
    settings: dict[str, object] = {
        "dataset": "people",
        "rows": 200,
        "unit": "one person",
        "columns": (
            lk.Numeric(name="age", integer=True, min=0, max=100, missing=True),
            lk.Numeric(name="income", min=-10.0, max=1000.0),
            lk.Category(name="town", values=("north", "south", "east"), missing=True),
            lk.Category(name="smoker", values=(False, True), boolean=True),
            lk.Date(name="seen", min=datetime.date(2000, 1, 1), max=datetime.date(2020, 12, 31)),
            lk.Category(name="ill", values=("no", "yes", "unsure"), label=True),
        ),
    }
    return lk.Schema(**(settings | changes))  # type: ignore[arg-type]


def table_rows(count: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, count).astype(float)
    age[rng.random(count) < 0.1] = np.nan
    days = pd.to_datetime("2000-01-01") + pd.to_timedelta(rng.integers(0, 7000, count), "D")
    return pd.DataFrame(
        {
            "age": age,
            "income": rng.normal(300, 200, count),
            "town": rng.choice(["north", "south", "east", "?"], count),
            "smoker": rng.random(count) < 0.3,
            "seen": pd.Series(days).dt.strftime("%Y-%m-%d"),
            "ill": rng.choice(["no", "yes"], count, p=[0.8, 0.2]),
        }
    )


def image_schema(size: int = 8, channels: int = 1) -> lk.Schema:
    return lk.Schema(
        dataset="pictures",
        rows=100,
        columns=(
            lk.Image(height=size, width=size, channels=channels),
            lk.Category(name="label", values=(0, 1, 2), label=True),
        ),
    )


def image_rows(count: int, seed: int = 0, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, size, size, 1)).astype(np.uint8)
    return images, rng.integers(0, 2, count)


def planned(
    *questions: Question,
    epsilon: float = 1.0,
    multiplier: float | None = None,
    adjacency: str = "add-remove",
    schema: lk.Schema | None = None,
) -> list[Planned]:
    """Questions with charges that share a budget evenly, or all of one noise multiplier."""
    unit = Unit.of(lk.Budget(1.0, 1e-5, adjacency), schema or table_schema())
    asked = [(question, question.charges(unit)) for question in questions]
    charges = [charge for _, own in asked for charge in own]
    if multiplier is not None:
        charges = [replace(charge, noise_multiplier=multiplier) for charge in charges]
    elif any(math.isnan(charge.noise_multiplier) for charge in charges) or math.isinf(epsilon):
        charges = calibrate(charges, [1.0] * len(charges), lk.Budget(epsilon, 1e-5, adjacency))
    left = iter(charges)
    return [Planned(question=q, charges=tuple(next(left) for _ in own)) for q, own in asked]


def ask(
    data: lk.Dataset,
    *questions: Question,
    epsilon: float = 1.0,
    multiplier: float | None = None,
    noise: Noise | None = None,
    adjacency: str = "add-remove",
    answers: Answers | None = None,
) -> Private:
    """A `Private` that may be asked these questions, under a budget or at a noise multiplier."""
    kind: dict[str, Any] = {"epsilon": epsilon, "multiplier": multiplier, "adjacency": adjacency}
    unit = Unit.of(lk.Budget(1.0, 1e-5, adjacency), data.schema)
    asked = planned(*questions, **kind, schema=data.schema)
    return Private(data, asked, unit, noise or Noise.from_seed(0), answers)


def asked(
    data: lk.Dataset, question: Question, row_map: Any = None, state: Any = None, **kind: Any
) -> np.ndarray:
    """The noisy answer to one question, or to its first step."""
    private = ask(data, question, **kind)
    if not question.stepwise:
        return private.ask(question.name, row_map).values
    with private.steps(question.name, row_map) as step:
        return step(state)[-1].values


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative name."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def ways_inside(release: Path, elsewhere: Path) -> list[Path]:
    """Paths to files that would end up in a release, and do not look like it."""
    (elsewhere / "folder").symlink_to(release)
    (elsewhere / "file").symlink_to(release / "new")
    (elsewhere / "deep").mkdir()
    return [
        elsewhere / "folder" / "new",
        elsewhere / "file",
        elsewhere / "deep" / ".." / "folder" / "new",
        Path(os.path.relpath(release)) / "new",
        release / ".." / release.name / "new",
        release / "images" / "new",
    ]


@contextmanager
def only_what_was_there(folder: Path) -> Iterator[None]:
    """Nothing in the folder is added, changed or removed."""
    before = folder_bytes(folder)
    yield
    assert folder_bytes(folder) == before


def certificate(folder: Path) -> dict[str, object]:
    return json.loads((folder / "certificate.json").read_text())
