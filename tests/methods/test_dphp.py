"""DP-HP, DP-MERF's variants and full MMD: what is measured, of which rows, and at what price."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TINY, TINY_HERMITE, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.datasets.mixture import Mixture
from limbeck.datasets.registry import entry
from limbeck.methods.mean_embedding.dp_hp import product_distance
from limbeck.methods.mean_embedding.embedding import mean_distance
from limbeck.methods.mean_embedding.full_mmd import discrepancy
from limbeck.methods.mean_embedding.spreads import RANGE_DEVIATIONS, axes_from
from limbeck.privacy import Noise, Private
from limbeck.run import Recipe
from limbeck.scores import mixture_nll

ROOT = Path(__file__).parents[2]
RECIPES = sorted(
    p for kind in ("dp-hp", "dp-merf") for p in (ROOT / "recipes").glob(f"{kind}*.toml")
)


def exact(method: lk.DPHP, rows: object, schema: lk.Schema) -> dict[str, np.ndarray]:
    """What the method measures at epsilon = infinity, with the public seed 0."""
    planned = lk.plan(method, schema, lk.Budget(math.inf))
    private = Private(lk.read(rows, schema), planned.questions, planned.unit, Noise.from_seed(0))
    found = method.measure(private, seed=0, progress=lambda phase, done: None)
    return {name: answer.values for name, answer in found.items()}


@pytest.mark.parametrize("products", [1, 3])
def test_products_are_of_one_class(products: int) -> None:
    """P9: a row enters the product of its own class, so a class without rows has none at all."""
    schema, rows = table_schema(), table_rows(60)
    method = lk.DPHP(**TINY_HERMITE | {"products": products})
    found = exact(method, rows, schema)
    held = lk.read(rows, schema)._encoded()
    slots = jnp.asarray(schema.expand(held.cells))
    for name, product in method._drawn_products(schema, method._axes(schema, {}), 0).items():
        made = product(slots)
        if isinstance(made, tuple):
            made = jnp.einsum("nl,nr->nlr", *made)
        for code in range(len(schema.classes)):
            wanted = np.asarray(made, np.float64)[held.labels == code].sum(axis=0)
            assert np.allclose(found[name][code], wanted, atol=1e-2)
        assert not found[name][2].any()  # "unsure": declared, but nobody is


def test_shares_follow_the_kernel() -> None:
    for kernel, wanted in (("sum", 1), ("product", 2), ("combined", 3)):
        method = lk.DPHP(**TINY_HERMITE, kernel=kernel, product_share=0.4, count_share=0.1)
        asked = {a.question.name: a for a in method.questions(table_schema())}
        assert len(asked) == 1 + wanted
        assert sum(r.share for r in asked.values()) == pytest.approx(1.0)
        charges = [c for a in asked.values() for c in a.question.measured()]
        assert len(charges) == len(asked) and all(c.sensitivity == 1.0 for c in charges)


def test_settings_out_of_range_are_refused() -> None:
    for wrong in (
        {"kernel": "both"},
        {"order": -1},
        {"draws": 0},
        {"length_scale": 0.0},
        {"product_share": 0.6, "count_share": 0.5},
        {"generator": "magic"},
    ):
        with pytest.raises(lk.LimbeckError):
            lk.DPHP(**wrong)


def test_spreads_give_ranges() -> None:
    schema, rows = table_schema(), table_rows(400)
    found = exact(lk.DPHP(**TINY_HERMITE, spread_share=0.1), rows, schema)
    axes = axes_from(found["means and spreads"][0], found["class counts"])
    cells = lk.read(rows, schema)._encoded().cells[:, 1].astype(np.float64)  # income
    assert float(axes.centre[1]) == pytest.approx(cells.mean(), abs=1e-3)
    assert float(axes.unit[1]) == pytest.approx(min(1.0, RANGE_DEVIATIONS * cells.std()), abs=1e-2)


def test_products_of_rows_are_compared_without_being_made() -> None:
    rng = np.random.default_rng(0)
    left, right = (jnp.asarray(rng.normal(size=(12, s)), jnp.float32) for s in (3, 5))
    means = jnp.asarray(rng.normal(size=(2, 3, 5)), jnp.float32)
    weights = jnp.asarray([0.3, 0.7])
    plain = jnp.einsum("nl,nr->nlr", left, right).reshape(12, -1)
    wanted = mean_distance(plain, means.reshape(2, -1), weights)
    assert float(product_distance((left, right), means, weights)) == pytest.approx(
        float(wanted), rel=1e-4
    )


def test_the_largest_published_product_is_measured(tmp_path: Path) -> None:
    """Order 13 in five columns: 537,824 features a class."""
    columns = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(8))
    schema = lk.Schema(dataset="wide", rows=50, columns=columns)
    rows = {c.name: np.linspace(0, 1, 50) for c in columns}
    method = lk.DPHP(kernel="product", product_order=13, product_columns=5, draws=1, products=1)
    import pandas as pd

    found = exact(method, pd.DataFrame(rows), schema)
    assert found["product 1"].shape == (1, 196, 2744)


def test_only_fitting_is_free(tmp_path: Path) -> None:
    made = lk.distill(
        lk.read(image_rows(40), image_schema()), lk.DPHP(**TINY_HERMITE), lk.Budget(1.0), seed=1
    )
    again = lk.redistill(made, {"gamma": 3.0, "generator": "dense"}, rows=7)
    assert len(again.data.images) == 7
    again.save(tmp_path / "dense")
    assert np.array_equal(lk.Release.load(tmp_path / "dense").data.images, again.data.images)
    with pytest.raises(lk.LimbeckError, match="order"):
        lk.redistill(made, {"order": 3})


# ---- DP-MERF ------------------------------------------------------------------------------------


def test_heterogeneous_embeddings_are_charged_for_their_norm() -> None:
    schema = table_schema()
    method = lk.DPMERF(**TINY, embedding="heterogeneous")
    (charge,) = method.questions(schema)[1].question.measured()
    assert charge.sensitivity == pytest.approx(math.sqrt(2))
    phi = method.feature_map(schema, 0)
    slots = schema.expand(lk.read(table_rows(50), schema)._encoded().cells)
    norms = np.linalg.norm(np.asarray(phi(jnp.asarray(slots))), axis=1)
    assert norms.max() <= math.sqrt(2) + 1e-5 and norms.max() > 1.2
    assert charge.coordinates == 3 * phi.size


def test_heterogeneous_embeddings_of_one_kind_have_norm_one() -> None:
    numbers = tuple(lk.Numeric(name=n, min=0, max=1) for n in "xy")
    words = tuple(lk.Category(name=n, values=("a", "b")) for n in "xy")
    for columns in (numbers, words):
        schema = lk.Schema(dataset="d", columns=columns)
        method = lk.DPMERF(**TINY, embedding="heterogeneous")
        assert method.questions(schema)[1].question.measured()[0].sensitivity == 1.0


# ---- full MMD -----------------------------------------------------------------------------------


def test_full_mmd_runs_without_privacy_only() -> None:
    method = lk.FullMMD(steps=2, batch=12, hidden=(6,), code=3)
    data = lk.read(table_rows(60), table_schema())
    with pytest.raises(lk.LimbeckError, match="bare rows"):
        lk.distill(data, method, lk.Budget(1.0))
    made = lk.distill(data, method, lk.Budget(math.inf), non_private=True, rows=9)
    assert len(made.data) == 9 and not made.certificate["releasable"]


def test_the_discrepancy_is_least_for_rows_of_the_same_kind() -> None:
    rng = np.random.default_rng(0)
    real, same, other = (jnp.asarray(rng.normal(m, 1, (200, 2))) for m in (0, 0, 1))
    assert float(discrepancy(same, real, (1.0,))) < float(discrepancy(other, real, (1.0,)))


# ---- recipes and the mixture --------------------------------------------------------------------


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipes_are_methods(path: Path) -> None:
    raw = tomllib.loads(path.read_text())
    for variant in raw["variants"]:
        recipe = Recipe.load(f"{path}#{variant}")
        assert recipe.method.name == raw["method"]
        assert variant in recipe.settings_source


def test_the_mixture_is_drawn_as_described() -> None:
    data = lk.datasets.load("gaussian-mixture")
    truth = Mixture.from_options(entry("gaussian-mixture").sources[0].options)
    assert (len(data.train), len(data.test)) == (90_000, 10_000)
    points, labels = data.test[["x", "y"]].to_numpy(), data.test["class"].to_numpy()
    nearest = ((points[:, None] - truth.means) ** 2).sum(axis=2).argmin(axis=1)
    assert len(set(nearest)) == 25
    assert (truth.labels[nearest] == labels).mean() > 0.97
    nll = mixture_nll(
        points, truth.means, deviation=0.2, labels=labels, mean_labels=truth.labels
    )  # fmt: skip
    entropy = math.log(25) + math.log(2 * math.pi * math.e * 0.2**2)
    assert nll / len(points) == pytest.approx(entropy, abs=0.05)


def test_bins_are_whole_numbers_within_their_schema() -> None:
    data = lk.datasets.load("adult-bins")
    ages = data.train["age"]
    assert (ages.min(), ages.max()) == (0, 6)
    whole = lk.datasets.load("adult").train["age"]
    assert ((whole >= 25) == (ages >= 1)).all() and ((whole >= 75) == (ages == 6)).all()
