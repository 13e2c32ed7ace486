"""The few directions of feature space in which pictures lie: where rows are compared and noise is added.

A picture of 784 pixels has 3,969 scattering features; most changes of these belong to no picture. What a
learned row's gradient says in such directions is lost when it is pulled back to pixels, but it would be
clipped and noised with the rest. So regression and gradients keep to a few directions: those in which
the features of the start are largest, and of the start with pictures added that say nothing. The start is
public or noisy already, so the directions cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...features import features_of, pull_back
from ...schema import Schema
from ..measure_once.start_rows import random_images

SAMPLES = 4
"""Random changes that are tried, in parts of the directions wanted."""
LEAST_SAMPLES = 64
CHANGE = 0.3
"""How much of a random picture is added to a row."""
START_WEIGHT = 2.0
"""Factor of the start's own features."""


def feature_basis(
    features: Any, schema: Schema, start: np.ndarray, spread: np.ndarray, size: int, seed: int
) -> np.ndarray:
    """An orthonormal basis (features, size) of the directions in which features are largest.

    Args:
        features: The feature map.
        schema: Declares images.
        start: Learned rows at the start, as the features see them.
        spread: What the features see a change of a slot divided by.
        size: Number of directions.
        seed: Draws the changes.
    """
    rng = np.random.default_rng(seed)
    count = max(LEAST_SAMPLES, SAMPLES * size)
    rows = start[np.resize(rng.permutation(len(start)), count)]
    pictures = random_images(schema, count, rng)
    change = CHANGE * (pictures - pictures.mean(axis=1, keepdims=True)) / spread
    moved, still = (
        features_of(features, x.astype(np.float32)).astype(np.float64)
        for x in (rows + change, start)
    )
    every = np.concatenate([moved, START_WEIGHT * still])
    # The short way to the leading right singular vectors.
    values, vectors = np.linalg.eigh(every @ every.T)
    leading = every.T @ (vectors[:, ::-1][:, :size] / np.sqrt(_floored(values)[:size]))
    basis, _ = np.linalg.qr(leading)
    return basis


def pulled_size(features: Any, support: np.ndarray, basis: np.ndarray, seed: int) -> float:
    """Root mean square of what white noise along the basis becomes in the support's slots."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((len(support), basis.shape[1])) @ basis.T
    pulled = pull_back(features, support.astype(np.float32), noise.astype(np.float32))
    return max(float(np.sqrt((np.asarray(pulled, np.float64) ** 2).mean())), 1e-12)


def _floored(values: np.ndarray) -> np.ndarray:
    """Eigenvalues, largest first, none of them nothing."""
    return np.maximum(values[::-1], max(float(values[-1]), 1e-30) * 1e-12)
