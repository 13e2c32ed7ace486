"""A private linear teacher: softmax regression on finite features by noisy full-batch descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
from scipy.special import softmax

from ...features import Fourier, Scattering
from ...schema import Schema

MOMENTUM = 0.9
NOISE_STRIDE = 1.2
"""Distance that the noise of one step may move each class's weights, on average: it limits the
learning rate."""


def linear_features(
    schema: Schema, *, size: int, length_scales: Sequence[float], seed: int
) -> Scattering | Fourier:
    """Features of norm 1 for a linear head: scattering for images, random Fourier ones for tables, of all that
    a target is predicted from."""
    if schema.image:
        height, width, channels = schema.image.shape
        return Scattering(height=height, width=width, channels=channels, normalisation="group")
    seen = None
    if schema.target:  # else the teacher would read off the bin what it is to learn
        seen = np.ones(schema.slots)
        seen[[place.start for column, place in schema.blocks() if column is schema.target]] = 0.0
    return Fourier(
        slots=schema.slots,
        size=size,
        length_scales=tuple(length_scales),
        slot_weights=None if seen is None else tuple(seen),
        key=jax.random.fold_in(jax.random.key(seed), 1),
    )


def train_teacher(
    gradient: Callable[[np.ndarray], np.ndarray],
    *,
    size: int,
    classes: int,
    rows: float,
    noise: float,
    steps: int,
    learning_rate: float,
) -> np.ndarray:
    """Weights (size, classes) after `steps` noisy gradients, the last iterate; columns sum to zero.

    Args:
        gradient: Called with weights; gives the noisy sum of the rows' clipped gradients.
        size: Number of features.
        classes: Number of classes.
        rows: Noisy number of rows, which turns sums into means.
        noise: Standard deviation of the noise in each coordinate of a gradient.
        steps: Number of gradients asked for, whatever the answers are.
        learning_rate: Learning rate where there is little noise; otherwise as large as `noise`
            allows. It does not fall: the noise of the last steps matters less than what a smaller
            rate would leave unlearned.
    """
    weights, velocity = np.zeros((size, classes)), np.zeros((size, classes))
    allowed = NOISE_STRIDE * rows / max(noise * np.sqrt(size), 1e-9)
    learning_rate = min(learning_rate, allowed)
    for _ in range(steps):
        velocity = MOMENTUM * velocity + gradient(weights.astype(np.float32)) / rows
        weights = weights - learning_rate * velocity
    return weights - weights.mean(axis=1, keepdims=True)


def soft_labels(logits: np.ndarray, labels: np.ndarray, softness: float) -> np.ndarray:
    """Probabilities of the classes (rows, classes) by the teacher, at the temperature at which a row's
    own class gets 1 - `softness` on average.

    The own class is always the likeliest: where its logit does not exceed all others by one standard
    deviation of the logits, it is raised until it does.

    Args:
        logits: The teacher's logits of the rows (rows, classes).
        labels: Each row's own class, (rows,).
        softness: Probability of all other classes together, on average; less than at equal logits.

    >>> soft_labels(np.array([[4.0, 0.0], [-2.0, 2.0]]), np.array([0, 1]), 0.1).round(3)
    array([[0.9, 0.1],
           [0.1, 0.9]], dtype=float32)
    """
    own = np.eye(logits.shape[1], dtype=bool)[labels]
    logits = logits / (logits.std() or 1.0)
    best = np.where(own, -np.inf, logits).max(axis=1, keepdims=True) + 1
    logits = np.where(own, np.maximum(logits, best), logits)
    low, high = -12.0, 12.0  # bounds of the logarithm of the temperature's inverse
    for _ in range(50):
        middle = (low + high) / 2
        shares = softmax(logits * np.exp(middle), axis=1)
        low, high = (middle, high) if shares[own].mean() < 1 - softness else (low, middle)
    return np.asarray(shares, np.float32)
