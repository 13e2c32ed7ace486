"""Draws compiled for few lengths are JAX's own, number by number."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from limbeck.draws import LONGEST, normal, uniform
from limbeck.nets.vision import _started

KEY = jax.random.key(7)


@pytest.mark.parametrize("shape", [(), (1,), (64,), (5, 13), (0, 3)], ids=str)
def test_draws_are_those_of_jax(shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(normal(KEY, shape), jax.random.normal(KEY, shape))
    np.testing.assert_array_equal(jax.jit(lambda k: normal(k, shape))(KEY), normal(KEY, shape))
    wanted = jax.random.uniform(KEY, shape, minval=-0.3, maxval=0.3)
    np.testing.assert_array_equal(uniform(KEY, shape, -0.3, 0.3), wanted)


def test_very_many_are_drawn_as_they_are() -> None:
    few, many = uniform(KEY, (100,)), uniform(KEY, (LONGEST + 1,))
    np.testing.assert_array_equal(few, many[:100])


@pytest.mark.parametrize(
    ("kind", "sizes", "settings"),
    [
        (eqx.nn.Conv2d, (2, 3, 5), {"padding": 2}),
        (eqx.nn.Conv2d, (2, 3, 5), {"use_bias": False}),
        (eqx.nn.Linear, (7, 4), {}),
    ],
    ids=["with bias", "without", "dense"],
)
def test_layers_start_as_equinox_starts_them(
    kind: Any, sizes: tuple[int, ...], settings: dict[str, Any]
) -> None:
    made = _started(kind, *sizes, key=KEY, **settings)
    assert bool(eqx.tree_equal(made, kind(*sizes, key=KEY, **settings)))
