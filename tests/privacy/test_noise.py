"""Randomness: secret, separate for each purpose, never reused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from limbeck.privacy import Noise, Stream


def test_a_purpose_is_served_once() -> None:
    noise = Noise()
    noise.stream("embedding")
    with pytest.raises(RuntimeError, match="cannot be drawn again"):
        noise.stream("embedding")


def test_fresh_runs_share_nothing_and_hold_256_bits() -> None:
    one, two = Noise(), Noise()
    assert one.secret != two.secret and len(one.secret) == 32
    assert not np.array_equal(one.stream("a").words(4), two.stream("a").words(4))
    assert one.secret.hex() not in repr(one)


def test_purposes_are_independent_streams() -> None:
    noise = Noise.from_seed(0)
    streams = [noise.stream(f"step/{i}").normal(1000) for i in range(40)]
    correlation = np.corrcoef(streams) - np.eye(40)
    assert np.abs(correlation).max() < 0.2


def test_a_seed_repeats_and_is_marked() -> None:
    one, two = Noise.from_seed(4), Noise.from_seed(4)
    assert np.array_equal(one.stream("a").words(9), two.stream("a").words(9))
    assert one.seeded and not Noise().seeded
    assert one.public_seed("method") == two.public_seed("method") != one.public_seed("rows")


def test_normal_numbers_are_normal() -> None:
    drawn = Stream(bytes(32), "normal").normal(400_001)
    assert len(drawn) == 400_001
    assert stats.kstest(drawn, "norm").pvalue > 1e-4


@pytest.mark.parametrize("probability", [0.0, 0.03, 0.5, 1.0])
def test_coins_have_their_probability(probability: float) -> None:
    heads = Stream(bytes(32), "coins").bernoulli(probability, 200_000).mean()
    assert abs(heads - probability) < 5 * np.sqrt(probability * (1 - probability) / 200_000) + 1e-12


def test_integers_below_a_limit_are_uniform() -> None:
    stream = Stream(bytes(32), "below")
    counts = np.bincount([stream.below(11) for _ in range(22_000)], minlength=11)
    assert len(counts) == 11 and stats.chisquare(counts).pvalue > 1e-4
