"""What the tests of engines distill, and how they compare: the bytes of measurements.npz."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import limbeck as lk

ROWS = int(os.environ.get("LIMBECK_ENGINE_ROWS", "300"))
"""Rows of the tables: few for tests; `benchmarks/engines.py` takes more."""
PERSONS = ROWS * 3 // 10
COUNTS = lk.Marginals(pairs="counts", grid=8, groups=2, soft_rows=20, steps=1)
FLOATS = lk.DPMERF(features=40, steps=1, batch=8, hidden=(4,))
SCHEMA = lk.Schema(
    dataset="people",
    rows=ROWS,
    columns=(
        lk.Numeric(name="age", integer=True, min=0, max=100, missing=True, outside="missing"),
        lk.Numeric(name="income", min=-10.0, max=1000.0),
        lk.Category(name="town", values=("north", "south"), missing=True),
        lk.Category(name="smoker", values=(False, True), boolean=True),
        lk.Numeric(name="worth", min=0.5, max=1e5, scale="log"),
        lk.Category(name="ill", values=("no", "yes"), label=True),
    ),
)
OPEN = replace(
    SCHEMA,
    columns=(
        SCHEMA.columns[0],
        lk.Numeric(name="income", outer=(-1e6, 1e6)),
        lk.Category(name="town", most=4),
        *SCHEMA.columns[3:],
    ),
    person=lk.Person(column="who", rows_at_most=2, persons=PERSONS, rows_per_person="estimate"),
    unit="one person",
)
"""Persons of several rows, with bounds, values and rows per person that are to be estimated."""


def people(count: int = ROWS) -> pd.DataFrame:
    """Rows with everything that is strange, and some of them several times."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(-5, 110, count),
            "income": np.round(rng.normal(300, 400, count), 3),
            "town": rng.choice(["north", " south", "east\t", "NaN", ""], count),
            "smoker": rng.random(count) < 0.3,
            "worth": np.exp(rng.normal(5, 3, count)),
            "ill": rng.choice(["no", "yes", "??"], count),
        }
    )
    rows.loc[::7, "income"] = np.inf
    rows.loc[count // 2 :: 3] = rows.iloc[0].to_numpy()
    return rows.astype({"age": "int64", "smoker": "bool", "income": "float64", "worth": "float64"})


def as_table(rows: pd.DataFrame) -> pa.Table:
    """The same rows as a database takes them: a number that is none stays one, texts may be null."""
    return pa.table({name: pa.array(rows[name], from_pandas=name != "income") for name in rows})


def measured(data: lk.Dataset, method: Any, **more: Any) -> tuple[str, lk.Release]:
    """What a run measures, as a digest of the file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ledger = more.pop("ledger", None) or lk.Ledger(place / "ledger.sqlite")
        release = lk.distill(
            data,
            method,
            lk.Budget(more.pop("epsilon", 1.0), 1e-5),
            ledger=ledger,
            seed=0,
            rows=5,
            **({"check": False} | more),
        )
        release.save(place / "out")
        content = (place / "out" / "measurements.npz").read_bytes()
    return hashlib.sha256(content).hexdigest(), release
