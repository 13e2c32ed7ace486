"""What counted guesses prove: bounds of chances, of epsilon and of mu that hold with a stated confidence.

An attacker says "in" or "not in". If the mechanism were (epsilon, delta)-private, its chances would keep

    P[says in | in] <= e^epsilon P[says in | not in] + delta,

both ways. So chances that are certainly farther apart prove that epsilon is larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

CONFIDENCE = 1 - 1e-6
"""Chance with which all bounds of a finding hold together."""
AT_DELTA = 0.05
"""Delta at which claims and bounds are compared: so many draws can tell."""


class Interval(NamedTuple):
    """Two numbers between which a third one lies, but for a stated chance."""

    low: float
    high: float


def chance(hits: int, tries: int, wrong: float) -> Interval:
    """Clopper-Pearson bounds of a chance; each of the two fails with at most half of `wrong`.

    >>> chance(0, 10, 0.05).low, round(chance(0, 10, 0.05).high, 4)
    (0.0, 0.3085)
    """
    low = 0.0 if hits == 0 else float(beta.ppf(wrong / 2, hits, tries - hits + 1))
    high = 1.0 if hits == tries else float(beta.ppf(1 - wrong / 2, hits + 1, tries - hits))
    return Interval(low, high)


class Curve(NamedTuple):
    """How often each of two worlds is said to be the one with the unit, at some thresholds."""

    thresholds: np.ndarray
    hits: np.ndarray
    """Of `tries` draws with the unit, those above each threshold."""
    false: np.ndarray
    """The same without the unit."""
    tries: int

    def points(self, wrong: float) -> list[tuple[Interval, Interval]]:
        """Bounds of the chances (with, without) at every threshold, that hold together."""
        part = wrong / (2 * len(self.thresholds))
        return [
            (chance(int(a), self.tries, part), chance(int(b), self.tries, part))
            for a, b in zip(self.hits, self.false, strict=True)
        ]


def curve_of(
    with_unit: np.ndarray, without: np.ndarray, thresholds: Sequence[float] | np.ndarray
) -> Curve:
    """The trade-off between both kinds of error of an attacker who sees one score per draw; thresholds
    are chosen without looking at the draws."""
    cuts = np.sort(np.asarray(thresholds, np.float64))
    hits, false = (
        len(scores) - np.searchsorted(np.sort(scores), cuts, side="right")
        for scores in (with_unit, without)
    )
    return Curve(cuts, hits, false, len(with_unit))


def epsilon_at_least(curve: Curve, delta: float, wrong: float = 1 - CONFIDENCE) -> float:
    """The largest epsilon that the draws rule out at a delta; 0 where they rule out nothing."""
    best = 0.0
    for hit, false in curve.points(wrong):
        for more, less in ((hit.low, false.high), (1 - false.high, 1 - hit.low)):
            if more > delta and less > 0:
                best = max(best, math.log((more - delta) / less))
    return best


def mu_between(curve: Curve, wrong: float = 1 - CONFIDENCE) -> Interval:
    """Bounds of mu, if the two worlds are as far apart as two Gaussians: the lower one rules out every
    smaller mu whatever the mechanism. Where they are not, as with sampled batches, no upper one is had."""
    low, high = 0.0, math.inf
    for hit, false in curve.points(wrong):
        low = max(low, float(ndtri(hit.low) - ndtri(false.high)))
        if false.low > 0 and hit.high < 1:
            high = min(high, float(ndtri(hit.high) - ndtri(false.low)))
    return Interval(low, high if high >= low else math.inf)


# ---- one run with many canaries ---------------------------------------------------------------


def one_run_chance(epsilon: float, delta: float, canaries: int, guesses: int, right: int) -> float:
    """Most that `right` of `guesses` can be likely to be right about independent coins, of one run of
    an (epsilon, delta)-private algorithm (Steinke, Nasr and Jagielski 2023, theorem 5.2).

    >>> round(one_run_chance(0.0, 0.0, 10, 10, 10) * 2**10, 6)
    1.0
    """
    if right <= 0:
        return 1.0
    sure = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, sure))
    below = binom.pmf(np.arange(right - 1, -1, -1), guesses, sure)
    steepest = float(np.max(np.cumsum(below) / np.arange(1, right + 1)))
    return min(1.0, tail + 2 * canaries * delta * steepest)


def one_run_epsilon(delta: float, canaries: int, guesses: int, right: int, wrong: float) -> float:
    """The largest epsilon that so many right guesses rule out, but for a chance of `wrong`."""

    def surplus(epsilon: float) -> float:
        return one_run_chance(epsilon, delta, canaries, guesses, right) - wrong

    if surplus(0.0) >= 0:
        return 0.0
    top = 1.0
    while surplus(top) < 0 and top < 60:
        top *= 2
    return float(brentq(surplus, 0.0, top, xtol=1e-6)) if surplus(top) > 0 else top


def one_run_refutes_mu(mu: float, canaries: int, guesses: int, right: int, wrong: float) -> bool:
    """Whether so many right guesses are too unlikely for one run of a mu-Gaussian-private algorithm
    (Mahloujifar, Melis and Chaudhuri 2024). With a chance of `wrong` for `right` or more, the chances
    that a given canary is guessed rightly and wrongly are followed down to no right guess at all: the
    trade-off curve makes them grow, and together they may not exceed the share that is guessed."""
    inside = wrong * right / canaries
    outside = wrong * (guesses - right) / canaries
    for place in range(right - 1, -1, -1):
        grown = max(outside, float(ndtr(ndtri(min(inside, 1.0)) - mu)))
        if grown == outside:  # and so it stays
            break
        inside += place / (guesses - place) * (grown - outside)
        outside = grown
        if inside + outside > guesses / canaries:
            return True
    return inside + outside > guesses / canaries


def one_run_mu(canaries: int, guesses: int, right: int, wrong: float) -> float:
    """The largest mu that so many right guesses rule out; 0 where they rule out nothing."""
    if not one_run_refutes_mu(0.0, canaries, guesses, right, wrong):
        return 0.0
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        refuted = one_run_refutes_mu(middle, canaries, guesses, right, wrong)
        low, high = (middle, high) if refuted else (low, middle)
    return low
