"""Gradients of linear heads: against those that are made, and as often as charged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import ask, asked, table_rows, table_schema
from kinds import BOUND, FOURIER

import limbeck as lk
from limbeck.privacy import Head
from limbeck.privacy.grid import clip_rows

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
