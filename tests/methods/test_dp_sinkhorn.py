"""DP-Sinkhorn: transport plans, gradients of a batch as a whole at twice their clip, and a generator that follows them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.audits.small import SMALL
from limbeck.methods.adversarial.sinkhorn import SinkhornGradient, low_frequencies, transport
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "dp-sinkhorn.toml"
TINY = SMALL["dp-sinkhorn"]


def test_a_plan_carries_all_and_does_not_go_the_long_way() -> None:
    rng = np.random.default_rng(0)
    cost = jnp.asarray(rng.random((6, 5)), jnp.float32)
    weights = jnp.asarray([0.1, 0.4, 0.0, 0.3, 0.2])
    plan = transport(cost, weights, 0.03, 400)
    assert np.allclose(plan.sum(0), weights, atol=2e-3)
    assert np.allclose(plan.sum(1), 1 / 6, atol=2e-3)
    assert float((plan * cost).sum()) < float((weights * cost.mean(0)).sum())
    # Of two rows each goes to its own neighbour.
    near = transport(jnp.asarray([[0.0, 9.0], [9.0, 0.0]]), jnp.asarray([0.5, 0.5]), 0.1, 50)
    assert np.allclose(near, np.eye(2) / 2, atol=1e-3)


def source(**changes: object) -> SinkhornGradient:
    plain = {
        "points": 4, "slots": 9, "entropy": 0.05, "rounds": 60, "class_cost": 50.0, "absolute": 0.0,
        "basis": None,
    }  # fmt: skip
    return SinkhornGradient(**plain | changes)  # type: ignore[arg-type]


def test_rows_go_to_their_own_class_and_padding_is_nothing() -> None:
    """Descent along the gradient ends at the batch; rows of negative label draw nobody."""
    ours = source()
    labels = np.array([0, 0, 1, 1])
    batch = np.concatenate([np.tile([[0.1], [0.9]], (2, 9)), np.full((3, 9), 0.5)])
    known = np.array([0, 1, 0, 1, -1, -1, -1])
    rows = np.random.default_rng(1).random((4, 9))
    for _ in range(200):
        told = ours.whole(ours.flat(rows, rows, labels), batch.astype(np.float32), known)
        rows = rows - 0.3 * ours.in_slots(told)
    assert np.allclose(rows[:2], 0.1, atol=0.05) and np.allclose(rows[2:], 0.9, atol=0.05)


@pytest.mark.parametrize("absolute", [0.0, 0.7])
def test_the_gradient_is_that_of_the_costs_at_the_plan(absolute: float) -> None:
    ours = source(absolute=absolute, class_cost=0.0)
    rng = np.random.default_rng(2)
    rows, others, batch = (rng.random((n, 9)).astype(np.float32) for n in (4, 4, 6))
    labels, known = np.zeros(4), np.zeros(6, np.int64)

    def costs(x: jax.Array, to: np.ndarray) -> jax.Array:
        apart = x[:, None] - to
        return (apart**2).sum(2) + absolute * jnp.abs(apart).sum(2)

    def loss(x: jax.Array) -> jax.Array:
        total = jnp.float32(0.0)
        for factor, to in ((2, batch), (-1, others)):
            even = jnp.full(len(to), 1 / len(to))
            plan = jax.lax.stop_gradient(transport(costs(x, to), even, 0.05, 60))
            total += factor * (plan * costs(x, to)).sum()
        return total

    told = ours.whole(ours.flat(rows, others, labels), batch, known)
    assert np.allclose(ours.in_slots(told), jax.grad(loss)(jnp.asarray(rows)), atol=1e-4)


def test_low_frequencies_are_orthonormal_and_tell_smooth_pictures_whole() -> None:
    basis = low_frequencies((7, 5, 2), 3)
    assert basis.shape == (70, 18)
    assert np.allclose(basis.T @ basis, np.eye(18), atol=1e-6)
    smooth = np.broadcast_to(np.array([0.2, 0.7]), (7, 5, 2)).reshape(70)
    assert np.allclose(basis @ (basis.T @ smooth), smooth, atol=1e-6)
    whole = low_frequencies((7, 5, 2), 99)
    assert whole.shape == (70, 70)


def test_a_step_is_charged_twice_its_clip_and_every_step_is() -> None:
    """A clipped function of a batch is no sum of clipped terms: a row may turn it round."""
    schema = replace(image_schema(), rows=60)
    charge = lk.plan(lk.DPSinkhorn(**TINY, clip=0.3), schema, lk.Budget(1.0)).charges[-1]
    assert charge.sensitivity == pytest.approx(0.6)
    assert charge.steps == 3 and charge.sampling == pytest.approx(20 / 60)
    assert charge.coordinates == 6 * 64


def test_an_empty_batch_is_a_step_like_any_other(tmp_path: Path) -> None:
    """The published program leaves empty batches out, so the number of its steps tells of them."""
    schema = replace(image_schema(), rows=5000)
    one = np.zeros((1, 8, 8, 1), np.uint8), np.zeros(1, np.int64)
    release = lk.distill(
        lk.read(one, schema), lk.DPSinkhorn(**TINY), lk.Budget(1.0, 1e-5), seed=0, rows=30,
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"), check=False,
    )  # fmt: skip
    assert release.certificate["charges"][-1]["steps"] == TINY["steps"]
    assert np.isfinite(release.data.images.astype(float)).all()


def test_the_generator_learns_what_classes_look_like() -> None:
    method = lk.DPSinkhorn(
        steps=150, batch=60, points=12, detail=5, code=3, hidden=(32,), learning_rate=0.01, average=0.0,
    )  # fmt: skip
    learns_both_patterns(method, image_schema(), by=60)


@pytest.mark.parametrize(
    ("settings", "schema", "words"),
    [
        ({"points": 0}, image_schema(), "points > 0"),
        ({"fresh": 1.5}, image_schema(), "fresh"),
        ({"average": 1.0}, image_schema(), "average"),
        ({}, replace(image_schema(), rows=None), "approximate number of rows"),
        ({"batch": 500}, table_schema(), "more than the 200 rows"),
    ],
    ids=["points", "fresh", "average", "rows", "batch"],
)
def test_what_is_refused(settings: dict[str, object], schema: lk.Schema, words: str) -> None:
    with pytest.raises(lk.LimbeckError, match=words):
        lk.plan(lk.DPSinkhorn(**settings), schema, lk.Budget(1.0))  # type: ignore[arg-type]


def test_replacing_is_refused() -> None:
    with pytest.raises(lk.LimbeckError, match="add/remove"):
        lk.plan(lk.DPSinkhorn(**TINY), image_schema(), lk.Budget(1.0, 1e-5, "replace-one"))


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        assert isinstance(method, lk.DPSinkhorn) and method.questions(lk.datasets.schema("mnist"))
    assert Recipe.load(f"{RECIPE}#quick").method == lk.DPSinkhorn()
