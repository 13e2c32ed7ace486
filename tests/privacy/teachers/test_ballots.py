"""Ballots: noisy tallies of teachers' answers, within their sensitivity and at their price."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from critics import APART, METHOD, SCHEMA, SUM, Liar, critics, question, rows_of
from helpers import TEACH, ask, image_rows, planned
from kinds import Kept

import limbeck as lk
from limbeck.accounting import gaussian_mu, mu_for
from limbeck.privacy import Directions, Faculty, Measurement, Noise, Planned, Private, Unit, Votes

NOTHING = {"question": jnp.zeros(2)}


def _asked(data: lk.Dataset, teacher: Any, ballot: Votes | Directions, **kind: Any) -> np.ndarray:
    """The answers to all steps, one after the other."""
    with ask(data, ballot, **kind).steps(ballot.name, Faculty(teacher)) as step:
        return np.concatenate([step(NOTHING)[0].values for _ in range(ballot.steps)])


# ---- the mechanisms -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [METHOD, SUM, APART], ids=["votes", "directions", "classes apart"]
)
def test_no_record_moves_a_tally_beyond_its_sensitivity(method: lk.GPATE) -> None:
    """With frozen noise, and teachers whose rate of 1 makes them overreact to every row."""
    images, labels = image_rows(14)
    faculty, ballot = critics(method)

    def answers(keep: np.ndarray) -> list[np.ndarray]:
        private = ask(lk.read((images[keep], labels[keep]), SCHEMA), ballot)
        with private.steps(ballot.name, faculty) as step:
            return [a.values for n in range(2) for a in step({"question": question(method, n)})]

    whole = answers(np.ones(14, bool))
    limits = [c.sensitivity for c in ballot.charges(Unit())] * 2
    moved = np.zeros(len(whole))
    for gone in range(14):
        less = answers(np.arange(14) != gone)
        found = [np.linalg.norm(a - b) for a, b in zip(whole, less, strict=True)]
        assert all(f <= limit * (1 + 1e-9) for f, limit in zip(found, limits, strict=True))
        moved = np.maximum(moved, found)
    assert moved[-1] > 0.3 * limits[-1]


@pytest.mark.parametrize("said", [1e30, math.nan, math.inf, -1e-30])
def test_any_vector_counts_for_no_more_than_norm_one(said: float) -> None:
    ballot = Directions(name="x", size=5, count=1)
    found = _asked(rows_of(4), Liar(said, 5), ballot, epsilon=math.inf)
    assert np.isfinite(found).all() and np.linalg.norm(found) <= 3 * (1 + 1e-9)


@pytest.mark.parametrize(("said", "counted"), [(1.0, 3), (-1.0, 0), (9.0, 0)])
def test_votes_for_bins_that_are_not_there_are_void(said: float, counted: int) -> None:
    ballot = Votes(name="x", coordinates=5, bins=4, count=1)
    found = _asked(rows_of(4), Liar(said, 5, whole=True), ballot, epsilon=math.inf)
    assert np.allclose(found.sum(axis=1), counted, atol=1e-6)


@pytest.mark.parametrize(("size", "counted"), [(5, 0), (2, 3)])
def test_who_votes_on_more_coordinates_than_planned_has_no_vote(size: int, counted: int) -> None:
    """Fewer coordinates cost less: whoever is charged for two may not move five."""
    ballot = Votes(name="x", coordinates=5, bins=4, count=1, most=2, largest_share=0.3)
    assert [c.sensitivity for c in ballot.charges(Unit())] == [2.0, 2.0]
    said = tuple(1.0 if i < size else -1.0 for i in range(5))
    found = _asked(rows_of(4), Liar(said, 5, whole=True), ballot, epsilon=math.inf)
    assert np.allclose(found.sum(), counted * size, atol=1e-5)  # the largest counts


def test_ballots_that_were_not_planned_are_refused() -> None:
    ballot, data = Votes(name="x", coordinates=5, bins=4, count=1), rows_of(4)
    teacher = Liar(0.0, 5, whole=True)
    (asked,) = planned(ballot)
    for other in (replace(ballot, coordinates=6, bins=3), replace(ballot, coordinates=3, count=2)):
        with pytest.raises(RuntimeError, match="planned"):
            wrong = Planned(question=other, charges=asked.charges)
            Private(data, [wrong], Unit(), Noise.from_seed(0))
    with (
        pytest.raises(RuntimeError, match="planned"),
        ask(data, ballot).steps("y", Faculty(teacher)),
    ):
        pass
    cheap = [replace(c, sensitivity=1.0) for c in asked.charges]
    with pytest.raises(RuntimeError, match="other ballots"):
        ballot.calibrated(cheap, Unit())
    with pytest.raises(RuntimeError, match="votes of shape"):
        _asked(data, Liar(0.0, 6, whole=True), ballot)
    with pytest.raises(RuntimeError, match="votes of shape"):
        _asked(data, Liar(0.0, 5), ballot)  # numbers, where bins are wanted
    with ask(data, ballot).steps("x", Faculty(teacher)) as step:
        step(NOTHING)
        with pytest.raises(RuntimeError, match="already"):
            step(NOTHING)


def test_a_killed_run_gives_the_same_answers_again() -> None:
    """States are not kept: the teachers of a resumed run go through the same questions."""
    data, (faculty, ballot) = rows_of(40), critics()

    def answers(count: int, kept: Kept | None) -> list[tuple[Measurement, ...]]:
        private = ask(data, ballot, noise=Noise.from_seed(2), answers=kept)
        with private.steps(ballot.name, faculty) as step:
            return [step({"question": question(seed=n)}) for n in range(count)]

    straight, kept = answers(3, None), Kept()
    first, again = answers(2, kept), answers(3, kept)
    for wanted, found in ((straight[:2], first), (straight, again)):
        for one, two in zip(wanted, found, strict=True):
            for a, b in zip(one, two, strict=True):
                assert np.array_equal(a.values, b.values) and a[1:] == b[1:]


# ---- noise and price ------------------------------------------------------------------------


def test_vote_noise_is_the_runs_own() -> None:
    """P6: it comes from the run's secret, whatever anyone does to NumPy's global generator."""
    ballot = Votes(name="x", coordinates=50, bins=4, count=2)

    def noisy(noise: Noise) -> np.ndarray:
        np.random.seed(307)
        return _asked(rows_of(4), Liar(1.0, 50, whole=True), ballot, noise=noise)

    one, two = noisy(Noise()), noisy(Noise())
    assert not (one == two).any() and not (one[:50] == one[50:]).any()
    assert np.array_equal(noisy(Noise.from_seed(4)), noisy(Noise.from_seed(4)))


def test_votes_cost_what_their_sensitivity_says() -> None:
    """P8: per vote 2 / sigma2^2 + 1 / sigma1^2, so 226 updates at epsilon 1 and 65 at epsilon 10."""

    def mu(points: int, steps: int, largest: float, votes: float) -> float:
        shape = {"coordinates": 10 * points, "bins": 10, "count": steps}
        ballot = Votes(name="x", **shape, largest_share=0.3)
        noises = zip(ballot.charges(Unit()), (largest, votes), strict=True)
        found = gaussian_mu([replace(c, noise_multiplier=n / c.sensitivity) for c, n in noises])
        assert found is not None
        assert math.isclose(found**2, 10 * points * steps * (2 / votes**2 + 1 / largest**2))
        return found

    assert mu(15, 226, 3000, 1000) < mu_for(1.0, 1e-5) < mu(15, 227, 3000, 1000)
    assert mu(30, 65, 600, 100) < mu_for(10.0, 1e-5) < mu(30, 66, 600, 100)


def test_neither_price_nor_number_of_updates_depends_on_the_votes() -> None:
    """P7: teachers that agree and teachers that do not are charged the same, beforehand."""
    method = lk.GPATE(**TEACH)
    made = lk.plan(method, SCHEMA, lk.Budget(1.0))
    images, labels = image_rows(40)
    for rows in ((images, labels), (np.zeros_like(images), labels), (images[:1], labels[:1])):
        release = lk.distill(lk.read(rows, SCHEMA), method, lk.Budget(1.0), seed=1, check=False)
        assert release.certificate["charges"] == [c.facts() for c in made.charges]
