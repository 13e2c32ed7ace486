"""Features that are ones and zeros: counted, they add up to what they add up to when they are made."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.data import Rows, Sharing
from limbeck.features import ColumnPairs, SingleColumns
from limbeck.privacy import OuterSum, Sum, Unit
from limbeck.privacy.ones import Ones

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))
from engine_cases import SCHEMA as DECLARED
from engine_cases import people

TOWN = lk.Category(name="town", values=("north", "south"))  # other towns lie in no cell
SCHEMA = replace(DECLARED, columns=(*DECLARED.columns[:2], TOWN, *DECLARED.columns[3:]))
SINGLES = SingleColumns(SCHEMA, grid=8)
PAIRS = ColumnPairs(SINGLES, [np.arange(c.count) % 3 for c in SINGLES.cells])
QUESTIONS = (
    (Sum(name="s", bound=SINGLES.norm_bound, size=SINGLES.size, groups=2), SINGLES),
    (Sum(name="s", bound=1.0, size=SINGLES.size, groups=1, by="all"), SINGLES),
    (OuterSum(name="o", bound=PAIRS.norm_bound, blocks=PAIRS.blocks, groups=2), PAIRS),
    (OuterSum(name="o", bound=2.0, blocks=PAIRS.blocks, groups=1), PAIRS),
)


@pytest.mark.parametrize("unit", [Unit(), Unit(person=True, rows_at_most=3)], ids=["row", "person"])
@pytest.mark.parametrize(("question", "row_map"), QUESTIONS)
def test_counted_ones_are_the_sum_of_features(question: Any, row_map: Any, unit: Unit) -> None:
    """Rows with cells that count for nothing and without a label; persons' rows of several weights."""
    rows = lk.read(people(500), SCHEMA)._encoded()
    kept = np.arange(len(rows), dtype=np.int32) % 3 + 1
    sharing = Sharing(np.ones((len(rows), 2), np.uint64), 0 * kept, kept) if unit.person else None
    rows = Rows(rows.cells, rows.labels, rows.states, sharing)
    charges = tuple(replace(c, noise_multiplier=3.0) for c in question.charges(unit))
    mechanism = question.calibrated(charges, unit, row_map)
    counted, whole, kinds = mechanism.zero(), mechanism.zero(), set()
    for batch in rows.chunks(mechanism.rows_at_once(SCHEMA, row_map)):
        told = mechanism.evaluate(row_map, batch, SCHEMA)
        ones = told[0] if isinstance(question, Sum) else told
        assert isinstance(ones, Ones)
        kinds |= set((ones.at >= 0).sum(axis=1).tolist())
        slots = jnp.asarray(SCHEMA.expand(batch.cells))
        made = jax.tree_util.tree_map(np.asarray, row_map(slots))
        if isinstance(question, Sum):
            assert np.array_equal(ones.features(), made)
            made = made, told[1]
        counted = mechanism.accumulate(counted, batch, told)
        whole = mechanism.accumulate(whole, batch, made)
    assert np.array_equal(counted, whole) and whole.any() and len(kinds) > 1


def test_a_place_that_a_block_does_not_have_is_none() -> None:
    """Whatever a map says, a row has at most one place in each block, and none of another block's."""
    ones = Ones.told(np.asarray([[0, 2], [3, -7], [99, 1]]), (3, 2))
    assert ones.at.tolist() == [[0, -1], [-1, -1], [-1, 4]] and ones.size == 5
    assert ones.features().tolist() == [[1, 0, 0, 0, 0], [0] * 5, [0, 0, 0, 0, 1]]
    counted = ones.counted(np.asarray([5.0, 7.0, 11.0]), np.asarray([1, 0, -1], np.int32), 2)
    assert counted.tolist() == [[0] * 5, [5, 0, 0, 0, 0]]


def test_maps_of_another_size_than_planned_are_refused() -> None:
    question = Sum(name="s", bound=1.0, size=7, groups=1)
    charges = tuple(replace(c, noise_multiplier=3.0) for c in question.charges(Unit()))
    ones = Ones.told(np.zeros((4, 2), int), (3, 2))
    with pytest.raises(RuntimeError, match="5 features, planned 7"):
        question.calibrated(charges, Unit()).grid.accumulate_ones(ones, np.zeros(4, np.int32))
    outer = OuterSum(name="o", bound=1.0, blocks=((7, 7),))
    charges = tuple(replace(c, noise_multiplier=3.0) for c in outer.charges(Unit()))
    made = outer.calibrated(charges, Unit())
    with pytest.raises(RuntimeError, match="planned"):
        made.add_ones(made.zero(), ones, np.zeros(4, np.int32), None)
