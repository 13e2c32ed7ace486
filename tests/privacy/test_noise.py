"""Randomness: secret, separate for each purpose, never reused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import limbeck
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
    streams = [noise.stream(f"step/{i}").words(1000) / 2.0**64 for i in range(40)]
    correlation = np.corrcoef(streams) - np.eye(40)
    assert np.abs(correlation).max() < 0.2


def test_a_seed_repeats_and_is_marked() -> None:
    one, two = Noise.from_seed(4), Noise.from_seed(4)
    assert np.array_equal(one.stream("a").words(9), two.stream("a").words(9))
    assert one.seeded and not Noise().seeded
    assert one.public_seed("method") == two.public_seed("method") != one.public_seed("rows")


def test_no_noise_is_drawn_in_floating_point() -> None:
    """Nothing in the boundary makes normal numbers, and no charge that is made names any."""
    package = Path(limbeck.__file__).parent
    drawn = re.compile(r"normal\(|gauss\(|np\.random|default_rng|laplace\(\s*[0-9]")
    for file in sorted((package / "privacy").glob("*.py")):
        assert not drawn.search(file.read_text()), file.name
    assert not hasattr(Stream, "normal")
    for file in sorted((package / "methods").glob("*.py")):
        assert 'mechanism="gaussian"' not in file.read_text(), file.name


def test_integers_below_a_limit_are_uniform() -> None:
    stream = Stream(bytes(32), "below")
    counts = np.bincount([stream.below(11) for _ in range(22_000)], minlength=11)
    assert len(counts) == 11 and stats.chisquare(counts).pvalue > 1e-4
