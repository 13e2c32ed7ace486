"""Gradients of linear heads: against those that are made, and as often as charged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import ask, asked, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import BOUND, FOURIER

import limbeck as lk
from limbeck.privacy import Head
from limbeck.privacy.grid import clip_rows
from limbeck.privacy.questions.head import WholeWeights
from limbeck.privacy.questions.outer import UNIT

HEAD = Head(name="head", bound=BOUND, size=8, outputs=3, count=1)


def test_without_noise_they_are_the_plain_gradients() -> None:
    schema = table_schema()
    data = lk.read(table_rows(40), schema)
    rows = data._encoded()
    phi = FOURIER(jnp.asarray(schema.expand(rows.cells)))

    def loss(weights: jax.Array, features: jax.Array, label: jax.Array) -> jax.Array:
        return -jax.nn.log_softmax(features @ weights)[label]

    for weights in (np.zeros((8, 3)), np.eye(8, 3)):
        found = asked(data, HEAD, FOURIER, {"weights": weights}, epsilon=float("inf"))
        each = jax.vmap(jax.grad(loss), (None, 0, 0))(jnp.asarray(weights), phi, rows.labels)
        flat = clip_rows(np.asarray(each, np.float64).reshape(len(rows), -1), BOUND, 1.0)
        assert np.allclose(found, flat.sum(axis=0).reshape(8, 3), atol=2e-3)


def test_a_head_is_asked_as_often_as_charged_and_with_weights_as_planned() -> None:
    data = lk.read(table_rows(10), table_schema())
    with (
        ask(data, HEAD).steps("head", FOURIER) as step,
        pytest.raises(RuntimeError, match="shape"),
    ):
        step({"weights": np.zeros((8, 2))})
    with ask(data, HEAD).steps("head", FOURIER) as step:
        step({"weights": np.zeros((8, 3))})
        with pytest.raises(RuntimeError, match="already"):
            step({"weights": np.zeros((8, 3))})


def test_steps_at_other_weights_have_other_answers() -> None:
    data = lk.read(table_rows(10), table_schema())
    twice = Head(name="head", bound=BOUND, size=8, outputs=3, count=2)
    with ask(data, twice, multiplier=0.0).steps("head", FOURIER) as step:
        one, two = (step({"weights": w})[0].values for w in (np.zeros((8, 3)), np.eye(8, 3)))
    assert not np.allclose(one, two, atol=0.01)


@given(st.integers(0, 2**32), st.sampled_from([1, 7, 400]), st.sampled_from([1e-30, 1.0, 1e20]))
@settings(max_examples=30, deadline=None)
def test_logits_are_exact_whatever_stands_beside_a_row(seed: int, size: int, scale: float) -> None:
    """In unlimited integers they are the same, in another order of rows and features, too."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(130, size)) * (1e-3 ** rng.random(size))
    rounded = np.rint(UNIT * rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    weights = WholeWeights.of(scale * rng.normal(size=(size, 3)) ** 3)
    exact = (rounded.astype(np.int64).astype(object) @ weights.steps.astype(np.int64)).astype(float)
    assert max(abs(exact).max() * 2, (abs(rounded) @ abs(weights.steps)).max()) < 2.0**53
    found = weights.products(rounded)
    assert np.array_equal(found, exact / weights.unit)
    order, mixed = rng.permutation(size), rng.permutation(130)
    again = WholeWeights(weights.steps[order], weights.unit).products(rounded[mixed][:, order])
    assert np.array_equal(again, found[mixed])


def test_a_teacher_that_diverged_moves_nothing() -> None:
    weights = WholeWeights.of(np.array([[np.inf, 1.0], [0.0, np.nan]]))
    assert np.isnan(weights.products(np.ones((3, 2), np.float32))).all()
    assert not WholeWeights.of(np.zeros((2, 2))).products(np.ones((3, 2), np.float32)).any()
