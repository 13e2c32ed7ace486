"""Frechet distance between two sets of feature vectors, each taken for a Gaussian."""

from __future__ import annotations

import numpy as np

from ..errors import LimbeckError
from .ridge import Features, feature_rows, flat_rows


def frechet_distance(
    released: np.ndarray, real: np.ndarray, *, features: Features | None = None
) -> float:
    """Squared distance of the means, plus how far the covariances are apart.

    Both sides go the same road: one scaling, one feature map. A distance is only comparable with
    others of the same map and the same numbers of rows, which bias it.

    Args:
        released: Rows; images may come as (rows, height, width, channels), bytes or in [0, 1].
        real: Rows of the same form.
        features: A feature map; without one, rows are features already.

    >>> a = np.array([[0.0], [2.0]])
    >>> frechet_distance(a, a + 3)
    9.0
    """
    if min(len(released), len(real)) < 2:
        raise LimbeckError("Expected at least two rows on either side.")
    sides = [flat_rows(rows) for rows in (released, real)]
    if features is not None:
        sides = [feature_rows(features, rows) for rows in sides]
    means = [rows.mean(axis=0, dtype=np.float64) for rows in sides]
    a, b = ((rows - mean) / np.sqrt(len(rows) - 1) for rows, mean in zip(sides, means, strict=True))
    spread = (a**2).sum() + (b**2).sum() - 2 * _overlap(a, b)
    return float(((means[0] - means[1]) ** 2).sum() + max(spread, 0.0))


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """tr((A'A B'B)^(1/2)): the sum of the singular values of AB', found on the smaller side."""
    if len(b) < len(a):
        a, b = b, a
    if len(a) <= a.shape[1]:
        product = a @ b.T
        squares = np.linalg.eigvalsh(product @ product.T)
    else:
        values, vectors = np.linalg.eigh(a.T @ a)
        root = vectors * np.sqrt(np.maximum(values, 0))
        product = b @ root
        squares = np.linalg.eigvalsh(product.T @ product)
    return float(np.sqrt(np.maximum(squares, 0)).sum())
