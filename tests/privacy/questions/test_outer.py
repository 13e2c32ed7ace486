"""Sums of outer products: against products that are made, and the bound of any contribution."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import asked, planned, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import BOUND, Blocks, LabelledBlocks, Pairs

import limbeck as lk
from limbeck.privacy import OneBlock, OuterSum, Unit
from limbeck.privacy.grid import clip_rows
from limbeck.privacy.questions.outer import UNIT, ProductGrid, SummedProducts

FACTORS = st.floats(allow_nan=True, allow_infinity=True, width=32)


def _sums(question: OuterSum, row_map: object, data: lk.Dataset) -> np.ndarray:
    return asked(data, question, row_map, epsilon=float("inf"))


def test_without_noise_they_are_the_plain_sums() -> None:
    schema = table_schema()
    data = lk.read(table_rows(40), schema)
    rows = data._encoded()
    slots = jnp.asarray(schema.expand(rows.cells))

    def clipped(pairs: tuple[tuple[object, object], ...]) -> np.ndarray:
        made = [(a[:, :, None] * b[:, None, :]).reshape(len(slots), -1) for a, b in pairs]
        return clip_rows(
            np.concatenate([np.asarray(m, np.float64) for m in made], axis=1), BOUND, 1
        )

    def by_class(each: np.ndarray) -> np.ndarray:
        return np.stack([each[rows.labels == c].sum(axis=0) for c in range(3)])

    question = OuterSum(name="products", bound=BOUND, blocks=((4, 3),), groups=3)
    found = _sums(question, OneBlock(Pairs()), data)
    assert np.allclose(found, by_class(clipped((Pairs()(slots),))), atol=2e-3)

    question = OuterSum(name="products", bound=BOUND, blocks=Blocks.blocks, groups=3)
    found = _sums(question, Blocks(), data)
    assert np.allclose(found, by_class(clipped(Blocks()(slots))), atol=2e-3)

    question = OuterSum(name="products", bound=BOUND, blocks=Blocks.blocks, labelled=True)
    found = _sums(question, LabelledBlocks(), data)
    each = clipped(LabelledBlocks()(slots, jnp.asarray(rows.labels)))
    assert np.allclose(found, each[rows.labels >= 0].sum(axis=0), atol=2e-3)


@given(
    st.lists(FACTORS, min_size=7, max_size=7),
    st.floats(min_value=1e-3, max_value=1e3),
    st.floats(min_value=1e-2, max_value=1e4),
)
@settings(max_examples=80, deadline=None)
def test_any_product_stays_within_the_bound(
    values: list[float], bound: float, noise: float
) -> None:
    grid = ProductGrid(bound=bound, noise=noise * bound, left=4, right=3)
    both = np.asarray([values], np.float32)
    left, norms = grid.round_left(both[:, :4])
    right = grid.round_right(both[:, 4:], norms)
    total = (left.T.astype(np.float64) @ right).astype(np.int64)
    # Exactly, in whole numbers, and with room for rounding to the grid.
    exact = float(np.sqrt((total.astype(object) ** 2).sum())) * bound / UNIT**2
    assert exact + grid.step * np.sqrt(12) <= bound * (1 + 1e-12)


@given(
    st.lists(FACTORS, min_size=10, max_size=10),
    st.floats(min_value=1e-3, max_value=1e3),
    st.floats(min_value=1e-2, max_value=1e4),
)
@settings(max_examples=80, deadline=None)
def test_blocks_together_stay_within_the_bound(
    values: list[float], bound: float, noise: float
) -> None:
    made = _mechanism(((3, 2), (1, 4)), bound, noise)
    numbers = np.asarray([values], np.float32)
    parts = np.split(numbers, [3, 5, 6], axis=1)
    total = made.zero()
    made.add(total, *made.round([(parts[0], parts[1]), (parts[2], parts[3])]), np.zeros(1, int))
    exact = float(np.sqrt((total.astype(object) ** 2).sum())) * bound / UNIT**2
    assert exact + made.grid.step * np.sqrt(total.size) <= bound * (1 + 1e-12)


def _mechanism(
    blocks: tuple[tuple[int, int], ...], bound: float, multiplier: float
) -> SummedProducts:
    question = OuterSum(name="products", bound=bound, blocks=blocks)
    return question.calibrated(planned(question, multiplier=multiplier)[0].charges, Unit())


def test_factors_of_other_sizes_than_planned_are_refused() -> None:
    made = _mechanism(((2, 3),), 1.0, 1.0)
    with pytest.raises(RuntimeError, match="planned"):
        made.round([(np.ones((1, 3)), np.ones((1, 2)))])


def test_more_rows_at_once_than_sum_exactly_are_refused() -> None:
    made = _mechanism(((1, 1),), 1.0, 1.0)
    many = np.ones(((1 << 18) + 1, 1))
    with pytest.raises(RuntimeError, match="exactly"):
        made.add(made.zero(), [many], [many], np.zeros(len(many), int))
