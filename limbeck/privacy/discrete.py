"""The discrete Gaussian, exact in integer arithmetic.

Whatever is published as numbers is first put on a grid that is 2**24 times
finer than the noise, so one sampler is enough: integers x with P(x) proportional to
exp(-x**2 / (2 s**2)), s = 2**24. Write |x| = k s + j with 0 <= j < s. Then

    exp(-x**2 / 2 s**2) = exp(-k**2 / 2) * exp(-j (2 k s + j) / 2 s**2)

so: draw k from a fixed table, j uniformly, a sign; keep with the second factor's probability.
Its exponent is an integer divided by 2**49. Cut into four groups of bits, the factor is a product
of four constants from tables, that is, four coins. All comparisons are of 64-bit words, extended
to 128 bits on a tie; constants are rounded down at 128 bits, which moves the distribution of a
draw by less than 2**-115 in total variation, accounted for in delta (`limbeck.accounting`).
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

from ..accounting import SIGMA, SIGMA_BITS
from .noise import Stream

_KMAX = 13  # exp(-14**2 / 2) < 2**-141: beyond what 128 bits can tell
_GROUPS = ((41, 3457, 8), (27, 1 << 14, 22), (13, 1 << 14, 36), (0, 1 << 13, 49))
"""Bit groups of the exponent: shift, number of values, binary digits after the point."""
_BLOCK = 1 << 19


def discrete_gaussian(stream: Stream, count: int) -> np.ndarray:
    """`count` draws with standard deviation 2**24, as int64."""
    out, filled = np.empty(count, np.int64), 0
    while filled < count:
        wanted = count - filled
        kept = _propose(stream, min(_BLOCK, int(wanted * 1.45) + 64))[:wanted]
        out[filled : filled + len(kept)] = kept
        filled += len(kept)
    return out


def _propose(stream: Stream, count: int) -> np.ndarray:
    highs, lows = _level_table()
    level = _rank(stream, stream.words(count), highs, lows)
    bits = stream.words(count)
    step = (bits & np.uint64(SIGMA - 1)).astype(np.int64)
    negative = (bits >> np.uint64(63)).astype(bool)
    exponent = step * ((2 * level << SIGMA_BITS) + step)
    keep = ~(negative & (level == 0) & (step == 0))  # zero has one sign only
    for (shift, size, _), (high, low) in zip(_GROUPS, _coin_tables(), strict=True):
        index = (exponent >> shift) & (size - 1 if shift < 41 else -1)
        keep &= _less(stream, stream.words(count), high[index], low[index])
    value = (level << SIGMA_BITS) + step
    return np.where(negative, -value, value)[keep]


def _less(stream: Stream, words: np.ndarray, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Whether a 128-bit uniform number, its low half drawn only on a tie, is below a threshold."""
    answer = words < high
    ties = np.flatnonzero(words == high)
    answer[ties] = stream.words(len(ties)) < low[ties]
    return answer


def _rank(stream: Stream, words: np.ndarray, highs: np.ndarray, lows: np.ndarray) -> np.ndarray:
    """How many of the ascending 128-bit thresholds are at or below a uniform number."""
    rank = np.searchsorted(highs, words, side="right").astype(np.int64)
    for at in np.flatnonzero(np.isin(words, highs)):
        low = stream.words(1)[0]
        rank[at] = sum(
            h < words[at] or (h == words[at] and v <= low) for h, v in zip(highs, lows, strict=True)
        )
    return rank


@functools.cache
def _coin_tables() -> list[tuple[np.ndarray, np.ndarray]]:
    """For each group, exp(-v / 2**digits) for every v, as 128-bit fractions."""
    tables = []
    for _, size, digits in _GROUPS:
        factor = _exp_fraction(Fraction(1, 1 << digits), 192)
        value, numbers = 1 << 192, []
        for _ in range(size):
            numbers.append(min(value >> 64, (1 << 128) - 1))
            value = value * factor >> 192
        tables.append(_halves(numbers))
    return tables


@functools.cache
def _level_table() -> tuple[np.ndarray, np.ndarray]:
    """Cumulative probabilities of k in 0..13, proportional to exp(-k**2 / 2)."""
    weights = [_exp_fraction(Fraction(k * k, 2), 192) for k in range(_KMAX + 1)]
    total, running, numbers = sum(weights), 0, []
    for weight in weights[:-1]:
        running += weight
        numbers.append((running << 128) // total)
    return _halves(numbers)


def _halves(numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    mask = (1 << 64) - 1
    high = np.asarray([n >> 64 for n in numbers], np.uint64)
    return high, np.asarray([n & mask for n in numbers], np.uint64)


def _exp_fraction(exponent: Fraction, digits: int) -> int:
    """floor(exp(-exponent) * 2**digits) up to one unit, by the Taylor series in big integers."""
    whole, rest = divmod(exponent, 1)
    one = 1 << (digits + 32)

    def series(x: Fraction) -> int:
        term, total, n = one, 0, 0
        while term:
            total += term if n % 2 == 0 else -term
            n += 1
            term = term * x.numerator // (x.denominator * n)
        return total

    value, unit = series(Fraction(rest)), series(Fraction(1))
    for _ in range(int(whole)):
        value = value * unit >> (digits + 32)
    return value >> 32
