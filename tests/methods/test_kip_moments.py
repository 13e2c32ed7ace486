"""DP-KIP's start from noisy means and spreads of a table's classes, in measured ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import image_schema

import limbeck as lk
from limbeck.errors import LimbeckError
from limbeck.methods.class_counts import COUNTS
from limbeck.methods.kip.class_moments import (
    MOMENTS,
    counted_in,
    moment_map,
    rows_from_moments,
    spread_map,
    view_of,
)
from limbeck.methods.mean_embedding.spreads import SPREADS
from limbeck.privacy import Measurement
from limbeck.schema import Lifetime

SCHEMA = lk.Schema(
    dataset="moments",
    rows=4000,
    lifetime=Lifetime(epsilon=30.0, delta=0.5, filter="sum"),
    columns=(
        lk.Numeric(name="far", min=-100.0, max=100.0),
        lk.Category(name="kind", values=("a", "b", "c")),
        lk.Category(name="label", values=(0, 1), label=True),
    ),
)


def table(count: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = np.arange(count) % 2
    far = 40 + 3 * label + (1 + label) * rng.normal(size=count)
    kind = np.where(rng.random(count) < 0.8, np.where(label, "b", "a"), "c")
    return pd.DataFrame({"far": far, "kind": kind, "label": label})


def measured() -> dict[str, Measurement]:
    """What the questions would answer without noise."""
    held = lk.read(table(), SCHEMA)._encoded()
    slots, labels = SCHEMA.expand(np.asarray(held.cells)), np.asarray(held.labels)
    law = {"noise": 0.0, "law": "none"}
    counts = np.bincount(labels).astype(float)
    spreads = np.asarray(spread_map(SCHEMA, 0)(slots)).sum(axis=0)
    features = np.asarray(moment_map(SCHEMA, 0, spreads, counts)(slots))
    sums = np.stack([features[labels == code].sum(axis=0) for code in (0, 1)])
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-6
    return {
        COUNTS: Measurement(counts, **law),  # type: ignore[arg-type]
        SPREADS: Measurement(spreads, **law),  # type: ignore[arg-type]
        MOMENTS: Measurement(sums, **law),  # type: ignore[arg-type]
    }


def test_rows_are_drawn_with_the_classes_means_and_spreads() -> None:
    known = measured()
    rows = rows_from_moments(SCHEMA, known, 200, np.random.default_rng(1))
    far = 200 * rows[:, :, 0] - 100
    assert far.mean(axis=1) == pytest.approx([40, 43], abs=0.3)
    assert far.std(axis=1)[1] > 1.5 * far.std(axis=1)[0] > 0
    assert rows[0, 0, 1:] == pytest.approx([0.8, 0.0, 0.2], abs=0.05)
    view = view_of(counted_in(SCHEMA, known))
    seen = view(rows[:, :, :1].repeat(4, axis=2).reshape(-1, 4))[:, 0]
    assert 0.2 < seen.std() < 2
    assert view.back(view(rows[0])) == pytest.approx(rows[0], abs=1e-5)


def test_noisy_spreads_of_small_classes_are_those_of_all() -> None:
    known = measured()
    known[MOMENTS] = known[MOMENTS]._replace(noise=1e6)
    rows = rows_from_moments(SCHEMA, known, 200, np.random.default_rng(1))
    assert rows[0, :, 0].std() == pytest.approx(rows[1, :, 0].std(), rel=0.01)


def test_a_release_from_moments(tmp_path) -> None:
    method = lk.DPKIP(start="moments", per_class=3)
    asked = {one.question.name: one.share for one in method.questions(SCHEMA)}
    assert sum(asked.values()) == pytest.approx(1.0) and {SPREADS, MOMENTS} < set(asked)
    release = lk.distill(
        lk.read(table(), SCHEMA), method, lk.Budget(5.0, 1e-5), seed=0,
        ledger=lk.Ledger(tmp_path / "l.sqlite"), check=False,
    )  # fmt: skip
    mean = release.data.groupby("label")["far"].mean()
    assert 30 < mean[0] < 50 and 30 < mean[1] < 50
    with pytest.raises(LimbeckError, match="for tables"):
        lk.DPKIP(start="moments", per_class=1).questions(image_schema())


def test_a_table_of_categories_alone_has_chances_and_no_spreads(tmp_path) -> None:
    schema = replace(SCHEMA, columns=SCHEMA.columns[1:])
    release = lk.distill(
        lk.read(table()[["kind", "label"]], schema), lk.DPKIP(start="moments", per_class=20),
        lk.Budget(5.0, 1e-5), seed=0, ledger=lk.Ledger(tmp_path / "l.sqlite"), check=False,
    )  # fmt: skip
    share = release.data.groupby("label")["kind"].value_counts(normalize=True)
    assert share[0]["a"] > 0.6 and share[1]["b"] > 0.6
