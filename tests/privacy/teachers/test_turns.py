"""Teachers that take turns: a record is told of in those of one alone, and pays for no more."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import ask, table_rows
from kinds import Swayed, data

from limbeck.privacy import Faculty, Noise, RowAccess, Turns, Unit
from limbeck.privacy.teachers.ensemble import Ensemble

TURNS = Turns(name="turns", size=6, count=8, teachers=3)
ASKED = {"question": jnp.zeros(2)}


def steps(rows: Any, **kind: Any) -> np.ndarray:
    """The answers (steps, size) without noise."""
    faculty = Faculty(Swayed(6, count=3, batch=40))
    with ask(data(rows), TURNS, multiplier=0.0, **kind).steps("turns", faculty) as step:
        return np.concatenate([step(ASKED)[0].values for _ in range(TURNS.steps)])


def test_a_record_pays_for_the_turns_of_its_teacher() -> None:
    """Brute force over every row: it moves the answers of one teacher, so no more steps than are charged."""
    rows = table_rows(30, seed=3)
    (charge,) = TURNS.charges(Unit())
    assert charge.steps == TURNS.rounds == 3 and charge.sensitivity == 2.0
    whole, most, teachers = steps(rows), 0.0, set()
    for gone in range(len(rows)):
        moved = np.linalg.norm(whole - steps(rows.drop(index=gone)), axis=1)
        assert (moved**2).sum() <= charge.steps * charge.sensitivity**2 * (1 + 1e-9)
        own = {int(t) % TURNS.teachers for t in np.flatnonzero(moved)}
        assert len(own) <= 1
        teachers |= own
        most = max(most, (moved**2).sum())
    assert teachers == {0, 1, 2} and most > 0.6 * charge.steps * charge.sensitivity**2


def test_a_replaced_record_pays_for_the_turns_of_two_teachers() -> None:
    rows, others = table_rows(20, seed=3), table_rows(20, seed=8)
    (charge,) = TURNS.charges(Unit(adjacency="replace-one"))
    whole, limit = steps(rows), charge.steps * charge.sensitivity**2
    found = []
    for place in range(len(rows)):
        changed = rows.copy()
        changed.iloc[place] = others.iloc[place]
        moved = np.linalg.norm(whole - steps(changed), axis=1)
        assert (moved**2).sum() <= limit * (1 + 1e-9)
        found.append(len({int(t) % TURNS.teachers for t in np.flatnonzero(moved)}))
    assert max(found) == 2


@pytest.mark.parametrize(("count", "turns"), [(1, 1), (3, 1), (4, 2), (9, 3), (10, 4)])
def test_no_teacher_has_more_turns_than_are_charged(count: int, turns: int) -> None:
    asked = Turns(name="x", size=4, count=count, teachers=3)
    (charge,) = asked.measured()
    busiest = np.bincount(np.arange(count) % 3).max()
    assert charge.steps == turns == busiest and asked.steps == count


def test_other_teachers_than_planned_are_refused() -> None:
    """Fewer of them would have more turns each than are charged."""
    private = ask(data(table_rows(9)), TURNS)
    with (
        pytest.raises(RuntimeError, match="planned for 3 teachers"),
        private.steps("turns", Faculty(Swayed(6, count=2))) as step,
    ):
        step(ASKED)


def test_a_teacher_goes_on_where_its_last_turn_ended() -> None:
    """What it has learned stays inside until its last turn, and then is forgotten."""
    held = RowAccess(
        data=data(table_rows(30)), noise=Noise.from_seed(0), progress=lambda done: None
    )
    ensemble = Ensemble.of_rows(Faculty(Swayed(6, count=3, batch=2)), held)
    for last in (False, False, True):
        ensemble.ask_one(1, jnp.zeros(2), last=last)
        state, seen = ensemble._alone.get(1, (None, 0))
        assert (state is None) == last and list(ensemble._alone) == ([] if last else [1])
        assert last or seen in (1, 2)
