"""Sums of clipped gradients that are never made one by one: their proven margin, and that it is paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ghosts import (
    CLASSES,
    SLOTS,
    drawn_basis,
    drawn_rows,
    drawn_support,
    made_rows,
    network_source,
    scattering_source,
    tangent_source,
)

import limbeck as lk
from limbeck.features import (
    Support,
)
from limbeck.methods.classifiers.dp_sgd import IMAGES_AT_ONCE, ROWS_AT_ONCE
from limbeck.privacy import (
    FeatureSpaceGradients,
    PlainGradients,
    RowSums,
)
from limbeck.privacy.poisson.gradient_sum import ERROR, GradientSum

# ---- sums with a proven margin ---------------------------------------------------------------


def _feature_space(support: Support) -> FeatureSpaceGradients:
    """On features of as many numbers as rows have slots."""
    return FeatureSpaceGradients(
        features=_Same(), targets=support.targets, ridge=1e-7, class_weights=np.ones(CLASSES)
    )


def _few_directions(support: Support) -> FeatureSpaceGradients:
    """The same, in fewer directions than there are features or support rows."""
    return replace(_feature_space(support), basis=drawn_basis(SLOTS, 5))


class _Same(eqx.Module):
    def __call__(self, rows: jax.Array) -> jax.Array:
        return rows


GHOSTS = [tangent_source, scattering_source, _feature_space, _few_directions]


def _batch(shape: int) -> tuple[Support, np.ndarray, np.ndarray]:
    """Rows close to a support of huge and tiny numbers; half of them pull against the other half."""
    support = drawn_support(8, SLOTS)
    rng = np.random.default_rng(4)
    start = support.start * np.logspace(-2, 2, 8)[:, None]
    rows = start[rng.integers(0, 8, shape)] + 0.1 * rng.standard_normal((shape, SLOTS))
    labels = rng.integers(0, CLASSES, shape)
    rows[shape // 2 :] = rows[: shape // 2] * (1 + 1e-7)
    labels[shape // 2 :] = (labels[: shape // 2] + 1) % CLASSES
    return replace(support, start=start), rows.astype(np.float32), labels


@pytest.mark.parametrize("make", GHOSTS)
def test_a_rows_bounds_do_not_depend_on_its_place(make: Any) -> None:
    """Not in the last bit: what the proof of the margin takes for granted."""
    support, rows, labels = _batch(192)
    source = make(support)
    free = support.pick(support.start)
    found = source.prepare(free, rows, labels)
    order = np.random.default_rng(0).permutation(192)
    again = source.prepare(free, rows[order], labels[order])
    alone = source.prepare(
        free, np.where(np.arange(192)[:, None] < 1, rows[7], 0), labels * 0 + labels[7]
    )
    for one, other, single in zip(found[:2], again[:2], alone[:2], strict=True):
        assert np.array_equal(one[order], other)
        assert one[7] == single[0]


def test_gradients_made_one_by_one_do_not_depend_on_their_place() -> None:
    support, rows, labels = _batch(192)
    source, free = network_source(support), support.pick(support.start)
    made = made_rows(source, free, rows, labels)
    order = np.random.default_rng(0).permutation(192)
    assert np.array_equal(made[order], made_rows(source, free, rows[order], labels[order]))


@pytest.mark.parametrize("name", ["dense", "pictures"])
def test_a_networks_gradients_do_not_depend_on_their_place(name: str) -> None:
    """Nor on the rows beside them: another row in front moves all others by one."""
    rng, label = np.random.default_rng(1), lk.Category(name="y", values=("a", "b", "c"), label=True)
    if name == "dense":
        columns = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(7))
        source, chunk = lk.DPSGD(hidden=(8, 5)), ROWS_AT_ONCE
    else:
        columns = (lk.Image(name="image", height=8, width=8, channels=1),)
        source, chunk = lk.DPSGD(filters=3), IMAGES_AT_ONCE
    schema = lk.Schema(dataset="d", rows=200, columns=(*columns, label))
    network: Any = source.network(schema)
    numbers = np.asarray(network.start(jax.random.key(0)))
    numbers = numbers + 0.05 * rng.standard_normal(numbers.size).astype(np.float32)
    plain = PlainGradients(loss=network.row_loss, chunk=chunk)
    rows = rng.random((2 * chunk, schema.slots), dtype=np.float32)
    labels = rng.integers(0, 3, len(rows))

    def made(order: np.ndarray) -> np.ndarray:
        return np.concatenate([g for _, g in plain.blocks(numbers, rows[order], labels[order])])

    order = np.roll(np.arange(len(rows)), 1)
    assert np.array_equal(made(np.arange(len(rows)))[order], made(order))


@pytest.mark.parametrize("make", GHOSTS)
@pytest.mark.parametrize("clip", [1e-6, 1.0, 1e6])
def test_clipped_sums_err_by_less_than_the_margin(make: Any, clip: float) -> None:
    """Against sums made one row at a time and added exactly, and against every order of the rows."""
    shape = 128
    support, rows, labels = _batch(shape)
    source = make(support)
    free = support.pick(support.start)
    size = source.prepare(free, rows, labels).weighted_sum(np.zeros(shape)).size
    grid = GradientSum(sensitivity=clip, noise=clip, size=size, shape=shape)

    def clipped_sums(order: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        made = source.prepare(free, rows[order], labels[order])
        factors = grid.factors(made.norms, made.sizes, made.roundings, labels[order])
        return lambda kept: made.weighted_sum(factors * kept)

    plain, every = clipped_sums(np.arange(shape)), np.ones(shape)
    whole = plain(every)
    singles = [plain(one) for one in np.eye(shape)]
    assert max(np.linalg.norm(single) for single in singles) <= grid.clip * (1 + 1e-12)
    exact = np.array([math.fsum(column) for column in np.transpose(singles)])
    assert np.linalg.norm(whole - exact) <= ERROR * clip
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(shape)
        assert np.linalg.norm(clipped_sums(order)(every) - whole) <= ERROR * clip


def test_rows_of_cancelling_terms_are_shortened() -> None:
    """Terms a billion times as long as their sum would err beyond the margin: such rows count less."""
    grid = GradientSum(sensitivity=1.0, noise=1.0, size=4, shape=64)
    norms, sizes = np.ones(4), np.array([1.0, 1e4, 1e9, np.inf])
    factors = grid.factors(norms, sizes, 100, np.zeros(4, np.int64))
    assert factors[0] == factors[1] == grid.clip and factors[3] == 0
    most = grid.most(100)
    assert factors[2] * sizes[2] == pytest.approx(most) and most < 1e9
    assert 2 * grid.shape * most * 100 * 2.0**-52 < ERROR


@pytest.mark.parametrize("multiplier", [0.5, 40.0])
@pytest.mark.parametrize("size", [10, 10**6])
def test_clip_margin_and_rounding_add_up_to_the_sensitivity(multiplier: float, size: int) -> None:
    grid = GradientSum(sensitivity=0.3, noise=0.3 * multiplier, size=size, shape=640)
    error = ERROR * grid.sensitivity
    rounding = 1.5 * math.sqrt(size) * grid.grid
    assert grid.clip + 2 * error + error / 1280 + rounding <= grid.sensitivity
    assert grid.clip > grid.sensitivity * (1 - 4e-6) - 1.01 * rounding - 2 * grid.grid


class _Listed:
    """Gradients that are the rows, told by norms and sums; counts how often it is asked."""

    calls = 0

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        self.calls += 1
        norms = np.linalg.norm(slots, axis=1)
        return RowSums(norms, norms, len(slots) + 2, lambda factors: factors @ slots)


@pytest.mark.parametrize("count", [64, 128, 131])
def test_one_row_more_moves_the_integers_by_no_more_than_the_sensitivity(count: int) -> None:
    """Before, within and beyond the planned pieces, wherever the row is put."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count + 1, 5)) * 10
    grid = GradientSum(sensitivity=1.0, noise=2.0, size=5, shape=64)
    source = _Listed()

    def load(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slots, labels = np.zeros((64, 5)), np.full(64, -1)
        slots[: len(places)], labels[: len(places)] = rows[places], 0
        return slots, labels

    whole = grid.total(source, np.zeros(5), np.arange(count + 1), load)
    assert source.calls == (2 if count < 128 else 2 + count + 1 - 128)
    for gone in (0, count // 2, count):
        left = grid.total(source, np.zeros(5), np.delete(np.arange(count + 1), gone), load)
        moved = np.linalg.norm(whole - left) * grid.grid
        assert 0.999 < moved <= 1.0


def test_norms_rest_on_an_upper_bound_of_the_derivative() -> None:
    """A power iteration that starts across the steep direction finds a lower bound only."""

    class Steep(eqx.Module):
        """The slots, but for one direction that is stretched a million times."""

        def __call__(self, rows: jax.Array) -> jax.Array:
            return rows @ jnp.asarray(self.derivative(rows[0]))

        def derivative(self, row: Any) -> np.ndarray:
            across = np.zeros(SLOTS, np.float32)
            across[:2] = 1, -1  # a start of signs has equal ones here
            return np.eye(SLOTS, dtype=np.float32) + 1e6 * np.outer(across, across)

    support = drawn_support(4, SLOTS)
    source = replace(scattering_source(support), features=Steep())
    rows, labels = drawn_rows(64, SLOTS)
    free = support.pick(support.start)
    _, low = source.low_rank(free, rows, labels)
    largest = np.linalg.norm(Steep().derivative(rows[0]), 2)
    assert largest > 1e6
    sizes = source.prepare(free, rows, labels).sizes
    assert (sizes >= largest * np.linalg.norm(low.terms(), axis=1)).all()
