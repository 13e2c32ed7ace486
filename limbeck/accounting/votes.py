"""What votes would cost if one could look at them: for analysis, never for a release.

Where teachers agree, the argmax of a noisy histogram hardly depends on one of them, and a bound that
looks at the histogram is far below the one that does not (Papernot et al. 2018; paper 003,
theorem 7). But such an epsilon is computed from private votes, so it is private itself. To publish
it, it would have to be sanitised (by smooth sensitivity), which limbeck does not do: no plan,
ledger or certificate ever uses these figures. Exact histograms exist only in runs with
epsilon = infinity, which are never released either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_ndtr, logsumexp

ORDERS = (1.1, *range(2, 200))
"""Renyi orders, those of the paper's program."""


@dataclass(frozen=True, kw_only=True)
class VoteAnalysis:
    """Two prices of the same votes."""

    epsilon: float
    """By the data-dependent bound."""
    data_independent_epsilon: float
    """By the bound that holds for any votes, with the same conversion."""
    delta: float
    releasable: bool = field(default=False, init=False)
    stamp: str = field(
        default="not for release: computed from the votes and not sanitised by smooth sensitivity",
        init=False,
    )


def analyse_votes(
    histograms: Iterable[np.ndarray],
    *,
    vote_noise: float,
    largest_noise: float | None,
    threshold: float,
    delta: float,
    orders: Sequence[float] = ORDERS,
) -> VoteAnalysis:
    """The price of Confident-GNMax on the given exact votes, as paper 003 computes it.

    Args:
        histograms: Exact counts (coordinates, bins) of each update, from a run without noise.
        vote_noise: Standard deviation of the noise of the votes.
        largest_noise: That of the largest counts; None: no threshold.
        threshold: Votes that are needed. A coordinate whose exact count misses it is taken to cost
            nothing beyond the threshold's own price.
        delta: Of the guarantee.
        orders: Renyi orders.
    """
    dependent, independent = np.zeros(len(orders)), np.zeros(len(orders))
    for counts in histograms:
        first = 0.0 if largest_noise is None else len(counts) / (2 * largest_noise**2)
        passed = counts if largest_noise is None else counts[counts.max(axis=1) >= threshold]
        logs = [log_chance_of_another(row, vote_noise) for row in passed]
        for i, order in enumerate(orders):
            divergence = sum(gnmax_rdp(log_q, vote_noise, order) for log_q in logs)
            dependent[i] += order * first + divergence
            independent[i] += order * (first + len(counts) / vote_noise**2)
    return VoteAnalysis(
        epsilon=_converted(dependent, orders, delta),
        data_independent_epsilon=_converted(independent, orders, delta),
        delta=delta,
    )


def log_chance_of_another(counts: np.ndarray, noise: float) -> float:
    """Log of a bound on the probability that the noisy argmax is not the true one."""
    gaps = counts.max() - np.delete(counts, counts.argmax())
    # The difference of two bins' noise has deviation noise * sqrt(2).
    bound = float(logsumexp(log_ndtr(-gaps / (noise * math.sqrt(2)))))
    return min(bound, math.log1p(-1 / len(counts)))


def gnmax_rdp(log_q: float, noise: float, order: float) -> float:
    """Renyi divergence of one noisy argmax: theorem 7 where it applies and helps.

    Args:
        log_q: Log of a bound on the chance of another outcome than the likeliest.
        noise: Standard deviation of each bin's noise.
        order: Of the divergence.

    >>> gnmax_rdp(math.log(0.5), 100.0, 2.0) == 2 / 100.0**2, gnmax_rdp(-50.0, 100.0, 2.0) < 1e-12
    (True, True)
    """
    plain = order / noise**2  # a vote that moves changes two bins: sensitivity sqrt(2)
    # Orders that suit a Gaussian of this noise (Papernot et al. 2018, proposition 10).
    second = noise * math.sqrt(-log_q)
    first = second + 1
    if second <= 1 or order > first:
        return plain
    e1, e2 = first / noise**2, second / noise**2
    limit = (second - 1) * e2 - second * (
        math.log(first / (first - 1)) + math.log(second / (second - 1))
    )
    inner = (log_q + e2) * (second - 1) / second
    if log_q > limit or inner >= 0:
        return plain
    log_rest = math.log1p(-math.exp(log_q))
    log_a = log_rest - math.log1p(-math.exp(inner))
    log_b = e1 - log_q / (first - 1)
    terms = [log_rest + (order - 1) * log_a, log_q + (order - 1) * log_b]
    return min(plain, max(0.0, float(logsumexp(terms)) / (order - 1)))


def _converted(spent: np.ndarray, orders: Sequence[float], delta: float) -> float:
    """Epsilon at delta from divergences, by the classic conversion (paper 003, theorem 4)."""
    return float(min(s + math.log(1 / delta) / (o - 1) for s, o in zip(spent, orders, strict=True)))
