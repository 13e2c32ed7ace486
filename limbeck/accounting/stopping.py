"""Random stopping: run until a coin says stop, keep the best, pay for all of it beforehand.

How often is drawn from the logarithmic distribution, which depends on no row. Then the best of all
runs costs little more than two of them, however many there were (Papernot and Steinke 2022, theorem
2, shape 0). Each run takes one of several alternatives at random; its Renyi divergence is bounded by
the largest of theirs at every order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from scipy.optimize import brentq

from ..errors import LimbeckError
from .accountant import Charge, Cost, calibrate, slack, thresholds, without_warnings
from .budget import Budget

ORDERS = (1.25, 1.5, 1.75, *range(2, 64), 80, 96, 128, 192, 256, 512, 1024)
"""Renyi orders, mostly whole ones: those are quick for sampled charges, too."""
STOPPING = "random stopping"
Alternatives = tuple[tuple[Charge, ...], ...]


class Coins(Protocol):
    """Secret randomness."""

    def words(self, count: int) -> np.ndarray:
        """Uniform 64-bit words."""


def draw_runs(coins: Coins, mean: float) -> int:
    """How many runs: at least one, on average `mean`, from the logarithmic distribution."""
    theta, at, total = 1 - _gamma(mean), 0, 0.0
    scale = -1 / math.log1p(-theta)
    point = ((int(coins.words(1)[0]) >> 11) + 1) * 2.0**-53  # uniform in (0, 1]
    while total < point and at < 100_000:  # rounding may leave a last sliver without a run
        at += 1
        total += scale * theta**at / at
    return max(at, 1)


def stopping_cost(alternatives: Sequence[Sequence[Charge]], budget: Budget, mean: float) -> Cost:
    """What the best of randomly many runs costs at the budget's delta, by Renyi divergences.

    Args:
        alternatives: The charges of each alternative that a run may take.
        budget: Its epsilon prices the grid's slack, its delta the rest.
        mean: Average number of runs.
    """
    return _cost(tuple(tuple(a) for a in alternatives), budget, mean)


@functools.lru_cache(maxsize=64)
def _cost(alternatives: Alternatives, budget: Budget, mean: float) -> Cost:
    # Every run may fail by its slack or thresholds: on average `mean` of them.
    lost = mean * max(slack(a, budget.epsilon) for a in alternatives)
    cut = mean * max(thresholds(a) for a in alternatives)
    rest = budget.delta - lost - cut
    if rest <= 0:
        raise LimbeckError(
            f"Delta {budget.delta:g} is smaller than what the grid and thresholds of about {mean:g} "
            "runs need. Choose a larger delta, fewer candidates or declared values."
        )
    curve = np.max([_curve(a) for a in alternatives], axis=0)
    epsilon = float(compute_epsilon(ORDERS, stopped_curve(curve, mean), rest)[0])
    return Cost(epsilon, budget.delta, None, epsilon, epsilon, lost, cut, f"RDP of {STOPPING}")


def stopped_curve(curve: np.ndarray, mean: float) -> np.ndarray:
    """Renyi divergences at `ORDERS` of the best of many runs, from those of one."""
    orders = np.asarray(ORDERS)
    constant = np.min((1 - 1 / orders) * curve - math.log(_gamma(mean)) / orders)
    divergences = curve + math.log(mean) / (orders - 1) + constant
    return np.minimum.accumulate(divergences[::-1])[::-1]  # divergences grow with the order


def calibrate_stopping(
    requests: Sequence[Sequence[Charge]],
    shares: Sequence[Sequence[float]],
    budget: Budget,
    mean: float,
) -> list[list[Charge]]:
    """Noise for every alternative so that the best of randomly many runs costs the budget.

    Each alternative is calibrated as if it ran alone; then all noise is raised by one factor.
    """
    alone = [calibrate(r, s, budget) for r, s in zip(requests, shares, strict=True)]

    def louder(factor: float) -> list[list[Charge]]:
        return [[_louder(c, factor) for c in charges] for charges in alone]

    def excess(factor: float) -> float:
        return stopping_cost(louder(factor), budget, mean).epsilon - budget.epsilon

    high = 2.0
    while excess(high) > 0:
        high *= 2
        if high > 1e3:
            raise LimbeckError(
                "No amount of noise lets these candidates be tried within the budget."
            )
    factor = float(brentq(excess, 1.0, high, xtol=1e-3)) if excess(1.0) > 0 else 1.0
    while excess(factor) > 0:
        factor *= 1.0005
    return louder(factor)


def _louder(charge: Charge, factor: float) -> Charge:
    return replace(charge, noise_multiplier=charge.noise_multiplier * factor)


@without_warnings()
def _curve(charges: Sequence[Charge]) -> np.ndarray:
    accountant = RdpAccountant(list(ORDERS))
    for charge in charges:
        accountant.compose(charge.event(renyi=True))
    return np.asarray(accountant.rdp, np.float64)


@functools.lru_cache(maxsize=16)
def _gamma(mean: float) -> float:
    """The parameter at which the logarithmic distribution has a mean.

    >>> gamma = _gamma(3.0)
    >>> round((1 / gamma - 1) / math.log(1 / gamma), 6)
    3.0
    """
    if not mean > 1:
        raise LimbeckError(f"Expected more than one run on average, got {mean:g}.")
    return float(brentq(lambda g: (1 / g - 1) / math.log(1 / g) - mean, 1e-9, 1 - 1e-9, xtol=1e-15))
