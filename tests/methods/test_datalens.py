"""DataLens: signs that are never more than planned, at their price, and a generator that follows them."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TEACH, image_rows, image_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.accounting import mu_for
from limbeck.methods.gpate.compressed_signs import CompressedSigns
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "datalens.toml"
IMAGES = image_schema()


def compressed(**settings: object) -> CompressedSigns:
    plain = {"points": 3, "points_each": 0, "width": 8, "kept": 2, "updates": 1}
    return CompressedSigns(**plain | {"stochastic": False, "threshold": 0.0} | settings)  # type: ignore[arg-type]


GRADIENTS = jnp.asarray(
    [[3.0, -5.0, 1.0, 0.0, 2.0, -1.0, 0.5, 0.1], [1.0] * 8, [0.0] * 8], jnp.float32
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top": 65, "view": "rows"}, "64 numbers; 65 of them"),
        ({"top": 0}, "top > 0"),
        ({"top": "some"}, "top to be a number"),
        ({"threshold": 1.5}, "threshold <= 1"),
        ({"teachers": 101}, "more than the 100 rows"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_bad_settings_are_refused_before_anything_is_read(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.plan(lk.DataLens(**TEACH | settings), IMAGES, lk.Budget(1.0))


def test_a_teacher_names_the_largest_coordinates_and_no_more() -> None:
    """Of equal ones the first; of a gradient of nothing none; in all of norm 1 at most."""
    said = np.asarray(compressed().answer(GRADIENTS, None)).reshape(3, 8) * math.sqrt(6)
    assert np.allclose(said[0], [1, -1, 0, 0, 0, 0, 0, 0], atol=1e-6)
    assert np.allclose(said[1], [1, 1, 0, 0, 0, 0, 0, 0], atol=1e-6)
    assert not said[2].any()
    wild = jnp.asarray(np.random.default_rng(0).standard_normal((3, 8)) * 1e30, jnp.float32)
    for gradients in (wild, wild.at[0, 0].set(jnp.nan), wild.at[1].set(jnp.inf)):
        answer = np.asarray(compressed(kept=8).answer(gradients, None), np.float64)
        assert np.linalg.norm(answer) <= 1 + 1e-6


def test_drawn_signs_are_right_on_average_and_each_teachers_own() -> None:
    signs = compressed(stochastic=True, kept=8)
    draws = signs.drawn(jax.random.key(0))
    said = jax.vmap(signs.answer, in_axes=(None, None, 0))(GRADIENTS, draws, jnp.arange(4000))
    mean = np.asarray(said, np.float64).mean(axis=0).reshape(3, 8) * math.sqrt(24)
    assert np.abs(mean[0] - np.asarray(GRADIENTS[0]) / 5).max() < 0.08
    assert np.allclose(mean[1], 1.0, atol=1e-5) and not mean[2].any()


def test_a_threshold_keeps_what_enough_teachers_agree_on() -> None:
    shares = np.array([[0.8, -0.9, 0.6, 0, 0, 0, 0, -0.69]] * 3)
    answering = np.array([100, 100, 50])
    tally = shares * answering[:, None] / math.sqrt(6)
    kept = np.asarray(compressed(threshold=0.7).restore([tally], None, answering))
    assert np.array_equal(kept, [[1, -1, 0, 0, 0, 0, 0, 0]] * 3)
    followed = np.asarray(compressed().restore([tally], None, np.array([100] * 3)))
    assert np.allclose(followed[:2], shares[:2], atol=1e-6)


def test_signs_cost_what_one_teacher_may_turn_round() -> None:
    """The sum of signs moves by 2 sqrt(top x rows); asked as vectors of norm 1, by 2."""
    for shards, answered in (("mixed", 6), ("classes", 2)):
        method = lk.DataLens(
            **TEACH | {"view": "rows", "top": 9, "teacher_hidden": (4,)}, shards=shards
        )
        aggregator = method.aggregator(IMAGES)
        (charge,) = aggregator.ballot.measured()
        assert charge.sensitivity == 2.0 and charge.steps == 2 and charge.sampling is None
        assert aggregator.signs == 9 * answered


def test_the_recipe_has_the_published_noise() -> None:
    """5000 in signs, where 200 of each of 30 rows are named, for epsilon 1 and delta 1e-5."""
    method = Recipe.load(f"{RECIPE}#fashion-mnist").method
    assert isinstance(method, lk.DataLens)
    signs = method.aggregator(lk.datasets.schema("fashion-mnist"))
    noise = 2 * math.sqrt(signs.signs * method.updates) / mu_for(1.0, 1e-5)
    assert noise == pytest.approx(5000, rel=0.01)


def test_the_price_is_known_before_the_signs() -> None:
    """The authors' program takes a bound for the largest of noisy counts, by the signs' own sums, for
    epsilon, and stops by it."""
    method = lk.DataLens(**TEACH)
    made = lk.plan(method, IMAGES, lk.Budget(1.0))
    images, labels = image_rows(40)
    for rows in ((images, labels), (np.zeros_like(images), labels)):
        release = lk.distill(lk.read(rows, IMAGES), method, lk.Budget(1.0), seed=1, check=False)
        assert release.certificate["charges"] == [c.facts() for c in made.charges]


@pytest.mark.parametrize(
    "settings", [{}, {"shards": "mixed", "stochastic": True, "threshold": 0.2}]
)
def test_the_generator_learns_what_classes_look_like(settings: dict[str, object]) -> None:
    method = lk.DataLens(
        teachers=20, updates=60, points=24, code=3, hidden=(32,), channels=(8, 4), view="rows",
        **settings,  # type: ignore[arg-type]
    )  # fmt: skip
    learns_both_patterns(method, IMAGES, by=30)


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        assert isinstance(method, lk.DataLens)
        assert method.questions(lk.datasets.schema("fashion-mnist"))
