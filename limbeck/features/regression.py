"""Kernel ridge regression on a small support, in the convention of KIP.

Targets are one-hot labels minus 1/classes; the ridge is a multiple of the mean of the kernel's
diagonal; a row's loss is half the mean square over classes (the published code's scaling, on which
its clipping norms rest).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Kernel = Callable[[Array, Array], Array]


def centred(labels: Any, classes: int) -> Any:
    """Labels as targets: one-hot minus 1/classes; labels that are no class get -1/classes."""
    return jax.nn.one_hot(labels, classes) - 1.0 / classes


def with_ridge(gram: Any, ridge: float) -> Any:
    """The kernel matrix, of JAX or of NumPy, plus `ridge` times the mean of its diagonal."""
    size, eye = len(gram), np.eye if isinstance(gram, np.ndarray) else jnp.eye
    return gram + ridge * gram.trace() / size * eye(size, dtype=gram.dtype)


def dual_weights(gram: Array, targets: Array, ridge: float) -> Array:
    """Weights (rows, classes) of kernel functions at the support, whose sum predicts the targets."""
    return jax.scipy.linalg.solve(with_ridge(gram, ridge), targets, assume_a="pos")


def ridge_weights(phi: Array, labels: Array, ridge: float) -> Array:
    """The predictor that a small set gives, as weights on its features, (size, classes).

    Args:
        phi: Features of the set, (rows, size).
        labels: One-hot labels, or shares of the classes, (rows, classes); they are centred here.
        ridge: In units of the kernel's mean diagonal.
    """
    dual = dual_weights(phi @ phi.T, labels - 1 / labels.shape[1], ridge)
    return phi.T @ dual


def row_loss(
    kernel: Kernel, support: Array, targets: Array, row: Array, wanted: Array, ridge: float
) -> Array:
    """One row's loss, as autodiff may take it: the slow and plain statement of the problem."""
    weights = jnp.linalg.solve(with_ridge(kernel(support, support), ridge), targets)
    error = wanted - (kernel(row[None], support) @ weights)[0]
    return 0.5 * (error**2).mean()
