"""The discrete samplers against exact probabilities, against OpenDP, and their slack bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from limbeck.accounting.grid_slack import SAMPLER_DISTANCE, distance
from limbeck.privacy import Noise, discrete
from limbeck.privacy.laplace import discrete_laplace


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    return discrete.discrete_gaussian(Noise.from_seed(11).stream("draws"), 2_000_000)


def test_coarse_cells_have_the_exact_probabilities(draws: np.ndarray) -> None:
    """Sums of exp(-x^2 / 2 s^2) over cells of the lattice, against counts, by chi squared."""
    edges = np.concatenate([[-np.inf], np.linspace(-3.5, 3.5, 57), [np.inf]])
    counts = np.histogram(draws / discrete.SIGMA, edges)[0]
    # The lattice is so fine that the sum over a cell is the integral to 1e-14.
    expected = np.diff(stats.norm.cdf(edges)) * len(draws)
    assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_fine_bits_are_uniform(draws: np.ndarray) -> None:
    for shift in (0, 8, 14):
        counts = np.bincount((draws >> shift) & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_signs_are_even_and_independent_of_size(draws: np.ndarray) -> None:
    wide = np.abs(draws) > discrete.SIGMA
    for part in (draws[wide], draws[~wide]):
        assert abs((part > 0).mean() - 0.5) < 5 / math.sqrt(len(part))


def test_agrees_with_opendp(draws: np.ndarray) -> None:
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = (
        opendp.vector_domain(opendp.atom_domain(T=int), size=20_000),
        opendp.l2_distance(T=float),
    )
    theirs = opendp.m.make_gaussian(*space, scale=float(discrete.SIGMA))([0] * 20_000)
    assert stats.ks_2samp(draws[:200_000], np.asarray(theirs)).pvalue > 1e-4


def test_tables_are_exact_to_128_bits() -> None:
    """Every group's last and middle entry against exp() in 60-digit arithmetic."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for (_, size, digits), (high, low) in zip(
            discrete._GROUPS, discrete._coin_tables(), strict=True
        ):
            for value in (1, size // 2, size - 1):
                stored = mpmath.mpf((int(high[value]) << 64) + int(low[value])) / 2**128
                error = mpmath.exp(-mpmath.mpf(value) / 2**digits) - stored
                assert abs(error) < mpmath.mpf(2) ** -126


def test_levels_have_the_probabilities_of_a_half_gaussian() -> None:
    high, low = discrete._level_table()
    steps = np.array([(int(h) << 64) + int(v) for h, v in zip(high, low, strict=True)], object)
    got = np.diff(np.concatenate([[0], steps])).astype(float) / 2.0**128
    weights = np.exp(-(np.arange(14) ** 2) / 2)
    assert np.allclose(got, (weights / weights.sum())[:13], rtol=1e-9)


def test_ties_use_the_low_word() -> None:
    """A comparison that 64 bits cannot decide is decided by the next 64."""

    class Fixed:
        def __init__(self, *words: int) -> None:
            self.left = list(words)

        def words(self, count: int) -> np.ndarray:
            return np.array([self.left.pop(0) for _ in range(count)], np.uint64)

    word = np.array([7], np.uint64)
    low = np.array([5], np.uint64)
    assert discrete._less(Fixed(4), word, word, low).tolist() == [True]
    assert discrete._less(Fixed(5), word, word, low).tolist() == [False]
    highs, lows = np.array([3, 7], np.uint64), np.array([0, 5], np.uint64)
    assert discrete._rank(Fixed(4), word, highs, lows).tolist() == [1]
    assert discrete._rank(Fixed(5), word, highs, lows).tolist() == [2]


@pytest.mark.parametrize("sigma", [1, 2, 4, 8, 16])
def test_slack_bounds_the_true_divergence(sigma: int) -> None:
    """Divergence of the rounded from the discrete Gaussian, computed to 60 digits, and their distance."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        x = range(-14 * sigma, 14 * sigma + 1)
        exact = [mpmath.exp(-(mpmath.mpf(v) ** 2) / (2 * sigma**2)) for v in x]
        whole = mpmath.fsum(exact)
        exact = [e / whole for e in exact]
        edges = [mpmath.ncdf((v - mpmath.mpf(1) / 2) / sigma) for v in (*x, x[-1] + 1)]
        rounded = [b - a for a, b in zip(edges, edges[1:], strict=False)]
        pairs = list(zip(rounded, exact, strict=True))
        divergence = mpmath.fsum(q * mpmath.log(q / p) for q, p in pairs)
        squared = mpmath.fsum((q - p) ** 2 / p for q, p in pairs)
        apart = mpmath.fsum(abs(q - p) for q, p in pairs) / 2
        assert divergence <= squared <= 1 / (mpmath.mpf(287) * sigma**4)
        assert divergence > 0.4 / (mpmath.mpf(287) * sigma**4)  # half of it is given away, not more
        assert apart <= mpmath.sqrt(mpmath.mpf(1) / 574) / sigma**2
    assert distance(4) == pytest.approx(2 / math.sqrt(574) / discrete.SIGMA**2)
    assert distance(1) >= SAMPLER_DISTANCE


def test_the_constants_of_the_slack_hold_for_every_deviation() -> None:
    """The proof in docs/proofs.md, line by line: the integral is its series, the tail is within its bound,
    and the two small terms are largest at one."""
    mpmath = pytest.importorskip("mpmath")

    def term(k: int, s: float) -> object:
        return mpmath.mpf(s) ** (-4 * k) / (mpmath.factorial(2 * k) * (2 * k + 1) ** 2 * 16**k)

    small = []
    with mpmath.workdps(50):
        for s in (1.0, 1.1, 1.5, 2.0, 3.0, 8.0, 64.0, 4096.0, float(discrete.SIGMA)):
            whole = mpmath.fsum(term(k, s) for k in range(12))
            # exp(t t') over the square: once by hand, int 2 sinh(t / 2 s^2) s^2 / t dt.
            square = mpmath.mpf(s) ** 2
            inner = lambda t, square=square: 2 * mpmath.sinh(t / (2 * square)) * square / t  # noqa: E731
            assert abs(2 * mpmath.quad(inner, [mpmath.mpf(10) ** -30, 0.5]) - whole) < 1e-25
            assert all(term(k + 1, s) < term(k, s) / 900 for k in range(2, 11))
            power = mpmath.mpf(s) ** -4
            assert whole <= 1 + power / 288 + power**2 / 153400
            far = mpmath.exp(-2 * mpmath.pi**2 * s**2)
            rest = 2 * far / (1 - far**3)
            shifted = mpmath.fsum(
                mpmath.npdf(x + mpmath.mpf("0.3"), 0, s) for x in range(-200, 201)
            ) if s <= 8 else 1  # fmt: skip
            assert shifted <= 1 + rest
            assert mpmath.log((1 + rest) ** 2 * whole) <= power / 287
            small.append((2 * rest + power**2 / 153400) / power)
        assert small == sorted(small, reverse=True) and small[0] < 6.6e-6
        assert small[0] < mpmath.mpf(1) / 287 - mpmath.mpf(1) / 288


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2)])
def test_discrete_laplace_has_the_exact_probabilities(scale: Fraction) -> None:
    count = 20_000
    drawn = discrete_laplace(Noise.from_seed(3).stream("laplace"), scale, count)
    decay = math.exp(-1 / scale)
    top = 3 + int(3 * scale)
    x = np.arange(-top, top + 1)
    chances = (1 - decay) / (1 + decay) * decay ** np.abs(x)
    counts = np.array([(drawn == v).sum() for v in x])
    kept = chances * count > 5
    observed = np.append(counts[kept], count - counts[kept].sum())
    expected = np.append(chances[kept], 1 - chances[kept].sum()) * count
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_six_million_draws_are_quick() -> None:
    """A guard against a slow sampler, far above the second it takes; benchmarks/ has figures."""
    import time

    start = time.perf_counter()
    discrete.discrete_gaussian(Noise.from_seed(0).stream("speed"), 6_000_000)
    assert time.perf_counter() - start < 30
