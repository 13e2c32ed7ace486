"""A batch's vector as a whole: in a ball whatever the map says, charged at the ball's width, sampled as gradients are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import ask, planned, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge
from limbeck.privacy import BatchGradient, Unit

QUESTION = BatchGradient(name="whole", clip=0.7, size=12, rate=0.5, rows=200, count=3)
STATE = {"parameters": np.zeros(12)}


class Said:
    """Says the same of every batch, and notes what it was shown."""

    def __init__(self, vector: Any) -> None:
        self.vector, self.seen = vector, []  # type: ignore[var-annotated]

    def whole(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> Any:
        self.seen.append((slots.shape, labels))
        return self.vector


def mechanism(multiplier: float = 1.0, **changes: Any) -> Any:
    question = replace(QUESTION, **changes)
    (asked,) = planned(question, multiplier=multiplier)[:1]
    return question.calibrated(asked.charges, Unit())


def test_any_two_batches_are_no_farther_apart_than_is_charged() -> None:
    """Opposite vectors, rounded the long way, at grids from fine to as coarse as allowed."""
    for size in (1, 12, 4000):
        for multiplier in (0.3, 1.0, 300.0, 5e4):
            grid = mechanism(multiplier, size=size).grid
            rng = np.random.default_rng(size)
            for vector in (np.ones(size), 99 * rng.normal(size=size), 1e99 * np.ones(size)):
                ends = [
                    grid.total(Said(sign * vector), np.zeros(1), np.arange(3), lambda b: (b, b))
                    for sign in (1, -1)
                ]
                apart = float(np.linalg.norm((ends[0] - ends[1]).astype(float)))
                assert apart * grid.grid <= 2 * QUESTION.clip
                if multiplier < 10:
                    assert apart * grid.grid > 0.99 * 2 * QUESTION.clip


@pytest.mark.parametrize("vector", [np.full(12, np.nan), np.full(12, np.inf), np.zeros(12)])
def test_a_vector_that_is_no_number_is_nothing(vector: np.ndarray) -> None:
    grid = mechanism().grid
    assert not grid.total(Said(vector), np.zeros(1), np.arange(3), lambda b: (b, b)).any()


def test_a_vector_of_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="planned 12"):
        mechanism().grid.total(Said(np.ones(11)), np.zeros(1), np.arange(3), lambda b: (b, b))


def test_a_coarse_grid_is_refused() -> None:
    with pytest.raises(lk.LimbeckError, match="coarser than"):
        mechanism(1e7)


def test_the_price_is_twice_the_clip_in_a_sampled_step() -> None:
    (charge,) = QUESTION.charges(Unit())
    assert charge == Charge(
        name="whole", sensitivity=1.4, coordinates=12, sampling=0.5, steps=3, noise_multiplier=charge.noise_multiplier,
    )  # fmt: skip


def test_batches_are_poisson_of_one_shape_and_fresh() -> None:
    private, _ = ask(lk.read(table_rows(150), table_schema()), QUESTION, multiplier=1.0), None
    said = Said(np.ones(12))
    with private.steps("whole", said) as step:
        answers = [step(STATE)[0].values for _ in range(3)]
    shapes = {shape for shape, _ in said.seen}
    assert len(shapes) == 1
    counts = [int((labels >= 0).sum()) for _, labels in said.seen]
    assert len(set(counts)) > 1 and all(45 <= count <= 105 for count in counts)
    assert not np.array_equal(answers[0], answers[1])


def test_a_batch_beyond_its_shape_is_seen_in_part() -> None:
    crowd = replace(QUESTION, rate=1.0, rows=10)
    private = ask(lk.read(table_rows(400), table_schema()), crowd, multiplier=1.0)
    said = Said(np.ones(12))
    with private.steps("whole", said) as step:
        for _ in range(3):
            step(STATE)
    assert all(len(labels) == mechanism(rate=1.0, rows=10).batches.shape for _, labels in said.seen)
