"""A second opinion on epsilon, by code that shares nothing with the accountants.

Plain Gaussians have an exact answer, found here by halving an interval. For everything else an
attack gives a lower bound: whoever sees the sum of a measurement's steps and asks whether it lies
above a threshold can tell neighbours apart at least so well. A claim below it is false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, ndtr

from ..accounting import Charge, Cost
from ..errors import ReleaseError

THRESHOLDS = 400
"""Thresholds that the attack tries."""


def check_second_opinion(charges: Sequence[Charge], price: Cost) -> None:
    """Refuse a price that the exact answer or an attack contradicts."""
    if not math.isfinite(price.epsilon):
        return
    if price.exact is not None:
        own = exact_epsilon(charges, price.delta - price.slack - price.threshold)
        if not math.isclose(own, price.exact, rel_tol=1e-6, abs_tol=1e-9):
            raise ReleaseError(
                f"The accountants contradict each other: the exact curve gives epsilon {own:.6g}, "
                f"and again {price.exact:.6g}."
            )
        return
    for charge in charges:
        if not charge.pure:
            shown = attack_delta(charge, price.epsilon)
            if shown > price.delta * (1 + 1e-6):
                raise ReleaseError(
                    f"Epsilon {price.epsilon:.4g} is refuted: a plain attack on '{charge.name}' has "
                    f"delta {shown:.2g} there, and {price.delta:g} is claimed."
                )


def exact_epsilon(charges: Sequence[Charge], delta: float) -> float:
    """Epsilon of plain Gaussians at delta.

    >>> one = Charge(name="a", sensitivity=1.0, coordinates=1, noise_multiplier=3.7306)
    >>> round(exact_epsilon([one], 1e-5), 4)
    1.0
    """
    mu = math.sqrt(sum(c.steps / c.noise_multiplier**2 for c in charges))
    if mu == 0 or _gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while _gaussian_delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    above = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    below = math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    return above - math.exp(epsilon + math.log(below)) if below > 0 else above


def attack_delta(charge: Charge, epsilon: float) -> float:
    """A lower bound on delta at epsilon: the best threshold on the sum of a measurement's steps.

    The record that is asked about adds the sensitivity to every step that its coin lets it into, so
    the sum is a Gaussian around a binomial count, or around zero where the record is absent.

    >>> half = Charge(name="a", sensitivity=1.0, coordinates=1, noise_multiplier=1.0, sampling=0.5)
    >>> 0.01 < attack_delta(half, 0.5) < 0.1
    True
    """
    spread = charge.noise_multiplier * math.sqrt(charge.steps)
    rate = 1.0 if charge.sampling is None else charge.sampling
    centre, width = charge.steps * rate, math.sqrt(charge.steps * rate * (1 - rate))
    low = max(0, math.floor(centre - 12 * width - 12))
    counts = np.arange(low, min(charge.steps, math.ceil(centre + 12 * width + 12)) + 1.0)
    weights = _binomial(charge.steps, rate, counts)
    thresholds = np.linspace(-2 * spread, centre + 8 * spread, THRESHOLDS)
    with_it = ndtr((counts[:, None] - thresholds) / spread).T @ weights
    without = ndtr(-thresholds / spread)
    return float(np.max(with_it - math.exp(min(epsilon, 700.0)) * without))


def _binomial(trials: int, rate: float, counts: np.ndarray) -> np.ndarray:
    if rate == 1.0:
        return (counts == trials).astype(np.float64)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    return np.exp(ways + counts * math.log(rate) + (trials - counts) * math.log1p(-rate))
