"""Teachers: disjoint shards, hidden states, and nothing shared between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from critics import APART, METHOD, SCHEMA, SUM, critics, question, rows_of
from helpers import image_rows, planned

import limbeck as lk
from limbeck.data.persons import Sharing
from limbeck.privacy import Noise, RowAccess, Unit
from limbeck.privacy.teachers.ensemble import Ensemble, Shards


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


def test_classes_may_have_teachers_of_their_own_by_a_public_table() -> None:
    images, labels = image_rows(200)
    data, stream = lk.read((images, labels), SCHEMA), Noise.from_seed(0).stream
    found = Shards(data._encoded(), 11, stream("shards"), (2, 8, 1))
    codes = data._encoded().labels
    owners = np.repeat([0, 1, 2], (2, 8, 1))
    assert np.array_equal(owners[found.of_row], codes) and set(range(10)) <= set(found.of_row)
    some = np.random.default_rng(0).permutation(200)[:70]
    part = lk.read((images[some], labels[some]), SCHEMA)._encoded()
    less = Shards(part, 11, Noise.from_seed(0).stream("shards"), (2, 8, 1))
    assert np.array_equal(less.of_row, found.of_row[some])
    for table in ((2, 8), (2, 9, 0), (2, 8, 2)):
        with pytest.raises(RuntimeError, match="needs teachers"):
            Shards(data._encoded(), 11, stream(str(table)), table)


def test_a_persons_rows_are_never_parted_by_their_classes() -> None:
    rows = rows_of(3)._encoded()
    shared = replace(
        rows, sharing=Sharing(np.ones((3, 2), np.uint64), np.zeros(3, int), np.ones(3, np.int32))
    )
    with pytest.raises(RuntimeError, match="shards go by persons"):
        Shards(shared, 3, Noise.from_seed(0).stream("shards"), (1, 1, 1))


# ---- isolation ------------------------------------------------------------------------------


def ensemble_of(data: lk.Dataset, method: lk.GPATE) -> Ensemble:
    held = RowAccess(data=data, noise=Noise.from_seed(0), progress=lambda done: None)
    return Ensemble.of_rows(critics(method)[0], held)


def states(data: lk.Dataset, method: lk.GPATE) -> list[Any]:
    """The hidden states of all teachers after two questions: weights, moments, statistics."""
    ensemble = ensemble_of(data, method)
    for number in range(2):
        list(ensemble.ask(question(method, number)))
    (state,) = ensemble._states
    flat = jax.tree_util.tree_leaves(state)
    return [[np.asarray(leaf[t]) for leaf in flat] for t in range(method.teachers)]


@pytest.mark.parametrize(
    "method", [METHOD, SUM, APART], ids=["batch statistics", "per class", "apart"]
)
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
        ballot = critics()[1]
        tally = ballot.calibrated(planned(ballot)[0].charges, Unit())
        ensemble = ensemble_of(rows_of(40), METHOD)
        parts = [tally.counted(answers) for _, answers in ensemble.ask(question())]
        return np.stack([sum(parts), np.full_like(parts[0], len(parts))])

    whole = tallies()
    monkeypatch.setattr(Ensemble, "_chunk", lambda self, question: 11)
    cut = tallies()
    assert whole[1].max() == 1 and cut[1].max() == 3
    # Every teacher answers once; products of other shapes may round otherwise, but shapes are public.
    assert (whole[0].sum(axis=1) == 30).all() and (cut[0].sum(axis=1) == 30).all()
    assert np.abs(whole[0] - cut[0]).sum() < 0.2 * whole[0].sum()
