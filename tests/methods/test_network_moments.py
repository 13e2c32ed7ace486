"""Random networks' means and moments: what the noisy sums say, and what can be told from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from helpers import image_schema
from patterns import CLASSES, noisy_pictures

from limbeck.features import RandomConvNets, ridge_weights
from limbeck.methods.measure_once.network_moments import (
    NetworkResiduals,
    denoised_moments,
    network_bound,
    positive_part,
    ridge_errors,
)
from limbeck.methods.measure_once.optimise_set import (
    NETWORK_RIDGE,
    Canvas,
    Objective,
    ObjectiveWeights,
    optimise_set,
)

NETWORKS = RandomConvNets(shape=(8, 8, 1), networks=3, width=4, key=jax.random.key(0))


def _sums(
    rows: np.ndarray, labels: np.ndarray, base: np.ndarray, networks: RandomConvNets = NETWORKS
) -> np.ndarray:
    pairs = NetworkResiduals(networks, jnp.asarray(base))(jnp.asarray(rows), jnp.asarray(labels))
    return np.concatenate([np.asarray(a.T @ b, np.float64).ravel() for a, b in pairs])


def test_exact_sums_give_exact_means_and_moments() -> None:
    rows, labels = noisy_pictures()
    base = np.random.default_rng(1).random((CLASSES, NETWORKS.size)).astype(np.float32) / 5
    counts = np.bincount(labels).astype(float)
    found = denoised_moments(NETWORKS, base, _sums(rows, labels, base), counts, 0.0)
    seen = np.asarray(NETWORKS.separate(jnp.asarray(rows), jnp.arange(3)), np.float64)
    for network, features in enumerate(seen):
        means = [features[labels == c].mean(axis=0) for c in range(CLASSES)]
        assert np.allclose(found.class_means[network], means, atol=1e-5)
        moments = features.T @ features / len(rows)
        assert np.allclose(found.second_moments[network], moments, atol=1e-5)


def test_errors_are_known_without_the_rows() -> None:
    rows, labels = noisy_pictures()
    seen = np.asarray(NETWORKS.separate(jnp.asarray(rows), jnp.arange(1))[0], np.float64)
    few, wanted = seen[:6], np.eye(CLASSES)[labels] - 1 / CLASSES
    weights = np.asarray(
        ridge_weights(jnp.asarray(few), jax.nn.one_hot(labels[:6], CLASSES), 0.1), np.float64
    )
    squared = ((seen @ weights - wanted) ** 2).sum(axis=1).mean()
    means = np.stack([seen[labels == c].mean(axis=0) for c in range(CLASSES)])
    shares = np.bincount(labels) / len(labels)
    told = ridge_errors(
        *(jnp.asarray(a) for a in (weights, means, seen.T @ seen / len(seen), shares))
    )
    constant = (wanted**2).sum(axis=1).mean()
    assert np.isclose(float(told) + constant, squared, atol=1e-5)


def test_a_residual_of_the_expected_norm_fills_the_bound() -> None:
    """Spread evenly over the networks: half of it moments, half of it the class."""
    base = jnp.zeros((CLASSES, NETWORKS.size))
    row = jnp.full((1, 64), 0.3) + 0.1 * jnp.arange(64) / 64
    pairs = NetworkResiduals(NETWORKS, base)(row, jnp.array([1]))
    square = sum(float((a**2).sum() * (b**2).sum()) for a, b in pairs)
    # Features have norm 1, twice the expected residual: moments grow by its square.
    half = network_bound(NETWORKS) ** 2 / 2
    assert np.isclose(square, half * 2**4 + half * 2**2, rtol=1e-4)


def test_denoised_moments_are_nearer_and_never_negative() -> None:
    rng = np.random.default_rng(0)
    size, noise = 40, 0.02
    strong = rng.standard_normal((3, size))
    truth = strong.T @ strong / size + 0.01 * np.eye(size)
    noisy = truth + noise * rng.standard_normal(truth.shape)
    found = positive_part(noisy, noise)
    both = (noisy + noisy.T) / 2
    assert np.linalg.norm(found - truth) < 0.6 * np.linalg.norm(both - truth)
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.isclose(np.trace(found), np.trace(noisy))
    assert np.allclose(positive_part(truth, 0.0), truth)


def test_a_set_learns_to_tell_the_rows_apart_without_seeing_them() -> None:
    rows, labels = noisy_pictures()
    wide = RandomConvNets(shape=(8, 8, 1), networks=2, width=32, key=jax.random.key(1))
    base, counts = np.zeros((CLASSES, wide.size), np.float32), np.bincount(labels).astype(float)
    seen = denoised_moments(wide, base, _sums(rows, labels, base, wide), counts, 0.0)
    objective = Objective(
        features=lambda x: x, teacher=jnp.ones((64, CLASSES)), networks=wide, network_moments=seen
    )
    start = 0.5 + 0.1 * np.random.default_rng(2).standard_normal((CLASSES, 2, 64))

    def errors(pictures: np.ndarray) -> float:
        support = wide.separate(jnp.asarray(pictures.reshape(-1, 64), jnp.float32), jnp.arange(1))
        wanted = jax.nn.one_hot(jnp.repeat(jnp.arange(CLASSES), 2), CLASSES)
        weights = ridge_weights(support[0], wanted, NETWORK_RIDGE)
        real = wide.separate(jnp.asarray(rows), jnp.arange(1))[0]
        return float(((real @ weights - (np.eye(CLASSES)[labels] - 1 / CLASSES)) ** 2).sum() / 60)

    made = optimise_set(
        start,
        objective,
        steps=60,
        learning_rate=0.05,
        weights=ObjectiveWeights(teacher=0.0, class_means=0.0, errors=1.0, nearness=0.0),
        canvas=Canvas(image_schema(8), 0.0),
        seed=0,
        progress=lambda done: None,
    )
    nothing = 1 - 1 / CLASSES  # the error of a predictor that always says zero
    assert nothing - errors(made) > 4 * (nothing - errors(start)) > 0
