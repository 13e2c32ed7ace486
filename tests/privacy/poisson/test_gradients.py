"""Sampled gradients: steps as charged, batches as sampled, sums within the clip, noise on its grid."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import ask, table_rows, table_schema
from kinds import Ghost, loss

import limbeck as lk
from limbeck.audits.noise_checks import traces_of_box_muller
from limbeck.privacy import Gradients, Noise, Private, RowSums

ONES = np.ones(10, np.float32)


def _question(**changes: Any) -> Gradients:
    plain: dict[str, Any] = {"clip": 1.0, "size": 10, "rate": 0.2, "rows": 200, "count": 1}
    return Gradients(name="gradient", **plain | changes)


def _private(given: pd.DataFrame, *, multiplier: float = 1.0, **changes: Any) -> Private:
    data = lk.read(given, table_schema())
    return ask(data, _question(**changes), multiplier=multiplier)


def _asked(given: pd.DataFrame, source: Any, *parameters: np.ndarray, **kind: Any) -> np.ndarray:
    """Answers to one step for each of the parameters, (steps, size)."""
    private = _private(given, count=len(parameters), **kind)
    with private.steps("gradient", source) as step:
        return np.stack([step({"parameters": p})[0].values for p in parameters])


def test_gradients_run_as_many_steps_as_charged_with_fresh_noise_and_batches() -> None:
    """P3, P15, P19: charged steps are executed steps; no two share noise."""
    private, zeros = _private(table_rows(300), count=4), {"parameters": np.zeros(10, np.float32)}
    with private.steps("gradient", loss) as step:
        answers = [step(zeros)[0].values for _ in range(4)]
        assert len({a.tobytes() for a in answers}) == 4
        with pytest.raises(RuntimeError, match="already"):
            step(zeros)
    assert private.executed()[0].steps == 4


@pytest.mark.parametrize("declared", [1, 200, 5000])
def test_gradient_sums_are_those_of_the_batch_whatever_its_declared_size(declared: int) -> None:
    """Overflowing batches come in pieces, none is cut; noise frozen, the sum is the clipped one."""
    one, two = (_asked(table_rows(300), loss, ONES, rate=0.5, rows=n) for n in (declared, 300))
    assert np.allclose(one, two, atol=1e-5)


class Heedless:
    """Gradients that are the same whatever the row, padding too, and whatever the parameters."""

    def __init__(self, size: int) -> None:
        self.size = size

    def blocks(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> Any:
        yield 0, np.ones((len(slots), self.size))


@pytest.mark.parametrize("rows", [0, 5, 70])
def test_padding_adds_nothing(rows: int) -> None:
    """Else a row in its place would move the sum by two gradients."""
    found = _asked(table_rows(rows), Heedless(10), ONES, rate=1.0, rows=7, multiplier=0.0)
    assert np.linalg.norm(found) == pytest.approx(rows, rel=1e-3)


@pytest.mark.parametrize("rows", [0, 30])
def test_diverged_parameters_tell_nothing_of_the_rows(rows: int) -> None:
    """A sum that is not a number would say whether a batch was empty."""

    class Endless:
        def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> object:
            broken, ones = np.full(4, parameters.sum()), np.ones(len(labels))
            return RowSums(ones, ones, 1, lambda factors: broken * factors.sum())

    nowhere = np.full(4, np.nan)
    for source in (Endless(), Heedless(4)):
        found, empty = (_asked(table_rows(n), source, nowhere, size=4, rows=30) for n in (rows, 0))
        assert np.array_equal(found, empty) and np.isfinite(found).all()


def test_gradients_of_no_rows_are_noise_of_the_charged_scale() -> None:
    """P12: the noise that was charged is the noise that is added, fresh in every step."""

    def flat(parameters: jax.Array, slots: jax.Array, label: jax.Array) -> jax.Array:
        return parameters.sum() * slots[0]

    zeros = np.zeros(20_000, np.float32)
    one, two = _asked(table_rows(0), flat, zeros, zeros, size=20_000, multiplier=1.3)
    assert np.std(one) == pytest.approx(1.3, rel=0.02)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05


def test_gradient_steps_see_poisson_batches() -> None:
    """P4, P15, P18: what a step really adds up are independent coins per row, fresh every step."""
    count, steps = 40, 150
    values = tuple(f"v{i}" for i in range(count))
    schema = lk.Schema(dataset="d", rows=count, columns=(lk.Category(name="c", values=values),))
    data = lk.read(pd.DataFrame({"c": values}), schema)
    question = _question(size=count, rate=0.3, rows=count, count=steps)
    state = {"parameters": np.zeros(count, np.float32)}
    private = ask(data, question, multiplier=0.005)
    with private.steps("gradient", lambda p, slots, label: jnp.dot(p, slots)) as step:
        batches = np.array([step(state)[0].values for _ in range(steps)]).round(1)
    assert set(np.unique(batches)) == {0.0, 1.0}
    assert abs(batches.mean() - 0.3) < 0.03
    assert np.abs(batches.mean(axis=0) - 0.3).max() < 0.16
    assert batches.sum(axis=1).std() == pytest.approx(math.sqrt(count * 0.21), rel=0.25)
    assert np.abs(np.corrcoef(batches) - np.eye(steps)).mean() < 0.2


def test_gradients_of_another_size_are_refused() -> None:
    """One parameter must not be copied over a hundred charged coordinates."""
    with pytest.raises(RuntimeError, match="parameters"):
        _asked(table_rows(9), loss, np.zeros(1, np.float32), size=100)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("source", "declared"), [(loss, 60), (Ghost(), 20)], ids=["made", "ghost"])
def test_no_neighbour_moves_a_gradient_beyond_the_clip(
    source: Any, declared: int, last: bool
) -> None:
    """One row more, first or last: batches and noise of the others stay as they were; so too where
    gradients are never made and the boundary itself computes the factors."""
    rows, moves = table_rows(60), []
    for bad in (np.nan, 1e30, 5.0):
        new = rows.iloc[:1].assign(income=bad)
        more = pd.concat([rows, new] if last else [new, rows], ignore_index=True)
        parameters = np.full(10, 9.0, np.float32)
        one, two = (
            _asked(frame, source, parameters, rate=0.999, rows=declared) for frame in (rows, more)
        )
        moves.append(np.linalg.norm(two - one))
    assert max(moves) <= 1.0 + 1e-9 and max(moves) > 0.9


def test_noise_cannot_be_told_from_noise_by_its_bits() -> None:
    """L1: with Box-Muller in float64, a guess of the true sum is confirmed by the rest being
    sines and cosines. Here the rest of the true guess (no rows, 0) looks like that of any other."""
    size = 200_000
    words = Noise.from_seed(0).stream("attack").words(size)
    uniform = ((words >> np.uint64(11)) + np.uint64(1)).reshape(2, -1) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
    told = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    assert traces_of_box_muller(told) < 0.1  # the attack works where it should
    drawn = _asked(table_rows(0), loss, np.zeros(size, np.float32), size=size)
    assert traces_of_box_muller(drawn) > 0.2


@pytest.mark.parametrize("source", [loss, Ghost()], ids=["made", "ghost"])
def test_gradients_lie_on_the_grid_of_the_noise(source: Any) -> None:
    drawn = _asked(table_rows(90), source, ONES, rows=90)
    whole = drawn * 2**24  # the noise is 1
    assert np.array_equal(whole, np.rint(whole))


@pytest.mark.parametrize("told", [np.nan, np.inf, -1.0])
def test_a_ghost_without_a_norm_counts_for_nothing(told: float) -> None:
    kind: dict[str, Any] = {"rate": 0.9999, "rows": 1, "multiplier": 0.0}
    found = _asked(table_rows(1), Ghost(told), ONES, **kind)
    assert np.abs(found).max() < 1e-6
    seen = _asked(table_rows(1), Ghost(), ONES, **kind)
    assert np.linalg.norm(seen) == pytest.approx(1 - 3e-6, rel=1e-7)  # the margin of sums


def test_a_ghost_and_padding_and_rows_without_a_label() -> None:
    """Rows of no declared class, and the rows that fill up a batch, add nothing."""
    rows = table_rows(30)
    more = pd.concat([rows, rows.assign(ill="?")], ignore_index=True)
    one, two = (_asked(frame, Ghost(), ONES, rate=1.0, rows=7) for frame in (rows, more))
    assert np.allclose(one, two, atol=1e-12)


def test_a_ghost_whose_sum_has_another_size_is_refused() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        _asked(table_rows(9), Ghost(size=3), ONES, rate=0.9999, rows=9)


def test_the_order_of_rows_changes_no_bit_of_a_gradient() -> None:
    """Coins go with records, and batches are in the order of their identifiers."""
    rows = table_rows(150)
    one, two = (
        _asked(frame, loss, ONES, rate=0.5, rows=60)
        for frame in (rows, rows.sample(frac=1.0, random_state=1))
    )
    assert np.array_equal(one, two)
