"""How many rows each class has, asked with noise; and what such counts turn sums into."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

COUNTS = "class counts"
"""Name of the question how many rows each class has."""


def class_means(counts: np.ndarray, sums: np.ndarray) -> tuple[Array, Array]:
    """Noisy means of each class, and the classes' noisy weights."""
    weights, size = class_weights(counts)
    # A class whose noisy count is near nothing has no mean worth dividing by.
    rows = np.maximum(weights * size, 1.0).reshape(-1, *[1] * (sums.ndim - 1))
    return jnp.asarray(sums / rows, jnp.float32), jnp.asarray(weights, jnp.float32)


def without_noise(sums: np.ndarray, counts: np.ndarray, noise: float) -> np.ndarray:
    """Noisy class sums, with class means shrunk towards the mean of all classes wherever they differ
    no more than noise makes them differ.

    Otherwise a classifier would learn the noise of features that are the same in all classes.

    Args:
        sums: Noisy sums of each class.
        counts: Noisy number of rows of each class.
        noise: Standard deviation of the noise in the sums.
    """
    weights, size = class_weights(counts)
    rows = np.maximum(weights * size, 1.0).reshape(-1, *[1] * (sums.ndim - 1))
    means, common = sums / rows, sums.sum(axis=0) / rows.sum()
    variance = (noise / rows) ** 2
    # Twice the noise: of a few classes the spread is known but roughly.
    between = np.maximum(((means - common) ** 2 - 2 * variance).mean(axis=0), 0.0)
    trust = between / np.maximum(between + variance, 1e-300)
    return (common + trust * (means - common)) * rows


def class_weights(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Noisy counts to non-negative shares that sum to one, and the noisy number of rows."""
    kept = np.maximum(counts, 0.0)
    total = float(kept.sum())
    if total <= 0:
        return np.full(len(counts), 1.0 / len(counts)), 1.0
    return kept / total, max(1.0, total)
