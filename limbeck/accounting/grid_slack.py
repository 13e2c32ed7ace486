"""Delta that discrete noise costs for being priced as continuous noise.

Rounding a *continuous* Gaussian to the grid would be plain post-processing of the
Gaussian mechanism. How far is the discrete Gaussian p from the rounded one q? With phi the density,

    q(x) = phi(x) A(x),   A(x) = int exp(-x t / s**2 - t**2 / 2 s**2) dt over |t| <= 1/2,
    p(x) = phi(x) / S,    S = sum of phi over the integers <= 1 + r,

with r = 2 exp(-2 pi**2 s**2) / (1 - exp(-6 pi**2 s**2)) (Poisson's summation formula), also for a shifted lattice. So

    1 + chi2(q, p) = S sum phi A**2 <= (1 + r)**2 int int exp(t t' / s**2) dt dt'
                   = (1 + r)**2 sum over k of s**-4k / ((2k)! (2k + 1)**2 16**k)
                  <= (1 + r)**2 (1 + 1 / (288 s**4) + 1 / (153400 s**8)),

the terms from the third on being a geometric series at most, and with log(1 + x) <= x

    KL(q, p) <= log(1 + chi2) <= 2 r + 1 / (288 s**4) + 1 / (153400 s**8) <= 1 / (287 s**4)

for every s >= 1: the small terms, times s**4, are largest at s = 1, where they are below 1/287 - 1/288. Divergences add over coordinates and over
adaptive steps (chain rule); given the coins of a sampled step it is a sum plus noise, and forgetting the
coins only lowers it (convexity). Pinsker's inequality is used once, for all n numbers of a run:
their total variation is at most sqrt(n / 574) / s**2 (`distance`). The test computes the true
divergences for small s.
"""

from __future__ import annotations

import math

SIGMA_BITS = 24
SIGMA = 2**SIGMA_BITS
"""Standard deviation of the discrete Gaussian in grid steps."""
SAMPLER_DISTANCE = 2.0**-115
"""Total variation between a draw of the sampler and the discrete Gaussian."""


def distance(numbers: int) -> float:
    """Total variation between a run's discrete noise and rounded continuous noise, bounded above.

    Args:
        numbers: How many are measured in the whole run, in all steps together.
    """
    return math.sqrt(numbers / 574.0) / SIGMA**2 + numbers * SAMPLER_DISTANCE
