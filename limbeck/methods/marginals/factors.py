"""Soft rows from noisy correlations: where rows are few for the columns, counts of pairs drown in noise.

Behind each column stands a normal variable, cut into the column's cells where their shares say. What
these have in common is a few factors: those directions of the noisy correlation matrix that stand out of
the noise. A soft row is one draw of the factors; given these, columns are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from ...features import Cells

TURNS = 10
"""Number of times that the factors' own share of each variance is put on the diagonal, and found anew."""
MOST_COMMON = 0.95
"""Share of a column's variance that factors may explain, at most."""
MOST_NUMBERS = 1 << 24
"""Number of probabilities in all soft rows, at most, for memory's sake: 64 MB."""
FEWEST_DRAWS = 50
"""Number of soft rows of a class, at least."""


def normal_scores(cells: Sequence[Cells], chances: np.ndarray) -> np.ndarray:
    """Scores of all columns' cells, (classes, cells): the normal variable where a cell's middle rank is,
    with mean 0 and variance 1 in each column and class; 0 for missing values.

    Args:
        cells: Of each column.
        chances: Probability of each cell of a column, (classes, cells).
    """
    scores = np.zeros_like(chances)
    for column, place in zip(cells, places_of(cells), strict=True):
        for label, chance in enumerate(chances[:, place]):
            shares = _known(column, chance)
            raw = ndtri(np.clip(np.cumsum(shares) - shares / 2, 1e-3, 1 - 1e-3))
            raw -= shares @ raw
            spread = np.sqrt(shares @ raw**2)
            if spread > 1e-3:  # else one value is all there is
                scores[label, place.start : place.start + column.values] = raw / spread
    return scores


def common_factors(products: np.ndarray, noise: float) -> np.ndarray:
    """Loadings (columns, factors) of the factors that stand out of the noise.

    Principal factors: eigenvectors of the correlations, with the factors' own variances on the diagonal.
    Of a symmetric matrix of noise no eigenvalue is larger than twice the noise times the root of the size;
    those above are shrunk by as much as noise has added to them.

    Args:
        products: Noisy sums of products of scores, (columns, columns).
        noise: Standard deviation of the noise of each.
    """
    size = len(products)
    rows = max(float(np.trace(products)) / size, noise)
    correlations = (products + products.T) / 2 / rows
    edge = 2 * noise / np.sqrt(2) / rows * np.sqrt(size)
    common = np.zeros(size)
    for _ in range(TURNS):
        np.fill_diagonal(correlations, common)
        values, vectors = np.linalg.eigh(correlations)
        kept = values > max(edge, 1e-9)
        loadings = vectors[:, kept] * (values[kept] ** 2 - edge**2) ** 0.25
        common = np.minimum((loadings**2).sum(axis=1), MOST_COMMON)
    return loadings


def factor_rows(
    cells: Sequence[Cells],
    chances: np.ndarray,
    loadings: np.ndarray,
    *,
    soft_rows: int,
    seed: int,
) -> np.ndarray:
    """Probabilities of all columns' cells, (classes, soft rows, cells), given draws of the factors.

    Args:
        cells: Of each column.
        chances: Probability of each cell of a column, (classes, cells).
        loadings: Of each column's scores, (columns, factors).
        soft_rows: Number over all classes; wide tables get fewer.
        seed: Draws the factors.
    """
    classes, size = chances.shape
    each = min(soft_rows // classes, MOST_NUMBERS // (classes * size))
    half = np.random.default_rng(seed).normal(
        size=(classes, (max(each, FEWEST_DRAWS) + 1) // 2, loadings.shape[1])
    )
    factors = np.concatenate([half, -half], axis=1)  # so that means are kept
    soft = np.empty((classes, factors.shape[1], size), np.float32)
    for i, (column, place) in enumerate(zip(cells, places_of(cells), strict=True)):
        for label, chance in enumerate(chances[:, place]):
            shares = _known(column, chance)
            bounds = ndtri(np.clip(np.append(0.0, np.cumsum(shares)), 0.0, 1.0))
            bounds[0], bounds[-1] = -np.inf, np.inf
            own = _behind(loadings[i], bounds)
            spread = np.sqrt(1 - own @ own)
            below = ndtr((bounds - (factors[label] @ own)[:, None]) / spread)
            values = slice(place.start, place.start + column.values)
            soft[label, :, values] = np.diff(below, axis=1) * chance[: column.values].sum()
            soft[label, :, values.stop : place.stop] = chance[column.values :]
    return soft


def _behind(loadings: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Loadings of the normal variable behind a column, of which its scores have only a part."""
    density = np.exp(-(np.where(np.isfinite(bounds), bounds, 40.0) ** 2) / 2) / np.sqrt(2 * np.pi)
    shares, first = (
        np.diff(ndtr(bounds)),
        -np.diff(density),
    )  # and the mean in each cell, times that
    correlation = np.sqrt(sum(m * m / s for m, s in zip(first, shares, strict=True) if s > 1e-12))
    behind = loadings / max(correlation, 0.3)
    return behind * min(1.0, np.sqrt(MOST_COMMON / max(behind @ behind, 1e-12)))


def _known(column: Cells, chance: np.ndarray) -> np.ndarray:
    """Shares of the values among those that are not missing."""
    values = np.maximum(chance[: column.values], 0.0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1 / len(values))


def places_of(cells: Sequence[Cells]) -> list[slice]:
    """Where each column's cells stand among those of all columns."""
    ends = np.cumsum([0] + [c.count for c in cells])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
