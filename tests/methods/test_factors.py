"""Correlations of columns: what they say of pairs survives noise, and noise alone says nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.features.cells import table_cells
from limbeck.methods.marginals.class_shapes import class_chances, pooled_scores
from limbeck.methods.marginals.factors import common_factors, factor_rows, normal_scores
from limbeck.methods.marginals.noisy_cells import clear_cells
from limbeck.privacy import Measurement

WIDE = lk.Schema(
    dataset="answers",
    rows=1500,
    columns=tuple(
        lk.Numeric(name=f"q{i}", integer=True, min=0, max=3, missing=i == 0) for i in range(40)
    ),
)


def _answers(count: int = 1500) -> pd.DataFrame:
    """Forty answers that one mood decides, each skewed in its own way."""
    rng = np.random.default_rng(0)
    behind = 0.7 * rng.normal(size=(count, 1)) + 0.71 * rng.normal(size=(count, 40))
    frame = pd.DataFrame(
        {f"q{i}": np.digitize(behind[:, i], np.array([-0.5, 0.4, 1.3]) + i / 40) for i in range(40)}
    ).astype(float)
    frame.loc[::10, "q0"] = np.nan
    return frame


def test_correlations_of_a_wide_table_survive(tmp_path: Path) -> None:
    true, book = _answers(), lk.Ledger(tmp_path / "ledger.sqlite")
    made = lk.distill(lk.read(true, WIDE), lk.Marginals(), lk.Budget(1.0), seed=0, ledger=book).data
    off = ~np.eye(40, dtype=bool)
    wanted, found = (f.astype(float).corr().to_numpy()[off] for f in (true, made))
    assert wanted.mean() > 0.35 and abs(found - wanted).mean() < 0.1
    assert found.mean() > 0.7 * wanted.mean()  # clipping draws them to nothing, a little
    assert made["q0"].isna().mean() == pytest.approx(0.1, abs=0.05)


def test_correlations_are_measured_where_rows_are_few() -> None:
    label = lk.Category(name="y", values=(0, 1), label=True)
    labelled, fewer = (
        lk.Schema(dataset="l", rows=rows, columns=(*WIDE.columns, label)) for rows in (1500, 400)
    )
    many = lk.Schema(dataset="m", rows=150_000, columns=WIDE.columns)
    schemas = (WIDE, labelled, fewer, many)
    asked = [lk.Marginals().questions(schema)[-1].question for schema in schemas]
    pairs, correlations = "pairs of columns", "correlations of columns"
    assert [q.name for q in asked] == [correlations, correlations, pairs, pairs]
    (charge,) = asked[0].measured()
    assert (charge.sensitivity, charge.coordinates) == (pytest.approx(40.0, rel=1e-2), 1600)
    forced = lk.Marginals(pairs="correlations").questions(fewer)[-1].question
    assert forced.name == asked[0].name
    with pytest.raises(lk.LimbeckError, match="pairs"):
        lk.Marginals(pairs="triples")


def test_classes_of_a_wide_table_are_told_apart(tmp_path: Path) -> None:
    """By where numbers lie, how far they spread, which value a category has, and gaps."""
    rng = np.random.default_rng(0)
    numbers = tuple(lk.Numeric(name=f"x{i}", min=-4, max=4, missing=i == 39) for i in range(40))
    town = lk.Category(name="town", values=("north", "south", "west"))
    label = lk.Category(name="ill", values=("no", "yes"), label=True)
    schema = lk.Schema(dataset="w", rows=3000, columns=(*numbers, town, label))
    ill = rng.random(3000) < 0.5
    values = rng.normal(size=(3000, 40)) + np.where(ill[:, None], 0.5, -0.5) * (np.arange(40) < 10)
    values[:, 10:30] *= np.where(ill, 1.2, 0.5)[:, None]
    frame = pd.DataFrame(values, columns=[c.name for c in numbers])
    frame.loc[ill & (rng.random(3000) < 0.6), "x39"] = np.nan
    chances = np.where(ill[:, None], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]).cumsum(axis=1)
    frame["town"] = np.array(town.values)[(rng.random((3000, 1)) > chances).sum(axis=1)]
    frame["ill"] = np.where(ill, "yes", "no")
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    made = lk.distill(lk.read(frame, schema), "marginals", lk.Budget(1.0), seed=0, ledger=book).data
    sick, well = made[made["ill"] == "yes"], made[made["ill"] == "no"]
    apart = sick.mean(numeric_only=True) - well.mean(numeric_only=True)
    assert apart[:10].between(0.6, 1.4).all() and abs(apart[10:39]).max() < 0.4
    wider = sick.std(numeric_only=True) / well.std(numeric_only=True)
    assert wider[10:30].min() > 1.5 and 1.8 < wider[10:30].median() < 3.0  # 2.4 among the rows
    assert wider[30:39].between(0.7, 1.4).all()
    assert sick["x39"].isna().mean() - well["x39"].isna().mean() == pytest.approx(0.6, abs=0.15)
    assert (sick["town"] == "west").mean() - (well["town"] == "west").mean() > 0.35


def test_tilted_shapes_have_the_wanted_means_of_scores() -> None:
    columns = table_cells(WIDE, 16)[1:2]
    shares = np.array([0.1, 0.4, 0.3, 0.2])
    (scores,) = pooled_scores(columns, shares)
    assert np.allclose(shares @ scores, 0) and np.allclose(shares @ scores**2, 1)
    sums = Measurement(1000 * np.array([[0.5, -0.2], [-0.5, 0.2]]), 0.0, "none")
    rows = np.array([1e6, 1e6])
    chances = class_chances(columns, 1e6 * shares, sums._replace(values=1000 * sums.values), rows)
    assert np.allclose(chances @ scores, [[0.5, -0.2], [-0.5, 0.2]], atol=0.02)


def test_noise_alone_has_no_factors() -> None:
    rng = np.random.default_rng(0)
    products = 1000 * np.eye(30) + rng.normal(0, 50, (30, 30))
    assert common_factors(products, 50.0).shape[1] <= 1
    assert (common_factors(products, 50.0) ** 2).sum() < 1.5


def test_factors_give_back_the_correlations() -> None:
    wanted = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.2], [0.3, 0.2, 1.0]])
    loadings = common_factors(1000 * wanted, 0.0)
    off = ~np.eye(3, dtype=bool)
    assert np.allclose((loadings @ loadings.T)[off], wanted[off], atol=0.06)


def test_soft_rows_of_factors_keep_single_columns() -> None:
    cells = table_cells(WIDE, 16)[:2]
    chances = np.array([[0.5, 0.2, 0.1, 0.1, 0.1, 0.0, 0.9, 0.1, 0.0]])
    scores = normal_scores(cells, chances)
    assert scores[0, 4] == 0 and chances[0, 5:] @ scores[0, 5:] == pytest.approx(0, abs=1e-9)
    assert chances[0, 5:] @ scores[0, 5:] ** 2 == pytest.approx(1)
    soft = factor_rows(cells, chances, np.full((2, 1), 0.8), soft_rows=4000, seed=0)
    assert np.allclose(soft[0, :, :5].sum(axis=1), 1, atol=1e-5)
    assert np.allclose(soft[0].mean(axis=0), chances[0], atol=0.02)
    assert np.allclose(soft[0, :, 4], 0.1)


def test_empty_cells_are_cleared_and_full_ones_kept() -> None:
    rng = np.random.default_rng(0)
    true = np.zeros(258)
    true[:40] = 300
    true[200] = 500
    kept = clear_cells(true + rng.normal(0, 20, 258), np.full(258, 20.0))
    assert kept[:40].all() and kept[200] and kept.sum() < 50
    assert not clear_cells(rng.normal(0, 1, 9) - 9, np.ones(9)).any()
    empty = rng.normal(0, 20, (500, 258))  # noise alone is hardly ever taken for rows
    assert sum(clear_cells(one, np.full(258, 20.0)).any() for one in empty) < 30
