"""Poisson batches: coins that are each record's own."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from limbeck.data import Rows
from limbeck.privacy import Noise
from limbeck.privacy.poisson.sampling import PoissonBatches, Records
from limbeck.privacy.teachers.ensemble import Shards


def test_poisson_batches_are_independent_coins() -> None:
    """P4, P15, P18: inclusion is Bernoulli per row and pairwise uncorrelated across steps; so is it
    for rows that are all equal."""
    noise = Noise.from_seed(0)
    for name, cells in {"other": np.arange(50.0), "equal": np.zeros(50)}.items():
        records = Records(Rows(cells[:, None], np.zeros(50, np.int32)), noise.stream(name))
        inclusion = np.zeros((2000, 50))
        for step in range(2000):
            inclusion[
                step, PoissonBatches(0.3, 50).draw(records, noise.stream(f"{name}{step}"))
            ] += 1
        assert set(np.unique(inclusion)) <= {0.0, 1.0}
        assert np.abs(inclusion.mean(axis=0) - 0.3).max() < 0.06
        correlation = np.corrcoef(inclusion.T) - np.eye(50)
        assert np.abs(correlation).max() < 0.12
        assert inclusion.sum(axis=1).std() == pytest.approx(math.sqrt(50 * 0.3 * 0.7), rel=0.1)


@pytest.mark.parametrize("probability", [0.0, 1e-4, 0.03, 0.5, 1.0])
def test_coins_have_their_probability(probability: float) -> None:
    count = 100_000
    rows = Rows(np.arange(count, dtype=np.float32)[:, None] // 2, np.zeros(count, np.int32))
    records = Records(rows, Noise.from_seed(1).stream("records"))
    share = len(records.heads(probability, Noise.from_seed(1).stream("coins"))) / count
    assert abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / count) + 1e-12


def test_how_pixels_are_stored_changes_no_coin_and_no_shard() -> None:
    """Pictures of bytes are of floats as soon as one of them holds a pixel that is none."""
    pixels, labels = np.random.default_rng(0).integers(0, 256, (60, 9)), np.zeros(60, np.int32)
    found = []
    for kind in (np.uint8, np.float32):
        rows, noise = Rows(pixels.astype(kind), labels), Noise.from_seed(3)
        records = Records(rows, noise.stream("records"))
        shards = Shards(rows, 7, noise.stream("shards"))
        coins = noise.stream("coins")
        found.append((records.heads(0.4, coins).tolist(), shards.of_row.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("place", [0, 7, 20])
@pytest.mark.parametrize("equal", [False, True])
def test_an_added_record_changes_no_other_records_coin(place: int, equal: bool) -> None:
    """Not even one that equals others: among k equal records there are then k + 1 coins."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 5, (20, 1)).astype(np.float32)  # four or so of each
    labels = np.zeros(20, np.int32)
    new = cells[3] if equal else np.array([99.0], np.float32)
    more = Rows(np.insert(cells, place, new, axis=0), np.zeros(21, np.int32))
    for step in range(30):
        seen = []
        for rows in (Rows(cells, labels), more):
            noise = Noise.from_seed(5)
            records = Records(rows, noise.stream("records"))
            chosen = records.heads(0.4, noise.stream(f"{step}"))
            seen.append(Counter(rows.cells[chosen, 0].tolist()))
        assert not seen[0] - seen[1]
        assert sum((seen[1] - seen[0]).values()) <= 1
        assert set(seen[1] - seen[0]) <= {float(new[0])}
