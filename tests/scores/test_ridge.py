"""Kernel ridge regression: against a plain solution, with maps, kernels and soft targets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.features import FullyConnectedNTK, Scattering
from limbeck.scores import feature_rows, ridge_accuracy, ridge_predictions

RNG = np.random.default_rng(0)
SUPPORT, TEST = RNG.random((12, 5)).astype(np.float32), RNG.random((2300, 5)).astype(np.float32)
CODES = np.arange(12) % 3
LABELS = (TEST[:, 0] * 3).astype(int)


def test_predictions_are_the_textbook_ones() -> None:
    x, t = SUPPORT.astype(np.float64), TEST.astype(np.float64)
    inner = x @ x.T
    y = np.eye(3)[CODES] - 1 / 3
    wanted = t @ x.T @ np.linalg.inv(inner + 0.01 * np.trace(inner) / 12 * np.eye(12)) @ y
    np.testing.assert_allclose(
        ridge_predictions(SUPPORT, CODES, TEST, ridge=0.01), wanted, atol=1e-9
    )


def test_a_map_its_features_and_its_kernel_agree() -> None:
    def features(rows: jax.Array) -> jax.Array:
        return jnp.concatenate([rows, rows**2], axis=1)

    by_map = ridge_predictions(SUPPORT, CODES, TEST, features=features)
    ready = [feature_rows(features, rows) for rows in (SUPPORT, TEST)]
    by_rows = ridge_predictions(ready[0], CODES, ready[1])
    by_kernel = ridge_predictions(
        SUPPORT, CODES, TEST, kernel=lambda a, b: features(a) @ features(b).T
    )
    np.testing.assert_allclose(by_rows, by_map, atol=1e-5)
    np.testing.assert_allclose(by_kernel, by_map, atol=1e-3)


def test_codes_and_their_one_hot_targets_agree_and_scale_does_not_matter() -> None:
    kernel = FullyConnectedNTK(depth=1)
    hard = ridge_accuracy(SUPPORT, CODES, TEST, LABELS, kernel=kernel)
    soft = ridge_accuracy(SUPPORT, np.eye(3)[CODES], TEST, LABELS, kernel=kernel)
    large = ridge_accuracy(SUPPORT, CODES, TEST, LABELS, kernel=lambda a, b: 8 * kernel(a, b))
    assert hard == soft == large


def test_images_may_be_bytes_and_are_told_apart() -> None:
    labels = np.arange(40) % 2
    images = RNG.integers(0, 100, (40, 8, 8, 1)).astype(np.uint8)
    images[labels == 1, :4] += 100
    phi = Scattering(height=8, width=8)
    assert ridge_accuracy(images[:10], labels[:10], images, labels, features=phi) > 0.9


def test_mistakes_are_named() -> None:
    with pytest.raises(lk.LimbeckError, match="got both"):
        ridge_predictions(SUPPORT, CODES, TEST, features=lambda x: x, kernel=lambda a, b: a @ b.T)
    with pytest.raises(lk.LimbeckError, match="one target per row"):
        ridge_predictions(SUPPORT, CODES[:5], TEST)
    with pytest.raises(lk.LimbeckError, match="0 to 1"):
        ridge_predictions(SUPPORT, CODES, TEST, classes=2)
    with pytest.raises(lk.LimbeckError, match="ridge > 0"):
        ridge_predictions(SUPPORT, CODES, TEST, ridge=0)
