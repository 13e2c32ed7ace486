"""The discrete Laplace distribution, exact in unlimited integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .noise import Stream


def discrete_laplace(stream: Stream, scale: Fraction, count: int) -> np.ndarray:
    """`count` integers with P(x) proportional to exp(-|x| / scale), as int64.

    One by one, in unlimited integers: for histograms, not for embeddings.
    """
    draws = [_laplace(stream, scale.numerator, scale.denominator) for _ in range(count)]
    return np.asarray(draws, np.int64)


def _laplace(stream: Stream, numerator: int, denominator: int) -> int:
    """Canonne, Kamath and Steinke (2020), algorithm 2, with scale numerator / denominator."""
    while True:
        part = stream.below(numerator)
        if not coin_exp(stream, part, numerator):
            continue
        whole = 0
        while coin_exp(stream, 1, 1):
            whole += 1
        size = (part + numerator * whole) // denominator
        negative = stream.below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def coin_exp(stream: Stream, numerator: int, denominator: int) -> bool:
    """True with probability exp(-numerator / denominator), for a ratio in [0, 1]."""
    k = 1
    while stream.below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
