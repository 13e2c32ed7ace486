"""Small pictures whose classes differ, and what a generator of them should have learned."""

from __future__ import annotations

import math

import numpy as np

import limbeck as lk
from limbeck.methods import AbstractMethod

CLASSES = 3
"""Number of classes of `noisy_pictures`."""


def noisy_pictures(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Slots and labels of 8 x 8 pictures: each class has one of its own, under noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % CLASSES
    pictures = rng.random((CLASSES, 64))[labels] + 0.3 * rng.standard_normal((count, 64))
    return np.clip(pictures, 0, 1).astype(np.float32), labels


def two_patterns(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes 0 and 1: bright on the left, bright below; class 2 is absent."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    images = rng.integers(0, 60, (count, 8, 8, 1))
    images[labels == 0, :, :4] += 180
    images[labels == 1, 4:] += 180
    return images.astype(np.uint8), labels


def learns_both_patterns(method: AbstractMethod, schema: lk.Schema, by: float) -> None:
    """Without noise a method's images of class 0 are brighter on the left, those of class 1 below, by so much."""
    data = lk.read(two_patterns(100), schema)
    release = lk.distill(data, method, lk.Budget(math.inf), seed=0, non_private=True)
    drawn = release.sample(200, seed=0)
    seen = drawn.images.astype(float).reshape(-1, 8, 8)
    left, below = (seen[drawn.labels == c].mean(axis=0) for c in (0, 1))
    assert left[:4, :4].mean() > left[:4, 4:].mean() + by
    assert below[4:, 4:].mean() > below[:4, 4:].mean() + by
