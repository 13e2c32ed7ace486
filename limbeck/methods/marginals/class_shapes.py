"""How columns differ between classes, from a few noisy means: where rows are few for the columns, noise would
hide a class's own counts of cells.

A column's shape over all classes is known from many rows. A class's own is that shape, tilted so that the means
of a few scores are the class's: of a number where its ranks lie and how far they spread, of a category how often
each value comes. The means are drawn to those of all rows as far as noise could have made their differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from ...features import Cells, most_cells
from ...privacy import Measurement
from ...schema import Column
from .factors import places_of
from .noisy_cells import to_simplex

PLACE_AND_SPREAD = 2
"""Number of scores of a number: where it lies, and how far from the middle."""
VALUE, GAP = PLACE_AND_SPREAD, PLACE_AND_SPREAD + 1
"""Kinds of the other scores: whether a category has a value, and whether a cell is missing."""
ROOM = 1.1
"""Norm to which a row's scores are clipped, in units of the root of their expected square."""
LEAST_SHARE = 1e-3
"""Share of a column's rows that its cells get, all together, beside what the noisy counts say."""
NEWTON_STEPS, LONGEST_STEP = 30, 0.5
"""Number of steps that find how strongly a shape is tilted, and their length at most."""
MOST_TILT = 6.0
"""Strength of a tilt, at most, in nats for a score of one."""
STEADYING = 0.05
"""Added to the variance of scores, so that steps stay short where a shape has become a point."""


def most_scores(column: Column, grid: int) -> int:
    """Number of scores of a column, whatever its bounds or values are estimated to be."""
    if Cells(column=column, grid=grid).ordered:
        return PLACE_AND_SPREAD + bool(getattr(column, "missing", False))
    return most_cells(column, grid)


def scores_bound(columns: Sequence[Cells]) -> float:
    """Norm to which all scores of a row are clipped, from the schema alone."""
    squares = sum((PLACE_AND_SPREAD if c.ordered else 1) + c.missing / 4 for c in columns)
    return ROOM * math.sqrt(squares)


def pooled_shares(columns: Sequence[Cells], singles: np.ndarray) -> np.ndarray:
    """Probability of each cell of a column over all classes, (cells,), from noisy counts; none is 0."""
    shares = np.empty(singles.size)
    for place in places_of(columns):
        counts = singles.ravel()[place]
        known = to_simplex(counts, max(float(counts.sum()), 1.0))
        even = np.full(len(known), LEAST_SHARE / len(known))
        shares[place] = known / known.sum() * (1 - LEAST_SHARE) + even
    return shares


def pooled_scores(columns: Sequence[Cells], shares: np.ndarray) -> list[np.ndarray]:
    """Scores of each column's cells, (cells, scores), with mean 0 over all classes."""
    return [
        _scores(column, shares[place])
        for column, place in zip(columns, places_of(columns), strict=True)
    ]


def _scores(column: Cells, shares: np.ndarray) -> np.ndarray:
    """Of a number two polynomials of its normal rank, of variance 1 each; of a category which value it has."""
    if not column.ordered:
        return np.eye(column.count) - shares
    known = shares[: column.values] / shares[: column.values].sum()
    scores = np.zeros((column.count, PLACE_AND_SPREAD + column.missing))
    rank = ndtri(np.clip(np.cumsum(known) - known / 2, 1e-3, 1 - 1e-3))
    before = [np.ones(column.values)]
    for power in range(1, PLACE_AND_SPREAD + 1):
        score = rank**power
        for other in before:
            score = score - (known @ (score * other)) * other
        spread = math.sqrt(known @ score**2)
        if spread > 1e-3:  # else there are no more shapes than values
            before.append(score / spread)
            scores[: column.values, power - 1] = score / spread
    if column.missing:
        scores[:, -1] = np.arange(column.count) == column.values
        scores[:, -1] -= shares[column.values]
    return scores


def class_chances(
    columns: Sequence[Cells], singles: np.ndarray, sums: Measurement, rows: np.ndarray
) -> np.ndarray:
    """Probability of each cell of a column in each class, (classes, cells).

    Args:
        columns: The cells of each column.
        singles: Noisy counts of cells over all classes.
        sums: Noisy sums of scores in each class.
        rows: Noisy number of rows of each class, at least one.
    """
    shares = pooled_shares(columns, singles)
    scores = pooled_scores(columns, shares)
    kinds = np.concatenate([_kinds(column) for column in columns])
    means = _drawn_means(sums.values[:, : len(kinds)], sums.noise, rows, kinds)
    chances, start = np.empty((len(rows), len(shares))), 0
    for column, place, own in zip(columns, places_of(columns), scores, strict=True):
        wanted = means[:, start : start + own.shape[1]]
        start += own.shape[1]
        chances[:, place] = _shapes(column, shares[place], own, wanted)
    return chances


def _kinds(column: Cells) -> list[int]:
    """The kind of each score of a column."""
    kinds = list(range(PLACE_AND_SPREAD)) if column.ordered else [VALUE] * column.values
    return kinds + [GAP] * column.missing


def _drawn_means(sums: np.ndarray, noise: float, rows: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Means of scores in each class, (classes, scores), drawn to that of all classes: by as much as noise and chance
    have to do with the differences, which scores of one kind are taken to have alike."""
    errors = (noise / rows)[:, None] ** 2 + 1 / rows[:, None]
    means, weights = sums / rows[:, None], rows / rows.sum()
    differences = means - weights @ means
    drawn = np.empty_like(means)
    for kind in np.unique(kinds):
        of_kind = differences[:, kinds == kind]
        variance = max(float((weights @ (of_kind**2 - errors)).mean()), 0.0)
        drawn[:, kinds == kind] = variance / (variance + errors) * of_kind
    return drawn


def _shapes(
    column: Cells, shares: np.ndarray, scores: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Probabilities of one column's cells, (classes, cells), with the wanted means of scores."""
    if not column.ordered:
        return np.stack([to_simplex(shares + one, 1.0) for one in wanted])
    known = shares[: column.values]
    tilted = _tilted(
        known / known.sum(),
        scores[: column.values, :PLACE_AND_SPREAD],
        wanted[:, :PLACE_AND_SPREAD],
    )
    gaps = np.clip(shares[column.values :] + wanted[:, PLACE_AND_SPREAD:], 0.0, 0.999)
    return np.concatenate([tilted * (1 - gaps.sum(axis=1, keepdims=True)), gaps], axis=1)


def _tilted(shares: np.ndarray, scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The distributions nearest to `shares` whose means of scores are those wanted, (classes, values)."""
    strength = np.zeros_like(wanted)
    for _ in range(NEWTON_STEPS):
        chances = _weighted(shares, strength @ scores.T)
        means = chances @ scores
        spread = np.einsum("cv,vi,vj->cij", chances, scores, scores)
        spread += STEADYING * np.eye(scores.shape[1]) - means[:, :, None] * means[:, None, :]
        step = np.linalg.solve(spread, (wanted - means)[:, :, None])[:, :, 0]
        strength += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        strength = np.clip(strength, -MOST_TILT, MOST_TILT)
    return _weighted(shares, strength @ scores.T)


def _weighted(shares: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    weights = shares * np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
