"""Class means in views: what the noisy sums say, and sets that come near to them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema
from patterns import CLASSES, noisy_pictures

from limbeck.features import Views
from limbeck.methods.measure_once.optimise_set import (
    Canvas,
    Objective,
    ObjectiveWeights,
    nearest_start,
    optimise_set,
)
from limbeck.methods.measure_once.prototypes import Prototypes
from limbeck.methods.measure_once.view_means import (
    ViewResiduals,
    denoised_view_means,
    prototype_features,
    residual_bound,
)

VIEWS = Views(shape=(8, 8, 1), views=3, width=4, key=jax.random.key(0))


def _means(views: Views) -> np.ndarray:
    rows, labels = noisy_pictures()
    each = [np.asarray(views.look(jnp.asarray(rows), n)) for n in range(views.views)]
    return np.stack([[seen[labels == c].mean(axis=0) for c in range(CLASSES)] for seen in each])


def test_exact_sums_give_exact_means() -> None:
    rows, labels = noisy_pictures()
    base = np.random.default_rng(1).random((CLASSES, VIEWS.size)).astype(np.float32) / 5
    residuals = ViewResiduals(VIEWS, jnp.asarray(base))
    phi, groups = residuals(jnp.asarray(rows), jnp.asarray(labels))
    assert np.array_equal(groups, labels) and phi.shape[1] == residuals.size
    sums = np.stack([np.asarray(phi, np.float64)[labels == c].sum(axis=0) for c in range(CLASSES)])
    found = denoised_view_means(VIEWS, base, sums, np.bincount(labels).astype(float))
    assert np.allclose(found, _means(VIEWS), atol=1e-5)


def test_prototypes_are_subtracted_by_the_size_of_their_clusters() -> None:
    rng = np.random.default_rng(0)
    prototypes = Prototypes(rng.random((3, 2, 64)), np.array([[1.0, 3]] * 3), np.zeros((3, 2, 16)))
    seen = np.asarray(VIEWS(jnp.asarray(prototypes.rows.reshape(6, 64), jnp.float32)))
    wanted = (seen.reshape(3, 2, -1) * np.array([0.25, 0.75])[:, None]).sum(axis=1)
    assert np.allclose(prototype_features(VIEWS, prototypes), wanted, atol=1e-5)


def test_coloured_pictures_may_differ_more() -> None:
    assert residual_bound((8, 8, 1)) < residual_bound((8, 8, 3)) < 1


@pytest.mark.parametrize("tiles", [1, 2])
def test_a_set_comes_near_to_what_was_measured(tiles: int) -> None:
    wide = Views(shape=(8, 8, 1), views=2, width=16, key=jax.random.key(1))
    means = jnp.asarray(_means(wide), jnp.float32)
    objective = Objective(
        features=lambda x: x, teacher=jnp.ones((64, CLASSES)), views=wide, view_means=means
    )
    start = 0.5 + 0.1 * np.random.default_rng(2).standard_normal((CLASSES, 2, 64))
    canvas = Canvas(image_schema(8), 0.5, tiles)
    made = optimise_set(
        start,
        objective,
        steps=60,
        learning_rate=0.05,
        weights=ObjectiveWeights(teacher=0.0, class_means=1.0, errors=0.0, nearness=0.0),
        canvas=canvas,
        seed=0,
        progress=lambda done: None,
    )

    def apart(rows: np.ndarray) -> float:
        pictures = canvas.pictures(jnp.asarray(rows, jnp.float32)).reshape(-1, 64)
        own = [
            wide.look(pictures, n).reshape(CLASSES, -1, means.shape[2]).mean(axis=1) for n in (0, 1)
        ]
        return float(((jnp.stack(own) - means) ** 2).sum())

    assert made.shape == start.shape and made.min() >= 0 and made.max() <= 1
    assert apart(made) < 0.4 * apart(start)
    shown = [np.asarray(canvas.pictures(jnp.asarray(s, jnp.float32))) for s in (start, made)]
    sets = [s.reshape(CLASSES, -1, 64) for s in shown]
    assert nearest_start(sets, objective) is sets[1]
