"""How likely released points are under the mixture the real ones were drawn from."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ..errors import LimbeckError, positive


def mixture_nll(
    points: np.ndarray,
    means: np.ndarray,
    *,
    deviation: float,
    weights: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    mean_labels: np.ndarray | None = None,
) -> float:
    """Sum over points of -log p, under round Gaussians of one deviation.

    Args:
        points: (rows, dimensions).
        means: (components, dimensions).
        deviation: Of every component, along every axis.
        weights: Of the components; even ones if not given.
        labels: Classes of the points. With them, p is the density of point and class together.
        mean_labels: Classes of the components.

    >>> round(mixture_nll(np.zeros((2, 1)), np.zeros((1, 1)), deviation=1.0), 4)
    1.8379
    """
    positive(deviation=deviation)
    points, means = np.asarray(points, np.float64), np.asarray(means, np.float64)
    if (labels is None) != (mean_labels is None):
        raise LimbeckError("Expected the classes of both points and components, or of neither.")
    shares = np.full(len(means), 1 / len(means)) if weights is None else np.asarray(weights)
    squares = ((points[:, None] - means) ** 2).sum(axis=2)
    terms = np.log(shares / shares.sum()) - squares / (2 * deviation**2)
    if labels is not None:
        terms = np.where(np.asarray(labels)[:, None] == np.asarray(mean_labels), terms, -np.inf)
    scale = points.shape[1] * np.log(np.sqrt(2 * np.pi) * deviation)
    return float((scale - logsumexp(terms, axis=1)).sum())
