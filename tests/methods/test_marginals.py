"""Marginals: counts survive the whole road, soft rows draw evenly, settings are checked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.features.cells import _frequent
from limbeck.methods import METHODS, SoftRows, default_method
from limbeck.methods.marginals.noisy_cells import clear_cells, to_simplex
from limbeck.methods.marginals.soft_fit import NoisyMarginals, fit_soft_rows
from limbeck.run import make_method


def _schema(**changes: object) -> lk.Schema:
    settings: dict[str, object] = {
        "dataset": "joint",
        "rows": 4000,
        "columns": (
            lk.Category(name="a", values=("x", "y", "z")),
            lk.Category(name="b", values=("x", "y", "z")),
            lk.Numeric(name="amount", integer=True, min=0, max=50_000),
            lk.Category(name="label", values=(0, 1), label=True),
        ),
    }
    return lk.Schema(**(settings | changes))  # type: ignore[arg-type]


def _rows(count: int = 4000) -> pd.DataFrame:
    """b copies a nine times in ten; amounts are nothing, mostly, and large in class 1."""
    rng = np.random.default_rng(0)
    a, label = rng.integers(0, 3, count), rng.random(count) < 0.3
    b = np.where(rng.random(count) < 0.9, a, rng.integers(0, 3, count))
    amount = np.where(rng.random(count) < 0.7, 0, rng.integers(1, 10_000, count))
    amount = np.where(label, amount + 20_000, amount)
    names = np.array(["x", "y", "z"])
    return pd.DataFrame({"a": names[a], "b": names[b], "amount": amount, "label": label * 1})


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_pairs_piles_and_classes_survive(epsilon: float, tmp_path: Path) -> None:
    true, ledger = _rows(), lk.Ledger(tmp_path / "ledger.sqlite")
    made = lk.distill(
        lk.read(true, _schema()),
        lk.Marginals(soft_rows=200, steps=200),
        lk.Budget(epsilon),
        seed=0,
        ledger=ledger,
        non_private=math.isinf(epsilon),
    ).data
    assert len(made) == 4000
    assert (made["a"] == made["b"]).mean() == pytest.approx(
        (true["a"] == true["b"]).mean(), abs=0.03
    )
    assert made["label"].mean() == pytest.approx(true["label"].mean(), abs=0.03)
    nothing = (made["amount"] == 0) & (made["label"] == 0)
    assert nothing.mean() == pytest.approx(0.7 * 0.7, abs=0.04)
    large = made.loc[made["label"] == 1, "amount"] >= 19_900
    assert large.mean() > 0.95


def test_independent_columns_stay_so_under_much_noise() -> None:
    """Counts of nothing but noise make no pairs: the restraint outweighs it."""
    rng, rows = np.random.default_rng(0), 1000.0
    noise = rng.normal(0, 30, (1, 6, 6))
    marginals = NoisyMarginals(
        sizes=(3, 3),
        rows=np.array([rows]),
        single=np.full((1, 6), rows / 3),
        single_variance=np.full(6, 100.0),
        pair=rows / 9 + (noise + noise.transpose(0, 2, 1)) / 2,
        pair_variance=450.0,
    )

    def strongest(restraint: float) -> float:
        soft = fit_soft_rows(
            marginals,
            soft_rows=100,
            steps=150,
            learning_rate=0.1,
            restraint=restraint,
            seed=0,
            progress=lambda done: None,
        )[0]
        assert np.allclose(soft[:, :3].sum(axis=1), 1, atol=1e-5)
        mean = soft.mean(axis=0)
        joint = soft[:, :3].T @ soft[:, 3:] / len(soft)
        return float(np.abs(joint - np.outer(mean[:3], mean[3:])).max())

    assert strongest(5.0) < 0.3 * strongest(1e-3)


def test_the_simplex_is_nearest() -> None:
    values = np.random.default_rng(0).normal(0, 3, 40)
    found = to_simplex(values, 7.0)
    assert (found >= 0).all() and found.sum() == pytest.approx(7.0)
    kept = found > 0
    moved = (values - found)[kept]
    assert np.allclose(moved, moved[0]) and (values[~kept] <= moved[0] + 1e-9).all()
    assert np.allclose(to_simplex(np.full(3, -1e9), 0.0), 0.0)


def test_tails_are_kept_and_noise_far_out_is_not() -> None:
    """A body that fades out in a few rows per cell, in bounds many times as wide; and the same turned round."""
    rng, count = np.random.default_rng(0), 200
    true = np.zeros(250)
    true[100:160] = 2000 * 0.85 ** np.arange(60)
    for turn in (slice(None), slice(None, None, -1)):
        rows = true[turn]
        kept = np.array(
            [clear_cells(rows + rng.normal(0, 13.0, 250), np.full(250, 13.0)) for _ in range(count)]
        )
        found = kept @ rows / rows.sum()
        assert found.min() > 0.97 and found.mean() > 0.99
        empty = kept[:, rows == 0]
        assert empty.any(axis=1).mean() < 0.15 and empty.sum(axis=1).max() < 60
        far = np.abs(np.arange(250) - np.flatnonzero(rows).mean()) > 60
        assert kept[:, far].any(axis=1).mean() < 0.05


def test_wide_bounds_beside_a_label_ruin_no_correlation() -> None:
    """An income on a logarithmic scale in bounds to a hundred times as much, and who gets a loan."""
    rng = np.random.default_rng(0)
    income = np.exp(rng.normal(7.6, 0.6, 6000)).round(2)
    loan = rng.random(6000) < 1 / (1 + np.exp((income - 2500) / 800))
    rows = pd.DataFrame({"income": income, "loan": loan * 1, "sex": rng.choice(["f", "m"], 6000)})
    columns = (
        lk.Numeric(name="income", min=1.0, max=1e5, scale="log"),
        lk.Category(name="sex", values=("f", "m")),
        lk.Category(name="loan", values=(0, 1), label=True),
    )
    schema = lk.Schema(dataset="bank", rows=6000, columns=columns)
    release = lk.distill(lk.read(rows, schema), lk.Marginals(steps=200), 1.0, seed=0)
    real, made = (float(d["income"].corr(d["loan"])) for d in (rows, release.data))
    assert real < -0.5 and abs(made - real) < 0.1
    assert 0.8 < release.data["income"].std() / income.std() < 1.2


def test_redistilling_fits_anew_but_measures_nothing_else(tmp_path: Path) -> None:
    ledger = lk.Ledger(tmp_path / "ledger.sqlite")
    method = lk.Marginals(soft_rows=150, steps=2)
    data = lk.read(table_rows(100), table_schema())
    made = lk.distill(data, method, lk.Budget(1.0), out=tmp_path / "one", seed=0, ledger=ledger)
    again = lk.redistill(
        lk.Release.load(tmp_path / "one"), {"soft_rows": 600}, out=tmp_path / "two", rows=31
    )
    assert len(again.data) == 31 and lk.verify(tmp_path / "two").epsilon == pytest.approx(1.0)
    assert again.source.soft.shape[1] == 2 * made.source.soft.shape[1]  # type: ignore[union-attr]
    for changed in ({"groups": 3}, {"grid": 20}):
        with pytest.raises(lk.LimbeckError, match="measure something else"):
            lk.redistill(made, changed)


def test_replacement_doubles_every_sensitivity() -> None:
    single, both = (
        lk.plan(lk.Marginals(), table_schema(), lk.Budget(1.0, 1e-5, adjacency)).charges
        for adjacency in ("add-remove", "replace-one")
    )
    assert [c.sensitivity for c in both] == [2 * c.sensitivity for c in single]


def test_wide_tables_with_few_rows_spend_on_single_columns_in_fewer_cells() -> None:
    """What noise would hide is not asked for; declared rows decide, never the true ones."""
    columns = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(100))
    label = lk.Category(name="y", values=(0, 1), label=True)
    found = []
    for rows in (1000, 200_000, None):
        schema = lk.Schema(dataset="wide", rows=rows, columns=(*columns, label))
        _, singles, _ = lk.Marginals().questions(schema)
        found.append((singles.share, singles.question.measured()[0].coordinates))
        _, said, _ = lk.Marginals(single_share=0.5, grid=20).questions(schema)
        assert (said.share, said.question.measured()[0].coordinates) == (0.5, 2 * 100 * 22)
    assert found == [(0.8, 2 * 100 * 18)] + 2 * [(0.3, 2 * 100 * 258)]
    with pytest.raises(lk.LimbeckError, match="count_share_and_single_share"):
        lk.plan(lk.Marginals(count_share=0.2), replace(schema, rows=1000), lk.Budget(1.0))


def test_the_default_fits_the_data() -> None:
    assert default_method(table_schema()) == "marginals"
    assert default_method(image_schema()) in METHODS


@pytest.mark.parametrize(
    "settings, word",
    [({"groups": 1}, "groups"), ({"single_share": 1.0}, "single_share"), ({"steps": 0}, "steps")],
)
def test_settings_are_checked(settings: dict[str, float], word: str) -> None:
    with pytest.raises(lk.LimbeckError, match=word):
        lk.Marginals(**settings)  # type: ignore[arg-type]


def test_images_and_tables_too_wide_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(lk.LimbeckError, match="for tables"):
        lk.plan(lk.Marginals(), image_schema(), lk.Budget(1.0))
    wide = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(700))
    label = lk.Category(name="y", values=tuple(range(40)), label=True)
    with pytest.raises(lk.LimbeckError, match="too many"):
        lk.plan(
            lk.Marginals(),
            lk.Schema(dataset="w", rows=5000, columns=(*wide, label)),
            lk.Budget(1.0),
        )
    held = lk.plan(lk.Marginals(), lk.Schema(dataset="w", rows=5000, columns=wide), lk.Budget(1.0))
    assert max(c.coordinates for c in held.charges) <= 1 << 25


def test_groups_of_a_category_are_never_more_than_planned() -> None:
    """Sixteen frequent values and a rare one, sixteen groups planned: the rare one joins another."""
    weights = np.array([100.0] * 16 + [0.1])
    for most in (2, 16, 17, 18):
        assert _frequent(weights, most, 4.0).max() < most


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grid": "fine"}, "expected grid to be a whole number or \"auto\"; got 'fine'"),
        ({"grid": 2.5}, 'expected grid to be a whole number or "auto"; got 2.5'),
        ({"restraint": True}, 'expected restraint to be a number or "auto"; got True'),
        ({"grid": 0}, "Expected grid > 0, got 0"),
        ({"single_share": 0.0}, "Expected 0 < single_share < 1, got 0.0"),
        ({"restraint": -0.1}, "Expected restraint >= 0, got -0.1"),
    ],
)
def test_automatic_settings_are_numbers_or_auto(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(lk.LimbeckError) as caught:
        make_method("marginals", settings)
    assert words in str(caught.value)


def test_no_restraint_is_none_and_auto_says_so() -> None:
    schema = table_schema()
    none, auto = (make_method("marginals", {"restraint": r}) for r in (0.0, "auto"))
    assert isinstance(none, lk.Marginals) and isinstance(auto, lk.Marginals)
    assert none._restraint(schema) == 0.0 < auto._restraint(schema)
    assert auto.settings()["restraint"] == "auto" == lk.Marginals().settings()["grid"]


def test_soft_rows_draw_cells_that_decode_as_they_are() -> None:
    """A sure soft row: every draw is its cells, gaps and categories included."""
    columns = (
        lk.Category(name="c", values=("a", "b"), missing=True),
        lk.Numeric(name="n", min=0, max=3, integer=True, missing=True),
    )
    schema = lk.Schema(dataset="d", columns=columns)
    cells, picked = 3 + 5, [2, 3 + 4]  # both columns' last cell: missing
    soft = np.zeros((1, 1, cells))
    soft[0, 0, picked] = 1.0
    source = SoftRows(
        soft=soft,
        groups=np.arange(cells),
        within=np.ones((1, cells)),
        class_weights=np.ones(1),
        grid=16,
    )
    drawn, labels = source.draw(schema, 5, seed=0)
    assert drawn.shape == (5, 2) and labels.tolist() == [0] * 5
    assert schema.decode(drawn, labels).isna().all(axis=None)


def _exclusive(count: int = 10_000) -> tuple[pd.DataFrame, lk.Schema]:
    """The third column is the exclusive or of the first two; the label and the rest follow nothing."""
    rng = np.random.default_rng(3)
    one, two = rng.integers(0, 2, (2, count))
    three = np.where(rng.random(count) < 0.95, one ^ two, rng.integers(0, 2, count))
    columns = {"one": one, "two": two, "three": three, "town": rng.integers(0, 3, count)}
    rows = pd.DataFrame(
        columns | {"size": 100 * rng.random(count), "ill": rng.integers(0, 2, count)}
    )
    kinds = [
        lk.Category(name=name, values=tuple(range(int(own.max()) + 1)), label=name == "ill")
        for name, own in rows.items()
        if name != "size"
    ]
    size = lk.Numeric(name="size", min=0, max=100)
    return rows, lk.Schema(dataset="xor", rows=count, columns=(*kinds, size))


def _agreeing(rows: pd.DataFrame) -> float:
    one, two, three = (rows[name].astype(int) for name in ("one", "two", "three"))
    return float(((one ^ two) == three).mean())


def test_a_triple_that_pairs_say_nothing_of_is_chosen_and_learned(tmp_path: Path) -> None:
    rows, schema = _exclusive()
    made = {
        triples: lk.distill(
            lk.read(rows, schema), lk.Marginals(triples=triples), lk.Budget(1.0, 1e-5), seed=2,
            ledger=lk.Ledger(tmp_path / f"{triples}.sqlite"),
        )
        for triples in (0, 1)
    }  # fmt: skip
    assert 0.45 < _agreeing(made[0].data) < 0.55
    assert _agreeing(rows) > 0.97 and _agreeing(made[1].data) > 0.9
    assert made[1].measurements["choice of triples"].tolist() == [0]
    again = lk.redistill(made[1], {"steps": 700})
    assert _agreeing(again.data) > 0.9


def test_triples_that_there_are_not_are_refused_when_planned() -> None:
    _, schema = _exclusive(2000)
    with pytest.raises(lk.LimbeckError, match="Expected triples from 0 to the 10 of 'xor'"):
        lk.plan(lk.Marginals(triples=11), schema, lk.Budget(1.0))
    with pytest.raises(lk.LimbeckError, match="triples >= 0"):
        lk.Marginals(triples=-1)
    columns = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(40))
    wide = lk.Schema(dataset="wide", rows=100_000, columns=columns)
    with pytest.raises(lk.LimbeckError, match="of which there may be 4000"):
        lk.plan(lk.Marginals(triples=1), wide, lk.Budget(1.0, 1e-6))
    names = [one.question.name for one in lk.Marginals(triples=0).questions(schema)]
    assert "choice of triples" not in names


def test_correlations_leave_no_triples() -> None:
    _, schema = _exclusive(2000)
    asked = lk.Marginals(triples=2, pairs="correlations").questions(schema)
    assert "triples of columns" not in [one.question.name for one in asked]
