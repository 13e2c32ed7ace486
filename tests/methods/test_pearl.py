"""PEARL: a paid scale of frequencies, an adversary of free weights, and a generator that follows both."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TINY, image_schema, table_rows, table_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.methods.mean_embedding.distances import (
    LEAST_DISTANCE,
    DistanceFeatures,
    typical_distance,
)
from limbeck.methods.mean_embedding.pearl import Adversary
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "pearl.toml"
WEIGHTS = np.array([1.0, 4.0, 2.0, 1.0])


def sums(rows: np.ndarray) -> np.ndarray:
    features = DistanceFeatures(jnp.asarray(WEIGHTS, jnp.float32))
    return np.asarray(features(jnp.asarray(rows, jnp.float32)), np.float64).sum(axis=0)


def test_the_typical_distance_is_that_of_two_rows() -> None:
    rows = np.random.default_rng(0).beta(2, 5, (300, 4))
    apart = ((rows[:, None] - rows[None]) * WEIGHTS) ** 2
    wanted = math.sqrt(apart.sum(axis=2).mean())
    found = typical_distance(sums(rows), np.array([100.0, 200.0]), 0.0, WEIGHTS)
    assert found == pytest.approx(wanted, rel=1e-4)


def test_noise_makes_the_typical_distance_neither_larger_nor_smaller() -> None:
    rng = np.random.default_rng(1)
    rows = rng.random((400, 4))
    clean, noise = sums(rows), 12.0
    wanted = typical_distance(clean, np.array([400.0]), 0.0, WEIGHTS)
    found = [
        typical_distance(clean + rng.normal(0, noise, 5), np.array([400.0]), noise, WEIGHTS)
        for _ in range(400)
    ]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(wanted, rel=0.05)
    longest = math.sqrt((WEIGHTS**2).sum())
    for wild in (-1e6, 1e6):
        found_ = typical_distance(np.full(5, wild), np.array([-3.0]), noise, WEIGHTS)
        assert LEAST_DISTANCE * longest <= found_ <= longest


@pytest.mark.parametrize("corner", [0.0, 1.0, 0.5])
def test_distance_features_are_within_their_norm(corner: float) -> None:
    rows = np.random.default_rng(2).integers(0, 2, (50, 4)).astype(float)
    rows[0] = corner
    features = DistanceFeatures(jnp.asarray(WEIGHTS, jnp.float32))
    norms = jnp.linalg.norm(features(jnp.asarray(rows)), axis=1)
    assert float(norms.max()) <= 1 + 1e-5


def test_the_scale_of_frequencies_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The authors' programs take it from rows for nothing; here it is that of the noisy answer."""
    schema, method = table_schema(), lk.PEARL(**TINY, widths=(0.5,))
    charges = {c.name: c for c in lk.plan(method, schema, lk.Budget(1.0)).charges}
    assert charges["typical distance"].sensitivity == 1.0
    assert charges["typical distance"].noise > 0
    given: list[Any] = []
    make = lk.PEARL.feature_map
    monkeypatch.setattr(
        lk.PEARL, "feature_map",
        lambda *a, **k: (given.append(k.get("measured", a[3:] and a[3])), make(*a, **k))[1],
    )  # fmt: skip
    data = lk.read(table_rows(150), schema)
    release = lk.distill(data, method, lk.Budget(1.0), seed=0, check=False)
    asked, fitted = given
    for name, values in asked.items():
        assert np.array_equal(values, fitted[name])
    assert np.array_equal(asked["typical distance"], release.measurements["typical distance"])
    small, large = (
        make(method, schema, 0, {**asked, "typical distance": size * np.eye(1, 9, 8)}).frequencies
        for size in (10.0, 1000.0)
    )
    ratios = np.asarray(small / large)
    assert np.allclose(ratios, ratios[0, 0], rtol=1e-4) and ratios[0, 0] > 1.5


def test_without_a_share_the_scale_is_the_schemas() -> None:
    method = lk.PEARL(**TINY, distance_share=0.0)
    names = [asked.question.name for asked in method.questions(image_schema())]
    assert names == ["class counts", "mean embedding"]
    assert method.feature_map(image_schema(), 0).size == TINY["features"]


def test_the_adversary_weighs_frequencies_as_if_drawn_with_another_spread() -> None:
    powers = jnp.asarray(np.random.default_rng(3).chisquare(1, (2, 5000)), jnp.float32)
    assert np.allclose(Adversary(jnp.zeros(2), 1.0).shares(powers), 1 / 5000)
    shares = Adversary(jnp.array([math.log(1.2), 0.0]), 1.0).shares(powers)
    assert float(shares.sum()) == pytest.approx(1, abs=1e-4)
    spreads = np.asarray(powers @ shares)
    assert spreads == pytest.approx([1.44, 1.0], rel=0.1)


def test_each_side_plays_its_own_game() -> None:
    """The adversary moves towards frequencies that are apart; the generator sees its weights alone."""
    schema, method = image_schema(), lk.PEARL(**TINY)
    features = method.feature_map(schema, 0)
    generator = lk.methods.source.build_generator(
        schema, {"code": 3, "hidden": [6]}, key=jax.random.key(1)
    )
    powers = features.frequencies**2
    strong = powers[0] > jnp.median(powers[0])
    means = jnp.where(jnp.tile(strong, 2), 0.9, 0.0) * jnp.ones((3, 1))
    target = means, jnp.full(3, 1 / 3), features, powers / powers.mean(axis=1, keepdims=True)
    adversary = Adversary(jnp.zeros(schema.slots), 1.0)

    def slope(caution: float) -> Any:
        game = replace(method, caution=caution)._game
        both = eqx.filter((generator, adversary), eqx.is_inexact_array)
        rest = eqx.filter((generator, adversary), eqx.is_inexact_array, inverse=True)
        return jax.grad(lambda b: game(eqx.combine(b, rest), jax.random.key(2), target))(both)

    moved, cautious = slope(0.0), slope(5.0)
    assert float(moved[1].changes[0]) < 0  # descent: towards more spread along the first slot
    for ours, theirs in zip(*map(jax.tree_util.tree_leaves, (moved[0], cautious[0])), strict=True):
        assert np.array_equal(ours, theirs)


def test_the_generator_learns_what_classes_look_like() -> None:
    method = lk.PEARL(features=400, steps=150, batch=60, code=3, hidden=(32,))
    learns_both_patterns(method, image_schema(), by=60)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": 23}, "even number"),
        ({"widths": ()}, "widths > 0"),
        ({"widths": (0.0,)}, r"widths\[0\] > 0"),
        ({"adversary_rate": -1.0}, "adversary_rate >= 0"),
        ({"distance_share": 0.95}, "leave nothing"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.PEARL(**settings)  # type: ignore[arg-type]


def test_values_to_estimate_are_refused_when_planned() -> None:
    town = lk.Category(name="town", most=10, missing=True)
    columns = tuple(town if c.name == "town" else c for c in table_schema().columns)
    with pytest.raises(lk.LimbeckError, match="town"):
        lk.plan(lk.PEARL(**TINY), table_schema(columns=columns), lk.Budget(1.0))


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        data = "adult" if variant == "adult" else "mnist"
        assert isinstance(method, lk.PEARL) and method.questions(lk.datasets.schema(data))
    assert Recipe.load(f"{RECIPE}#quick").method == lk.PEARL()
