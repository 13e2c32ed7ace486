"""Views: networks that look at changed pictures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import Views
from limbeck.features.views import _between


@pytest.fixture(scope="module", params=[1, 3])
def views(request: pytest.FixtureRequest) -> Views:
    return Views(shape=(8, 8, request.param), views=3, width=4, key=jax.random.key(0))


def rows_for(views: Views, count: int = 4) -> jax.Array:
    return jax.random.uniform(jax.random.key(1), (count, int(np.prod(views.shape))))


def test_all_views_together_have_norm_one(views: Views) -> None:
    phi = views(rows_for(views))
    assert phi.shape == (4, views.size)
    assert np.asarray((phi**2).sum(axis=1)) == pytest.approx(1.0, abs=1e-5)


def test_views_differ_and_are_each_the_same_for_all_rows(views: Views) -> None:
    rows = rows_for(views)
    seen = [np.asarray(views.look(rows, number)) for number in range(views.views)]
    assert np.abs(seen[0] - seen[1]).max() > 0.01
    alone = np.asarray(views.look(rows[2:3], 1))
    assert alone == pytest.approx(seen[1][2:3], abs=1e-5)


def test_a_number_may_be_drawn_in_a_compiled_step(views: Views) -> None:
    rows = rows_for(views)
    drawn = jax.jit(lambda number: views.look(rows, number))(jnp.int32(2))
    assert np.asarray(drawn) == pytest.approx(np.asarray(views.look(rows, 2)), abs=1e-5)


def test_pixels_between_others_are_mixed_by_distance() -> None:
    down, right = np.mgrid[:3, :4].astype(float)
    picture = np.arange(12.0)
    places, weights = _between(down, right, np.ones((3, 4)))
    assert ((picture[places] * weights).sum(axis=1) == picture).all()
    places, weights = _between(down + 0.25, right, np.ones((3, 4)))
    moved = (picture[places] * weights).sum(axis=1).reshape(3, 4)
    assert moved[:2] == pytest.approx(picture.reshape(3, 4)[:2] + 1.0)
    assert moved[2] == pytest.approx(0.75 * picture[8:])  # beyond the edge there is nothing
