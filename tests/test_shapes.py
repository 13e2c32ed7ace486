"""Annotations of arrays are held, in tests, wherever shapes are written."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError
from shapes import CHECKED, ROOMS

from limbeck.features import Fourier
from limbeck.methods.mean_embedding.embedding import mean_distance


def test_a_wrong_shape_is_an_error_in_a_room_that_is_checked_whole() -> None:
    phi = Fourier(slots=3, size=4, length_scales=(1.0,), key=jax.random.key(0))
    assert phi(jnp.zeros((2, 3))).shape == (2, 4)
    for wrong in (jnp.zeros(3), jnp.zeros((2, 3), jnp.int32)):
        with pytest.raises(TypeCheckError):
            phi(wrong)


def test_a_wrong_shape_is_an_error_in_a_file_of_methods() -> None:
    good = jnp.zeros((6, 4)), jnp.zeros((3, 4)), jnp.zeros(3)
    assert mean_distance(*good) == 0
    for place, wrong in enumerate([jnp.zeros(6), jnp.zeros((3, 5)), jnp.zeros(4)]):
        with pytest.raises(TypeCheckError):
            mean_distance(*good[:place], wrong, *good[place + 1 :])
    with pytest.raises(TypeCheckError):
        mean_distance(good[0].astype(int), *good[1:])


def test_many_files_of_methods_are_checked() -> None:
    assert len(CHECKED) > len(ROOMS) + 15
