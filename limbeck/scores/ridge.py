"""Kernel ridge regression on a small support, scored on many test rows.

The kernel is a feature map's (phi(x) . phi(y)), a kernel function's, or plain inner products of
rows that are features already. So test features computed once serve any number of supports:

    phi = Scattering(height=28, width=28)
    seen = feature_rows(phi, test)
    for support in candidates:
        ridge_accuracy(feature_rows(phi, support), targets, seen, test_labels)
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..chunks import in_chunks
from ..errors import LimbeckError, positive
from ..features import features_of, with_ridge

Features = Callable[[Array], Array]
Kernel = Callable[[Array, Array], Array]

CHUNK = 1000
"""Number of rows worked on at once."""


def ridge_accuracy(
    support: np.ndarray,
    targets: np.ndarray,
    test: np.ndarray,
    test_labels: np.ndarray,
    *,
    features: Features | None = None,
    kernel: Kernel | None = None,
    classes: int | None = None,
    ridge: float = 1e-3,
) -> float:
    """Share of test rows whose class is the largest prediction.

    Args:
        support: Rows to learn from; images may come as (rows, height, width, channels).
        targets: Class codes (rows,), or soft targets (rows, classes).
        test: Real rows, in the same form.
        test_labels: Their class codes.
        features: A feature map, applied to both sides.
        kernel: A kernel function of two sets of rows. With neither, rows are features already.
        classes: Number of classes; needed only for codes that leave the last class out.
        ridge: Relative to the mean of the kernel's diagonal, so the kernel's scale does not matter.

    >>> features = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> ridge_accuracy(features, np.array([0, 1]), features[[0, 1, 1]], np.array([0, 1, 0]))
    0.6666666666666666
    """
    predicted = ridge_predictions(
        support, targets, test, features=features, kernel=kernel, classes=classes, ridge=ridge
    )
    return float((predicted.argmax(axis=1) == np.asarray(test_labels)).mean())


def ridge_predictions(
    support: np.ndarray,
    targets: np.ndarray,
    test: np.ndarray,
    *,
    features: Features | None = None,
    kernel: Kernel | None = None,
    classes: int | None = None,
    ridge: float = 1e-3,
) -> np.ndarray:
    """Centred predictions (test rows, classes), in float64. Arguments as in `ridge_accuracy`."""
    positive(ridge=ridge)
    if features is not None and kernel is not None:
        raise LimbeckError("Expected a feature map or a kernel, got both.")
    support, test = flat_rows(support), flat_rows(test)
    wanted = one_hot(targets, classes)
    centred = wanted - 1 / wanted.shape[1]
    if len(centred) != len(support):
        raise LimbeckError(f"Expected one target per row, got {len(centred)} for {len(support)}.")
    if kernel is None:
        return _with_features(support, centred, test, features, ridge)
    together = eqx.filter_jit(kernel)
    inner = np.asarray(together(jnp.asarray(support), jnp.asarray(support)), np.float64)
    weights = _solve(inner, centred, ridge)
    right = jnp.asarray(support)
    return _predicted(
        lambda some: np.asarray(together(jnp.asarray(some), right), np.float64) @ weights, test
    )


def _with_features(
    support: np.ndarray,
    centred: np.ndarray,
    test: np.ndarray,
    features: Features | None,
    ridge: float,
) -> np.ndarray:
    phi = support if features is None else feature_rows(features, support)
    weights = _feature_weights(phi, centred, ridge)
    if features is None:
        parts = [test[at : at + CHUNK] @ weights for at in range(0, len(test), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros((0, centred.shape[1]))
    mapped = eqx.filter_jit(features)
    return _predicted(
        lambda some: np.asarray(mapped(jnp.asarray(some)), np.float64) @ weights, test
    )


def _feature_weights(phi: np.ndarray, centred: np.ndarray, ridge: float) -> np.ndarray:
    phi = phi.astype(np.float64)
    if len(phi) <= phi.shape[1]:
        return phi.T @ _solve(phi @ phi.T, centred, ridge)
    share = phi.shape[1] / len(phi)  # the same weights, from the smaller of the two systems
    return _solve(phi.T @ phi, phi.T @ centred, ridge * share)


def ridge_weights(
    support: np.ndarray,
    targets: np.ndarray,
    *,
    features: Features,
    classes: int | None = None,
    ridge: float = 1e-3,
) -> np.ndarray:
    """The regression as weights on features, (size, classes). Arguments as in `ridge_accuracy`."""
    positive(ridge=ridge)
    wanted = one_hot(targets, classes)
    phi = feature_rows(features, flat_rows(support))
    return _feature_weights(phi, wanted - 1 / wanted.shape[1], ridge)


def feature_rows(features: Features, rows: np.ndarray, *, chunk: int = CHUNK) -> np.ndarray:
    """Features of many rows, computed in chunks of one shape; images may come unflattened."""
    return features_of(features, flat_rows(rows), chunk)


def flat_rows(rows: np.ndarray) -> np.ndarray:
    """Images as rows of slots, channels last; bytes are scaled to [0, 1]."""
    rows = np.asarray(rows)
    if rows.dtype == np.uint8:
        rows = rows / np.float32(255)
    elif rows.dtype != np.float64:
        rows = rows.astype(np.float32)
    return rows.reshape(len(rows), -1)


def one_hot(targets: np.ndarray, classes: int | None = None) -> np.ndarray:
    """Targets (rows, classes) in float64, from class codes or as they are."""
    targets = np.asarray(targets)
    if targets.ndim == 2:
        if classes not in (None, targets.shape[1]):
            raise LimbeckError(f"Expected {classes} targets per row, got {targets.shape[1]}.")
        return targets.astype(np.float64)
    if targets.ndim != 1 or not np.issubdtype(targets.dtype, np.integer):
        raise LimbeckError("Expected class codes (rows,) or soft targets (rows, classes).")
    count = classes or int(targets.max(initial=0)) + 1
    if len(targets) and not 0 <= targets.min() <= targets.max() < count:
        raise LimbeckError(f"Expected class codes from 0 to {count - 1}.")
    return np.eye(count)[targets]


def _solve(inner: np.ndarray, centred: np.ndarray, ridge: float) -> np.ndarray:
    inner = with_ridge((inner + inner.T) / 2, ridge)
    try:
        return cho_solve(cho_factor(inner), centred)
    except LinAlgError:  # a kernel in float32 is positive only to its own precision
        return np.linalg.lstsq(inner, centred)[0]


def _predicted(predictor: Callable[[np.ndarray], np.ndarray], test: np.ndarray) -> np.ndarray:
    return in_chunks(predictor, test, size=max(1, min(CHUNK, len(test))))
