"""The privacy boundary: plans are kept, prices are those of the questions, nothing of the rows shows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import ask, planned, table_rows, table_schema
from kinds import CHOICE, KINDS, VALUES, Kind, answers

import limbeck as lk
from limbeck.privacy import BareRows, Gradients, Histogram, Noise, Planned, Private, Sum, Unit

SUM = Sum(name="sum", bound=1.0, size=5, groups=3)
COUNTS = Histogram(name="n", bins=3)

each_kind = pytest.mark.parametrize("kind", [*KINDS, CHOICE], ids=lambda k: k.name)


def _data(count: int = 9) -> lk.Dataset:
    return lk.read(table_rows(count), table_schema())


def test_only_planned_questions_and_only_once() -> None:
    private = ask(_data(), COUNTS)
    with pytest.raises(RuntimeError, match="not planned"):
        private.ask("other")
    private.ask("n")
    with pytest.raises(RuntimeError, match="already"):
        private.ask("n")


@each_kind
def test_a_plan_is_carried_out_in_full_and_no_further(kind: Kind) -> None:
    """Charged steps are executed steps: none less, none more."""
    question = kind.question
    private = ask(_data(), question)
    with pytest.raises(RuntimeError, match=f"{question.steps} planned, 0 done"):
        private.executed()
    if question.stepwise:
        with private.steps(question.name, kind.row_map) as step:
            step(kind.state)
            with pytest.raises(RuntimeError, match=f"{question.steps} planned, 1 done"):
                private.executed()
            for _ in range(question.steps - 1):
                step(kind.state)
            with pytest.raises(RuntimeError, match="already"):
                step(kind.state)
    else:
        private.ask(question.name, kind.row_map)
        with pytest.raises(RuntimeError, match="already"):
            private.ask(question.name, kind.row_map)
    assert private.executed() == list(planned(question)[0].charges)
    assert private.noise_of(question.name) == planned(question)[0].charges[-1].noise
    assert private.step_count(question.name) == question.steps


@each_kind
def test_a_question_is_asked_in_its_own_way(kind: Kind) -> None:
    """Once, or step after step: as it was planned."""
    private = ask(_data(), kind.question)
    with pytest.raises(RuntimeError, match="another kind"):
        if kind.question.stepwise:
            private.ask(kind.question.name, kind.row_map)
        else:
            with private.steps(kind.question.name, kind.row_map):
                pass


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": 0.01},
        {"mechanism": "discrete laplace"},
        {"mechanism": "gaussian"},
        {"steps": 3},
        {"sensitivity": 0.01},
        {"coordinates": 1},
        {"threshold_delta": 0.5},
    ],
    ids=lambda c: next(iter(c)),
)
@pytest.mark.parametrize(
    "kind",
    [*KINDS, CHOICE, Kind("values", VALUES), Kind("bare rows", BareRows())],
    ids=lambda k: k.name,
)
def test_a_question_must_be_the_one_that_was_priced(kind: Kind, change: dict[str, Any]) -> None:
    """Sampling or another mechanism is never credited to a question that does not use it."""
    for unit in (Unit(), Unit(adjacency="replace-one")):
        (asked,) = planned(kind.question, multiplier=4.0, adjacency=unit.adjacency)
        cheaper = tuple(replace(charge, **change) for charge in asked.charges)
        if cheaper == asked.charges:
            continue
        wrong = Planned(question=kind.question, charges=cheaper)
        with pytest.raises(RuntimeError, match="another kind"):
            Private(_data(), [wrong], unit, Noise.from_seed(0))


def test_charges_for_other_neighbours_are_refused() -> None:
    """Priced for one record more or less, but to be answered for one replaced."""
    for kind in [*KINDS, CHOICE]:
        (asked,) = planned(kind.question, multiplier=4.0)
        with pytest.raises(RuntimeError, match="another kind"):
            Private(_data(), [asked], Unit(adjacency="replace-one"), Noise.from_seed(0))


def test_two_charges_cannot_share_a_name() -> None:
    with pytest.raises(RuntimeError, match="same name"):
        ask(_data(), SUM, SUM)
    with pytest.raises(RuntimeError, match="same name"):
        ask(_data(), SUM, replace(COUNTS, name="sum"))


def test_rows_are_only_had_at_infinite_epsilon() -> None:
    with pytest.raises(lk.LimbeckError, match="infinity"):
        ask(_data(), BareRows()).ask("bare rows")
    private = ask(_data(), BareRows(), epsilon=math.inf)
    assert len(private.ask("bare rows").values) == 9
    assert private.executed()[0].noise_multiplier == 0


def test_nothing_of_the_rows_shows_in_a_repr() -> None:
    data = _data(987)
    data._encoded()
    assert "987" not in repr(data) + repr(ask(data, SUM))


@each_kind
def test_progress_goes_from_nothing_to_all_of_it(kind: Kind) -> None:
    seen: list[tuple[str, float]] = []
    question, noise = kind.question, Noise.from_seed(0)

    def note(phase: str, done: float) -> None:
        seen.append((phase, done))

    private = Private(_data(), planned(question), Unit(), noise, progress=note)
    if question.stepwise:
        with private.steps(question.name, kind.row_map) as step:
            for _ in range(question.steps):
                step(kind.state)
    else:
        private.ask(question.name, kind.row_map)
    parts = [done for _, done in seen]
    assert {phase for phase, _ in seen} == {question.name}
    assert parts == sorted(parts) and parts[0] > 0 and parts[-1] == 1.0


def test_poisson_is_refused_under_replacement() -> None:
    class Sampled(lk.DPMERF):
        def questions(self, schema: lk.Schema) -> list:
            first, second = super().questions(schema)
            sampled = Gradients(name="sum", clip=1.0, size=10, rate=0.2, rows=9, count=1)
            return [first, replace(second, question=sampled)]

    with pytest.raises(lk.LimbeckError, match="add/remove"):
        lk.plan(Sampled(), table_schema(), lk.Budget(1.0, 1e-5, "replace-one"))


def test_the_order_of_questions_does_not_matter() -> None:
    """Each draws from a stream of its own name."""
    kinds = [replace(k, question=replace(k.question, name=k.name)) for k in KINDS[:6]]
    alone = {k.name: answers(k, _data(), multiplier=2.0)[0][0].values for k in kinds}
    private = ask(_data(), *(k.question for k in kinds), multiplier=2.0)
    for kind in reversed(kinds):
        assert (private.ask(kind.name, kind.row_map).values == alone[kind.name]).all()


def test_states_that_differ_in_a_text_alone_are_told_apart() -> None:
    from limbeck.privacy.map_spec import public_digest

    one, two = (public_digest("", {"product": name, "x": np.ones(2)}) for name in ("a", "b"))
    assert one != two == public_digest("", {"product": "b", "x": np.ones(2)})
