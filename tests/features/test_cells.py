"""Cells of columns: every value has one, drawn values return to it, groups hold enough."""

from __future__ import annotations

import datetime

import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.features import Cells, ColumnPairs, SingleColumns, group_cells, most_cells

COLUMNS = [
    lk.Numeric(name="few", integer=True, min=3, max=9, missing=True),
    lk.Numeric(name="many", integer=True, min=-5, max=99_999),
    lk.Numeric(name="real", min=-1.0, max=2.0, missing=True),
    lk.Numeric(name="constant", min=2.0, max=2.0),
    lk.Date(name="day", min=datetime.date(2000, 1, 1), max=datetime.date(2020, 1, 1)),
    lk.Category(name="kind", values=("a", "b", "c"), missing=True),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_a_drawn_value_lies_in_its_cell(column: lk.Numeric) -> None:
    cells = Cells(column=column, grid=16)
    codes = np.repeat(np.arange(cells.count), 20)
    drawn = cells.draw(codes, np.random.default_rng(0))
    # Through the owner's values and back, as whoever reads the release does.
    slots = column.expand(drawn)
    found = np.asarray(cells.indicators(jnp.asarray(slots)))
    assert found.shape == (len(codes), cells.count)
    assert np.array_equal(found.sum(axis=1), np.ones(len(codes)))
    if column.name != "constant":
        assert np.array_equal(found.argmax(axis=1), codes)
    assert not np.isnan(column.decode(drawn).astype("object").dropna().isna()).any()


def test_bounds_have_cells_of_their_own() -> None:
    cells = Cells(column=lk.Numeric(name="x", min=0, max=1), grid=4)
    slots = jnp.asarray([[0.0], [0.01], [0.99], [1.0]])
    assert np.asarray(cells.indicators(slots)).argmax(axis=1).tolist() == [0, 1, 4, 5]


def test_blank_categories_lie_in_no_cell() -> None:
    cells = Cells(column=lk.Category(name="x", values=("a", "b")), grid=4)
    slots = cells.column.expand(np.array([-1.0, 1.0], np.float32))
    assert np.asarray(cells.indicators(jnp.asarray(slots))).sum(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("most", [2, 5, 16])
@pytest.mark.parametrize("floor", [0.0, 30.0, 1e9])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_groups_are_few_and_heavy(column: lk.Numeric, floor: float, most: int) -> None:
    cells = Cells(column=column, grid=64)
    counts = np.random.default_rng(1).gamma(0.2, 50.0, cells.count)
    groups = group_cells(cells, counts, most=most, floor=floor)
    values = groups[: cells.values]
    assert set(groups) == set(range(groups.max() + 1))
    assert values.max() < min(most, cells.values)
    if cells.ordered:
        assert (np.diff(values) >= 0).all()
    if cells.missing:
        assert groups[-1] == values.max() + 1
    if floor == 1e9:
        assert values.max() == 0 or not cells.ordered


def test_a_pile_of_equal_values_stands_alone() -> None:
    cells = Cells(column=lk.Numeric(name="gain", min=0, max=1), grid=32)
    counts = np.full(cells.count, 5.0)
    counts[0] = 5000
    groups = group_cells(cells, counts, most=8, floor=20)
    assert (groups == groups[0]).sum() == 1


def test_pairs_count_every_pair_twice_and_singles_on_the_diagonal() -> None:
    schema = lk.Schema(dataset="d", columns=tuple(COLUMNS[i] for i in (0, 2, 5)))
    features = SingleColumns(schema, grid=8)
    groups = [np.arange(c.count) % 3 for c in features.cells]
    slots = np.concatenate([c.expand(np.array([0.5, 1.0], np.float32)) for c in schema.inputs], 1)
    ((left, right),) = ColumnPairs(features, groups)(jnp.asarray(slots))
    matrix = np.einsum("ri,rj->ij", np.asarray(left), np.asarray(right))
    assert np.array_equal(matrix, matrix.T) and matrix.sum() == 2 * 9
    assert np.trace(matrix) == 2 * 3


def test_estimated_columns_are_planned_for_the_widest() -> None:
    asked = lk.Category(name="town", most=10)
    assert most_cells(asked, 16) == 11
    schema = lk.Schema(
        dataset="d", columns=(asked, lk.Numeric(name="x", integer=True, outer=(0, 9)))
    )
    found = schema.resolve({"town": ("a", "(other)"), "x": (2, 3)})
    again = lk.Schema.parse(found.toml())
    assert [most_cells(c, 16) for c in again.inputs] == [11, 10]


@pytest.mark.parametrize("units", [16, 17, 18, 20, 64, 1000])
def test_whole_numbers_stay_in_their_cells(units: int) -> None:
    """What was counted in a cell is drawn there again: no number becomes its neighbour."""
    cells = Cells(column=lk.Numeric(name="x", integer=True, min=0, max=units), grid=16)
    numbers = np.repeat(np.arange(units + 1) / units, 20).astype(np.float32)
    codes = np.asarray(cells.indicators(numbers[:, None])).argmax(axis=1)
    drawn = cells.draw(codes, np.random.default_rng(0))
    assert np.array_equal(np.asarray(cells.indicators(drawn[:, None])).argmax(axis=1), codes)
    assert np.abs(drawn * units - np.rint(drawn * units)).max() < 1e-3
    if units <= 17:  # a cell each
        assert np.array_equal(drawn, numbers)
