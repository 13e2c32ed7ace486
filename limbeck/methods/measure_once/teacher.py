"""A private linear teacher: softmax regression on finite features by noisy full-batch descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import softmax

from ...features import Fourier, Scattering
from ...schema import Schema

MOMENTUM = 0.9
STRIDE = 1.2
"""How far the noise of one step may move each class's weights, on average."""


def linear_features(
    schema: Schema, *, size: int, length_scales: Sequence[float], seed: int
) -> Scattering | Fourier:
    """Features of norm 1 for a linear head: scattering for images, random Fourier ones for tables."""
    if schema.image:
        height, width, channels = schema.image.shape
        return Scattering(height=height, width=width, channels=channels, normalisation="group")
    return Fourier(
        slots=schema.slots,
        size=size,
        length_scales=tuple(length_scales),
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
        gradient: Weights to the noisy sum of clipped gradients over all rows.
        size: Number of features.
        classes: Number of classes.
        rows: Noisy number of rows, which turns sums into means.
        noise: Standard deviation of the noise in each gradient's coordinates.
        steps: How often to ask; the schedule does not depend on the answers.
        learning_rate: Where there is little noise; otherwise what `noise` allows. The same at every
            step: what is left to learn after them weighs more than the noise of the last few.
    """
    weights, velocity = np.zeros((size, classes)), np.zeros((size, classes))
    allowed = STRIDE * rows / max(noise * np.sqrt(size), 1e-9)
    learning_rate = min(learning_rate, allowed)
    for _ in range(steps):
        velocity = MOMENTUM * velocity + gradient(weights.astype(np.float32)) / rows
        weights = weights - learning_rate * velocity
    return weights - weights.mean(axis=1, keepdims=True)


def ridge_weights(phi: Array, targets: Array, ridge: float) -> Array:
    """The kernel ridge predictor of a small set as weights on the features, (size, classes).

    The ridge is relative to the kernel's mean diagonal; targets are centred.
    """
    kernel = phi @ phi.T
    count = len(kernel)
    kernel = kernel + ridge * jnp.trace(kernel) / count * jnp.eye(count)
    centred = targets - 1 / targets.shape[1]
    return phi.T @ jax.scipy.linalg.solve(kernel, centred, assume_a="pos")


def soft_labels(said: np.ndarray, labels: np.ndarray, softness: float) -> np.ndarray:
    """Shares of the classes (rows, classes) as a teacher sees them, at the temperature at which rows
    keep 1 - `softness` of their own label on average.

    Labels are known: the teacher may doubt them, not overrule them. An own class that is not ahead
    of all others by one deviation of the logits is put there.

    Args:
        said: The teacher's logits of the rows (rows, classes).
        labels: Their own classes, (rows,).
        softness: Part that goes to other classes; less than their even share.

    >>> soft_labels(np.array([[4.0, 0.0], [-2.0, 2.0]]), np.array([0, 1]), 0.1).round(3)
    array([[0.9, 0.1],
           [0.1, 0.9]], dtype=float32)
    """
    own = np.eye(said.shape[1], dtype=bool)[labels]
    said = said / (said.std() or 1.0)
    best = np.where(own, -np.inf, said).max(axis=1, keepdims=True) + 1
    said = np.where(own, np.maximum(said, best), said)
    low, high = -12.0, 12.0  # of the temperature's inverse, as logarithms
    for _ in range(50):
        middle = (low + high) / 2
        shares = softmax(said * np.exp(middle), axis=1)
        low, high = (middle, high) if shares[own].mean() < 1 - softness else (low, middle)
    return np.asarray(shares, np.float32)
