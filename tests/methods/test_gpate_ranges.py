"""Ranges of numbers that are paid for: teachers see rows in them, and the generator makes rows there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import image_schema

import limbeck as lk
from limbeck.errors import LimbeckError
from limbeck.features import Places
from limbeck.methods.gpate.ranges import InRanges, ranges_from
from limbeck.methods.mean_embedding.spreads import SPREADS, NumbersAndSquares

SMALL = lk.GPATE(
    aggregation="directions", teachers=50, updates=3, spread_share=0.2, hidden=(8,), code=4
)


def schema(rows: int = 4000) -> lk.Schema:
    columns = (
        lk.Numeric(name="far", min=-100.0, max=100.0),
        lk.Category(name="kind", values=("a", "b", "c")),
        lk.Numeric(name="gaps", min=0.0, max=1.0, missing=True),
        lk.Category(name="label", values=(0, 1), label=True),
    )
    return lk.Schema(dataset="spread", columns=columns, rows=rows)


def rows(count: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = np.arange(count) % 2
    return pd.DataFrame(
        {
            "far": 40 + 3 * label + rng.normal(size=count),
            "kind": rng.choice(["a", "b", "c"], count),
            "gaps": np.where(rng.random(count) < 0.1, np.nan, rng.random(count)),
            "label": label,
        }
    )


def test_ranges_are_where_the_numbers_lie() -> None:
    declared = schema()
    held = lk.read(rows(), declared)._encoded()
    slots = declared.expand(np.asarray(held.cells))
    sums = np.asarray(NumbersAndSquares(Places(declared))(slots)).sum(axis=0)
    found = ranges_from(declared, sums, np.array([2000.0, 2000.0]))
    low, wide = np.array(found["low"]), np.array(found["wide"])
    inside = InRanges(tuple(found["low"]), tuple(found["wide"]))
    assert inside.size == declared.slots and np.isfinite(np.asarray(inside(slots))).all()
    assert 200 * low[0] - 100 < 40 < 43 < 200 * (low + wide)[0] - 100 and wide[0] < 0.2
    (kinds,) = [at for column, at in declared.blocks() if column.name == "kind"]
    assert (low[kinds] == 0).all() and (wide[kinds] == 1).all()
    seen = np.asarray(inside(slots))
    assert (
        seen[:, 0].min() > 0 and seen[:, 0].max() < 1 and seen[:, 0].std() > 5 * slots[:, 0].std()
    )


def test_rows_are_made_in_ranges_that_were_paid_for(tmp_path) -> None:
    method = replace(SMALL, updates=20)
    asked = {one.question.name: one.share for one in method.questions(schema())}
    assert asked[SPREADS] == 0.2 and sum(asked.values()) == pytest.approx(1.0)
    release = lk.distill(
        lk.read(rows(), schema()), method, lk.Budget(5.0, 1e-5), seed=0, ledger=lk.Ledger(tmp_path / "l.sqlite"),
        out=tmp_path / "release", check=False,
    )  # fmt: skip
    assert release.data["far"].min() > 25 and release.data["far"].max() < 60
    again = lk.Release.load(tmp_path / "release")
    assert again.sample(50, seed=3).equals(release.sample(50, seed=3))


def test_ranges_are_for_tables_whose_rows_teachers_see() -> None:
    with pytest.raises(LimbeckError, match="spread_share = 0"):
        lk.GPATE(aggregation="directions", spread_share=0.1, teachers=5).questions(image_schema())
    with pytest.raises(LimbeckError, match="spread_share = 0"):
        replace(SMALL, view="features").questions(schema())
    with pytest.raises(LimbeckError, match="0 < spread_share < 1"):
        lk.GPATE(spread_share=1.5)
