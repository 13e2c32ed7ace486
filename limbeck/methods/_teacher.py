"""A private linear teacher: softmax regression on finite features by noisy full-batch descent."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

MOMENTUM = 0.9


def softmax_residual(weights: Array, phi: Array, label: Array) -> Array:
    """The cross-entropy's derivative by the outputs of a linear head, for one row."""
    return jax.nn.softmax(phi @ weights) - jax.nn.one_hot(label, weights.shape[1])


def train_teacher(
    gradient: Callable[[np.ndarray], np.ndarray],
    *,
    size: int,
    classes: int,
    rows: float,
    steps: int,
    learning_rate: float,
) -> np.ndarray:
    """Weights (size, classes) after `steps` noisy gradients, the last iterate; columns sum to zero.

    Args:
        gradient: Weights to the noisy sum of clipped gradients over all rows.
        size: Number of features.
        classes: Number of classes.
        rows: Noisy number of rows, which turns sums into means.
        steps: How often to ask; the schedule does not depend on the answers.
        learning_rate: At the start; it falls to a tenth along a cosine.
    """
    weights, velocity = np.zeros((size, classes)), np.zeros((size, classes))
    for step in range(steps):
        rate = learning_rate * (0.1 + 0.9 * (1 + np.cos(np.pi * step / steps)) / 2)
        velocity = MOMENTUM * velocity + gradient(weights.astype(np.float32)) / rows
        weights = weights - rate * velocity
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
