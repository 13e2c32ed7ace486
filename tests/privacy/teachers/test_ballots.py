"""Teachers: disjoint shards, hidden states, and nothing but noisy tallies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TEACH, ask, image_rows, image_schema

import limbeck as lk
from limbeck.methods._critic import Critic, Question
from limbeck.privacy import Ballot, Directions, Job, Noise, Private, Votes, mu_for
from limbeck.privacy._accountant import Charge, gaussian_mu
from limbeck.privacy._gnmax import analyse_votes, gnmax_rdp, log_chance_of_another
from limbeck.privacy._teachers import Ensemble, Shards

SCHEMA = image_schema()
METHOD = lk.GPATE(
    teachers=30, updates=3, points=6, aggregation="confident-gnmax", projection=4, clip=1e-3,
    view="rows", network="published", filters=2, teacher_hidden=(5,), teacher_rate=1.0, batch=4, teacher_steps=2,
)  # fmt: skip
SUM = replace(METHOD, aggregation="sum", projection=0, network="per-class")


def critic(method: lk.GPATE = METHOD) -> tuple[Critic, Ballot]:
    aggregator = method.aggregator(SCHEMA)
    return method._critic(SCHEMA, aggregator, 3), aggregator.ballot


def question(method: lk.GPATE = METHOD, seed: int = 0) -> Question:
    rows = jax.random.uniform(jax.random.key(seed), (method.points, SCHEMA.slots))
    labels = jnp.arange(method.points) % 3
    matrices = method.aggregator(SCHEMA).projections(jax.random.key(seed + 1))
    return Question(rows, labels, rows, labels, matrices)


def rows_of(count: int, seed: int = 0) -> lk.Dataset:
    return lk.read(image_rows(count, seed), SCHEMA)


def shards(data: lk.Dataset, count: int, seed: int = 0) -> Shards:
    return Shards(data._encoded(), count, Noise.from_seed(seed).stream("shards"))


# ---- shards ---------------------------------------------------------------------------------


def test_a_record_sits_in_one_shard_whatever_other_records_there_are() -> None:
    images, labels = image_rows(200)
    whole = shards(lk.read((images, labels), SCHEMA), 11)
    some = np.random.default_rng(0).permutation(200)[:70]
    part = shards(lk.read((images[some], labels[some]), SCHEMA), 11)
    assert np.array_equal(part.of_row, whole.of_row[some])
    assert whole.sizes.sum() == 200 and len(set(whole.of_row)) == 11
    seen = [set(whole.look(t, t + 1, 100, 0)[0].ravel()) for t in range(11)]
    assert sum(map(len, seen)) == 200 and len(set.union(*seen)) == 200


def test_equal_records_share_a_shard_and_the_key_is_the_runs_own() -> None:
    images, labels = image_rows(100)
    twice = lk.read((np.concatenate([images] * 2), np.concatenate([labels] * 2)), SCHEMA)
    found = shards(twice, 11).of_row
    assert np.array_equal(found[:100], found[100:])
    assert not np.array_equal(found, shards(twice, 11, seed=1).of_row)


def test_rows_without_a_declared_label_have_no_teacher() -> None:
    images, labels = image_rows(50)
    found = shards(lk.read((images, np.where(labels == 1, 77, labels)), SCHEMA), 5)
    assert np.array_equal(found.of_row < 0, labels == 1)
    assert found.sizes.sum() == (labels != 1).sum()


def test_a_small_shard_is_seen_whole_and_a_large_one_in_turns() -> None:
    found = shards(rows_of(30), 4)
    for teacher in range(4):
        size, own = found.sizes[teacher], set(np.flatnonzero(found.of_row == teacher))
        places, present = found.look(teacher, teacher + 1, 2, 0)
        seen = {p for t in range(size) for p in found.look(teacher, teacher + 1, 2, t)[0].ravel()}
        assert seen == own and present.sum() == min(2, size)
        places, present = found.look(teacher, teacher + 1, 50, 0)
        assert sorted(places[present]) == sorted(own) and set(places.ravel()) == own


# ---- isolation ------------------------------------------------------------------------------


def states(data: lk.Dataset, method: lk.GPATE) -> list[Any]:
    """The hidden states of all teachers after two questions: weights, moments, statistics."""
    private = ask(data, *critic(method)[1].charges())
    ensemble = private._ensemble(critic(method)[0], None)
    for number in range(2):
        list(ensemble.ask(question(method, number)))
    (state,) = ensemble._states
    flat = jax.tree_util.tree_leaves(state)
    return [[np.asarray(leaf[t]) for leaf in flat] for t in range(method.teachers)]


@pytest.mark.parametrize("method", [METHOD, SUM], ids=["batch statistics", "per class"])
def test_one_record_reaches_one_teachers_state(method: lk.GPATE) -> None:
    """P5: neither weights nor optimiser moments nor statistics are shared; to the last bit."""
    images, labels = image_rows(40)
    whole = states(lk.read((images, labels), SCHEMA), method)
    for gone in (0, 17, 39):
        keep = np.arange(40) != gone
        less = states(lk.read((images[keep], labels[keep]), SCHEMA), method)
        same = [
            all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
            for one, two in zip(whole, less, strict=True)
        ]
        assert same.count(False) == 1


def test_a_teacher_without_rows_keeps_its_initial_network() -> None:
    images, labels = image_rows(3)
    found = states(lk.read((images, labels), SCHEMA), METHOD)
    fresh = states(lk.read((images[:0], labels[:0]), SCHEMA), METHOD)
    same = [all(map(np.array_equal, a, b)) for a, b in zip(found, fresh, strict=True)]
    assert 27 <= same.count(True) < 30
    assert all(np.isfinite(leaf).all() for state in found for leaf in state)


def test_questions_are_answered_in_chunks_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def tallies() -> np.ndarray:
        data, (teacher, ballot) = rows_of(40), critic()
        ensemble = ask(data, *ballot.charges())._ensemble(teacher, None)
        parts = [ballot.tally(answers) for _, answers in ensemble.ask(question())]
        return np.stack([sum(parts), np.full_like(parts[0], len(parts))])

    whole = tallies()
    monkeypatch.setattr(Ensemble, "_chunk", lambda self, question: 11)
    cut = tallies()
    assert whole[1].max() == 1 and cut[1].max() == 3
    # Every teacher answers once; products of other shapes may round otherwise, but shapes are public.
    assert (whole[0].sum(axis=1) == 30).all() and (cut[0].sum(axis=1) == 30).all()
    assert np.abs(whole[0] - cut[0]).sum() < 0.2 * whole[0].sum()


# ---- the mechanisms -------------------------------------------------------------------------


@pytest.mark.parametrize("method", [METHOD, SUM], ids=["votes", "sum"])
def test_no_record_moves_a_tally_beyond_its_sensitivity(method: lk.GPATE) -> None:
    """With frozen noise, and teachers whose rate of 1 makes them overreact to every row."""
    images, labels = image_rows(14)
    teacher, ballot = critic(method)
    charges = ballot.charges()

    def answers(keep: np.ndarray) -> list[np.ndarray]:
        private = ask(lk.read((images[keep], labels[keep]), SCHEMA), *charges)
        oracle = private.teachers(teacher, ballot)
        return [a for n in range(2) for a in oracle(question(method, n))]

    whole = answers(np.ones(14, bool))
    limits = [c.sensitivity for c in charges] * 2
    moved = np.zeros(len(whole))
    for gone in range(14):
        less = answers(np.arange(14) != gone)
        found = [np.linalg.norm(a - b) for a, b in zip(whole, less, strict=True)]
        assert all(f <= limit * (1 + 1e-9) for f, limit in zip(found, limits, strict=True))
        moved = np.maximum(moved, found)
    assert moved[-1] > 0.3 * limits[-1]


@dataclass(frozen=True)
class Liar:
    """A teacher that keeps to no rule."""

    said: float
    size: int
    whole: bool = False
    count: int = 3
    batch: int = 2
    turns: int = 1
    seed: int = 0

    def start(self, seed: Any, number: Any) -> Any:
        return jnp.zeros(1) + number

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return state + jnp.nan * rows.sum()

    def answer(self, state: Any, question: Any) -> Any:
        kind = jnp.int32 if self.whole else jnp.float32
        return jnp.full(self.size, self.said, kind)


@pytest.mark.parametrize("said", [1e30, math.nan, math.inf, -1e-30])
def test_any_vector_counts_for_no_more_than_norm_one(said: float) -> None:
    ballot = Directions(name="x", size=5, steps=1)
    private = ask(rows_of(4), *ballot.charges(), epsilon=math.inf)
    (found,) = private.teachers(Liar(said, 5), ballot)(jnp.zeros(2))
    assert np.isfinite(found).all() and np.linalg.norm(found) <= 3 * (1 + 1e-9)


@pytest.mark.parametrize(("said", "counted"), [(1.0, 3), (-1.0, 0), (9.0, 0)])
def test_votes_for_bins_that_are_not_there_are_void(said: float, counted: int) -> None:
    ballot = Votes(name="x", coordinates=5, bins=4, steps=1)
    private = ask(rows_of(4), *ballot.charges(), epsilon=math.inf)
    (found,) = private.teachers(Liar(said, 5, whole=True), ballot)(jnp.zeros(2))
    assert np.allclose(found.sum(axis=1), counted, atol=1e-6)


def test_ballots_that_were_not_planned_are_refused() -> None:
    planned, data = Votes(name="x", coordinates=5, bins=4, steps=1), rows_of(4)
    teacher = Liar(0.0, 5, whole=True)
    dear = replace(planned, coordinates=3, bins=4, steps=2)
    for other in (replace(planned, coordinates=6, bins=3), dear, replace(planned, name="y")):
        with pytest.raises(RuntimeError, match="planned"):
            ask(data, *planned.charges()).teachers(teacher, other)
    cheap = [replace(c, sensitivity=1.0) for c in planned.charges()]
    with pytest.raises(RuntimeError, match="other ballots"):
        ask(data, *cheap).teachers(teacher, planned)
    oracle = ask(data, *planned.charges()).teachers(teacher, planned)
    oracle(jnp.zeros(2))
    with pytest.raises(RuntimeError, match="already"):
        oracle(jnp.zeros(2))


def test_a_killed_run_gives_the_same_answers_again(tmp_path: Path) -> None:
    """States are not kept: the teachers of a resumed run go through the same questions."""
    data, (teacher, ballot) = rows_of(40), critic()
    charges = ask(data, *ballot.charges())._planned.values()
    budget = lk.Budget(1.0)

    def private(job: Job | None) -> Private:
        return Private(data, list(charges), budget, Noise.from_seed(2), job)

    wanted = [private(None).teachers(teacher, ballot)] * 3
    straight = [oracle(question(seed=n)) for n, oracle in enumerate(wanted)]
    with Job(tmp_path, {"a": 1}) as job:
        job.begin("run", bytes(32), "digest")
        oracle = private(job).teachers(teacher, ballot)
        first = [oracle(question(seed=n)) for n in range(2)]
        oracle = private(job).teachers(teacher, ballot)
        again = [oracle(question(seed=n)) for n in range(3)]
    for one, two in zip(straight, [*first, again[2]], strict=True):
        assert all(map(np.array_equal, one, two))
    assert all(np.array_equal(a, b) for x, y in zip(first, again, strict=False) for a, b in zip(x, y, strict=True))  # fmt: skip


# ---- noise and price ------------------------------------------------------------------------


def test_vote_noise_is_the_runs_own() -> None:
    """P6: it comes from the run's secret, whatever anyone does to NumPy's global generator."""
    ballot = Votes(name="x", coordinates=50, bins=4, steps=2)
    teacher = Liar(1.0, 50, whole=True)

    def noisy(noise: Noise) -> np.ndarray:
        np.random.seed(307)
        oracle = ask(rows_of(4), *ballot.charges(), noise=noise).teachers(teacher, ballot)
        return np.concatenate([oracle(jnp.zeros(2))[0] for _ in range(2)])

    one, two = noisy(Noise()), noisy(Noise())
    assert not (one == two).any() and not (one[:50] == one[50:]).any()
    assert np.array_equal(noisy(Noise.from_seed(4)), noisy(Noise.from_seed(4)))


def test_votes_cost_what_their_sensitivity_says() -> None:
    """P8: per vote 2 / sigma2^2 + 1 / sigma1^2, so 226 updates at epsilon 1 and 65 at epsilon 10."""

    def mu(points: int, steps: int, largest: float, votes: float) -> float:
        ballot = Votes(name="x", coordinates=10 * points, bins=10, steps=steps, largest=True)
        noises = zip(ballot.charges(), (largest, votes), strict=True)
        found = gaussian_mu([replace(c, noise_multiplier=n / c.sensitivity) for c, n in noises])
        assert found is not None
        assert math.isclose(found**2, 10 * points * steps * (2 / votes**2 + 1 / largest**2))
        return found

    assert mu(15, 226, 3000, 1000) < mu_for(1.0, 1e-5) < mu(15, 227, 3000, 1000)
    assert mu(30, 65, 600, 100) < mu_for(10.0, 1e-5) < mu(30, 66, 600, 100)


def test_neither_price_nor_number_of_updates_depends_on_the_votes() -> None:
    """P7: teachers that agree and teachers that do not are charged the same, beforehand."""
    method = lk.GPATE(**TEACH)
    planned = lk.plan(method, SCHEMA, lk.Budget(1.0))
    images, labels = image_rows(40)
    for rows in ((images, labels), (np.zeros_like(images), labels), (images[:1], labels[:1])):
        release = lk.distill(lk.read(rows, SCHEMA), method, lk.Budget(1.0), seed=1)
        assert release.certificate["charges"] == [c.facts() for c in planned.charges]


def test_the_data_dependent_bound_is_for_analysis_only() -> None:
    """P7: it is far below the honest one where teachers agree, and stamped."""
    agreed, split = np.full((50, 10), 0), np.full((50, 10), 400)
    agreed[:, 3] = 4000
    facts: dict[str, Any] = {
        "vote_noise": 100.0, "largest_noise": 600.0, "threshold": 2000.0, "delta": 1e-5,
    }  # fmt: skip
    one, two = analyse_votes([agreed], **facts), analyse_votes([split], **facts | {"threshold": 0})
    assert one.epsilon < 0.5 * one.data_independent_epsilon
    assert math.isclose(two.epsilon, two.data_independent_epsilon)
    assert "not for release" in one.stamp and not one.releasable
    fields = set(Charge.__dataclass_fields__)
    assert not {"votes", "histogram", "data_dependent"} & fields


def test_theorem_seven_bounds_the_true_divergence() -> None:
    """Two bins, so that the outcome's probabilities are known exactly."""
    noise, order = 20.0, 5.0
    for gap in (10, 40, 80, 120):
        counts = np.array([100 + gap, 100.0])
        p = 1 - math.exp(log_chance_of_another(counts, noise))
        moved = math.exp(log_chance_of_another(counts + np.array([-1.0, 1.0]), noise))
        q = 1 - moved
        true = math.log(p**order * q ** (1 - order) + (1 - p) ** order * moved ** (1 - order))
        true /= order - 1
        bound = gnmax_rdp(math.log(1 - p), noise, order)
        assert true <= bound * (1 + 1e-6) + 1e-12 <= order / noise**2 * (1 + 1e-6) + 1e-11
