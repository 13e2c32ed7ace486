"""Sums of outer products, groups chosen by features, gradients of linear heads: sensitivity by brute force."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import ask, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck as lk
from limbeck.features import Fourier
from limbeck.privacy import Charge, Noise, Private
from limbeck.privacy._outer import UNIT, OuterBlocks, OuterSum

BOUND = 0.7


class Pairs:
    """Factors far beyond the bound, for some rows not finite."""

    left, right, norm_bound = 4, 3, BOUND

    def __call__(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 30 * rows[:, :4], jnp.where(rows[:, :1] > 0.9, jnp.nan, 5 * rows[:, 2:5] + 1)


class Blocks:
    """Two outer products side by side, beyond the bound together; for some rows not finite."""

    blocks, norm_bound = ((3, 2), (1, 4)), BOUND

    def __call__(self, rows: jax.Array) -> tuple[tuple[jax.Array, jax.Array], ...]:
        odd = jnp.where(rows[:, :1] > 0.9, jnp.nan, rows[:, :4])
        return (30 * rows[:, :3], rows[:, 2:4]), (1 + rows[:, :1], odd)


class LabelledBlocks:
    """Blocks that know the label, in one sum, worked on a few rows at a time."""

    blocks, norm_bound, chunk = Blocks.blocks, BOUND, 7

    def __call__(
        self, rows: jax.Array, labels: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], ...]:
        return tuple((left, right * (1 + labels[:, None])) for left, right in Blocks()(rows))


class Clusters:
    groups, size, norm_bound = 5, 4, BOUND

    def __call__(self, rows: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 9 * rows[:, :4] - labels[:, None], (10 * rows[:, 1]).astype(int) % 5


def _softmax(weights: jax.Array, phi: jax.Array, label: jax.Array) -> jax.Array:
    return jax.nn.softmax(phi @ weights) - jax.nn.one_hot(label, weights.shape[1])


def _pairs(data: lk.Dataset, **kind: object) -> np.ndarray:
    charge = Charge(name="pairs", sensitivity=BOUND, coordinates=36)
    return ask(data, charge, **kind).outer("pairs", Pairs())


def _blocks(data: lk.Dataset, **kind: object) -> np.ndarray:
    charge = Charge(name="blocks", sensitivity=BOUND, coordinates=30)
    return ask(data, charge, **kind).outer_blocks("blocks", Blocks())


def _labelled(data: lk.Dataset, **kind: object) -> np.ndarray:
    charge = Charge(name="blocks", sensitivity=BOUND, coordinates=10)
    return ask(data, charge, **kind).outer_blocks("blocks", LabelledBlocks(), by_label=False)


def _clusters(data: lk.Dataset, **kind: object) -> np.ndarray:
    charge = Charge(name="clusters", sensitivity=BOUND, coordinates=20)
    return ask(data, charge, **kind).grouped_sum("clusters", Clusters())


def _head(data: lk.Dataset, **kind: object) -> np.ndarray:
    charge = Charge(name="head", sensitivity=BOUND, coordinates=24, steps=2)
    oracle = ask(data, charge, **kind).linear_gradients("head", _features(), _softmax, outputs=3)
    one = oracle(np.zeros((8, 3)))
    two = oracle(np.eye(8, 3))
    assert not np.array_equal(one, two)
    return one


def _features() -> Fourier:
    slots = table_schema().slots
    return Fourier(slots=slots, size=8, length_scales=(1.0,), key=jax.random.key(0))


@pytest.mark.parametrize("question", [_pairs, _blocks, _labelled, _clusters, _head])
def test_no_neighbour_moves_an_answer_beyond_its_sensitivity(question: object) -> None:
    schema, rows = table_schema(), table_rows(25, seed=3)
    rows.loc[0, "income"] = 1e12
    rows.loc[1, "ill"] = "who knows"
    whole = question(lk.read(rows, schema))  # type: ignore[operator]
    moves = [
        np.linalg.norm(whole - question(lk.read(rows.drop(index=i), schema)))  # type: ignore[operator]
        for i in range(len(rows))
    ]
    assert max(moves) <= BOUND * (1 + 1e-12)
    assert max(moves) > 0.9 * BOUND
    assert moves[1] == 0  # no declared label: in no class


def test_without_noise_they_are_the_plain_sums() -> None:
    schema = table_schema()
    data = lk.read(table_rows(40), schema)
    rows = data._encoded()
    slots = jnp.asarray(schema.expand(rows.cells))

    def clipped(each: np.ndarray) -> np.ndarray:
        flat = np.nan_to_num(each.reshape(len(each), -1), nan=np.inf, neginf=np.inf)
        norms = np.linalg.norm(flat, axis=1)
        ok = np.isfinite(norms)
        return (
            np.where(ok[:, None], flat, 0)
            * np.where(ok, np.minimum(1, BOUND / np.maximum(norms, 1e-12)), 0)[:, None]
        )

    left, right = Pairs()(slots)
    each = clipped(np.asarray(left[:, :, None] * right[:, None, :], np.float64))
    wanted = np.stack([each[rows.labels == c].sum(axis=0) for c in range(3)]).reshape(3, 4, 3)
    assert np.allclose(_pairs(data, epsilon=float("inf")), wanted, atol=2e-3)

    both = [(a[:, :, None] * b[:, None, :]).reshape(len(slots), -1) for a, b in Blocks()(slots)]
    each = clipped(np.concatenate([np.asarray(b, np.float64) for b in both], axis=1))
    wanted = np.stack([each[rows.labels == c].sum(axis=0) for c in range(3)])
    assert np.allclose(_blocks(data, epsilon=float("inf")), wanted, atol=2e-3)

    labelled = LabelledBlocks()(slots, jnp.asarray(rows.labels))
    both = [(a[:, :, None] * b[:, None, :]).reshape(len(slots), -1) for a, b in labelled]
    each = clipped(np.concatenate([np.asarray(b, np.float64) for b in both], axis=1))
    wanted = each[rows.labels >= 0].sum(axis=0)
    assert np.allclose(_labelled(data, epsilon=float("inf")), wanted, atol=2e-3)

    phi, group = Clusters()(slots, jnp.asarray(rows.labels))
    each = clipped(np.asarray(phi, np.float64))
    wanted = np.stack([each[np.asarray(group) == g].sum(axis=0) for g in range(5)])
    assert np.allclose(_clusters(data, epsilon=float("inf")), wanted, atol=1e-5)

    phi = _features()(slots)
    residual = jax.vmap(_softmax, (None, 0, 0))(jnp.zeros((8, 3)), phi, jnp.asarray(rows.labels))
    each = clipped(np.asarray(phi[:, :, None] * residual[:, None, :], np.float64))
    assert np.allclose(_head(data, epsilon=float("inf")), each.sum(axis=0).reshape(8, 3), atol=2e-3)


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=7, max_size=7),
    st.floats(min_value=1e-3, max_value=1e3),
    st.floats(min_value=1e-2, max_value=1e4),
)
@settings(max_examples=80, deadline=None)
def test_any_contribution_stays_within_the_bound(
    values: list[float], bound: float, noise: float
) -> None:
    grid = OuterSum(bound=bound, noise=noise * bound, groups=1, left=4, right=3)
    both = np.asarray([values], np.float32)
    left, norms = grid.round_left(both[:, :4])
    right = grid.round_right(both[:, 4:], norms)
    total = grid.accumulate(left, right, np.zeros(1, np.int64))
    # Exactly, in whole numbers, and with room for rounding to the grid.
    exact = float(np.sqrt((total.astype(object) ** 2).sum())) * bound / UNIT**2
    assert exact + grid.grid * np.sqrt(12) <= bound * (1 + 1e-12)


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=10, max_size=10),
    st.floats(min_value=1e-3, max_value=1e3),
    st.floats(min_value=1e-2, max_value=1e4),
)
@settings(max_examples=80, deadline=None)
def test_blocks_together_stay_within_the_bound(
    values: list[float], bound: float, noise: float
) -> None:
    sizes = ((3, 2), (1, 4))
    grid = OuterBlocks(bound=bound, noise=noise * bound, groups=1, blocks=sizes)
    numbers = np.asarray([values], np.float32)
    parts = np.split(numbers, [3, 5, 6], axis=1)
    total = grid.zero()
    grid.add(total, *grid.round([(parts[0], parts[1]), (parts[2], parts[3])]), np.zeros(1, int))
    exact = float(np.sqrt((total.astype(object) ** 2).sum())) * bound / UNIT**2
    assert exact + grid._whole.grid * np.sqrt(grid.size) <= bound * (1 + 1e-12)


def test_factors_of_other_sizes_than_planned_are_refused() -> None:
    grid = OuterBlocks(bound=1.0, noise=1.0, groups=1, blocks=((2, 3),))
    with pytest.raises(RuntimeError, match="planned"):
        grid.round([(np.ones((1, 3)), np.ones((1, 2)))])


def test_a_head_is_asked_as_often_as_charged_and_resumes_nothing_else() -> None:
    charge = Charge(name="head", sensitivity=1.0, coordinates=24, steps=1)
    private = ask(lk.read(table_rows(10), table_schema()), charge)
    oracle = private.linear_gradients("head", _features(), _softmax, outputs=3)
    with pytest.raises(RuntimeError, match="shape"):
        oracle(np.zeros((8, 2)))
    oracle(np.zeros((8, 3)))
    with pytest.raises(RuntimeError, match="already"):
        oracle(np.zeros((8, 3)))


def test_in_law_mode_only_noise_is_left() -> None:
    def noise_of(count: int) -> list[np.ndarray]:
        charges = (
            Charge(name="pairs", sensitivity=1.0, coordinates=36, noise_multiplier=2.0),
            Charge(name="head", sensitivity=1.0, coordinates=24, noise_multiplier=2.0),
        )
        data = lk.read(table_rows(count), table_schema())
        private = Private(data, charges, lk.Budget(1.0), Noise.from_seed(1, law=True))
        oracle = private.linear_gradients("head", _features(), _softmax, outputs=3)
        return [private.outer("pairs", Pairs()), oracle(np.zeros((8, 3)))]

    for one, two in zip(noise_of(5), noise_of(30), strict=True):
        assert np.array_equal(one, two)
        assert 0.5 < one.std() / 2.0 < 1.6
