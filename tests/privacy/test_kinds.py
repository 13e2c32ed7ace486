"""Laws that every kind of question keeps: noise as charged, sensitivity as priced, rows counted once."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import ask, planned, table_rows
from kinds import (
    CHOICE,
    KINDS,
    SCHEMA,
    VALUES,
    Inquiry,
    Kept,
    Kind,
    answers,
    data,
    distance,
    inserted,
    moved,
    partial,
    strange_rows,
)

import limbeck as lk
from limbeck.ledger import Job
from limbeck.privacy import (
    BareRows,
    Gradients,
    Histogram,
    MapSpec,
    Measurement,
    Noise,
    Question,
    StateCounts,
    Unit,
    Votes,
)

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
each_answer = pytest.mark.parametrize("kind", [*KINDS, CHOICE], ids=lambda k: k.name)
UNSAMPLED = [kind for kind in KINDS if not isinstance(kind.question, Gradients)]
each_unsampled = pytest.mark.parametrize("kind", UNSAMPLED, ids=lambda k: k.name)
BOTH = [Unit(), Unit(adjacency="replace-one")]
MULTIPLIER = 5.0


def test_every_kind_is_under_the_laws() -> None:
    """Every class of questions that there is has a row of the table, or laws of its own."""

    def kinds_of(kind: type[Question]) -> set[type[Question]]:
        return {kind}.union(*map(kinds_of, kind.__subclasses__()))

    covered = {type(kind.question) for kind in [*KINDS, CHOICE]} | {
        type(VALUES),
        BareRows,
        Question,
    }
    assert {k for k in kinds_of(Question) if k.__module__.startswith("limbeck.")} <= covered


# ---- (a), (b) noise --------------------------------------------------------------------------


@each_kind
def test_noise_is_what_was_charged_and_never_used_twice(kind: Kind) -> None:
    """Deviation, law and what is said of both; fresh for every step, question and run."""
    given, drawn = data(table_rows(4)), {}
    other = replace(kind, question=replace(kind.question, name="another"))
    charges = planned(kind.question, multiplier=MULTIPLIER)[0].charges
    for seed in range(2000 // min(kind.coordinates) + 1):
        exact = answers(kind, given, multiplier=0.0, noise=Noise.from_seed(seed))
        assert all(answer.law == "none" and answer.noise == 0 for step in exact for answer in step)
        for asked in (kind, other):
            noise = Noise.from_seed(seed)
            found = answers(asked, given, multiplier=MULTIPLIER, noise=noise)
            for number, step in enumerate(found):
                for charge, answer, true in zip(charges, step, exact[number], strict=True):
                    assert answer.noise == charge.noise and answer.law == charge.mechanism
                    key = (asked.question.name, number, charge.name)
                    drawn.setdefault(key, []).append((answer.values - true.values).ravel())
    noises = {key: np.concatenate(parts) for key, parts in drawn.items()}
    for (*_, name), noise in noises.items():
        charge = next(c for c in charges if c.name == name)
        _check_law(noise, charge.noise, charge.mechanism)
    for one, two in combinations(noises.values(), 2):
        size = min(len(one), len(two))  # the largest entries are fewer than the votes
        assert abs(np.corrcoef(one[:size], two[:size])[0, 1]) < 5 / math.sqrt(size)


def _check_law(noise: np.ndarray, scale: float, mechanism: str) -> None:
    """Mean and deviation within five errors; the mean size tells Gaussian from Laplace noise."""
    wanted, size, error = scale, scale * math.sqrt(2 / math.pi), math.sqrt(1 / 2 / len(noise))
    if mechanism == "discrete laplace":
        ratio = math.exp(-1 / scale)
        wanted, size = math.sqrt(2 * ratio) / (1 - ratio), 2 * ratio / (1 - ratio**2)
        error = math.sqrt(5 / 4 / len(noise))
    assert abs(noise.mean()) < 5 * wanted / math.sqrt(len(noise))
    assert np.std(noise) == pytest.approx(wanted, rel=5 * error)
    assert np.abs(noise).mean() == pytest.approx(size, abs=0.045 * wanted)


@each_answer
def test_in_law_mode_only_noise_is_left(kind: Kind) -> None:
    seen = []
    for rows in (table_rows(5), table_rows(30, seed=4).assign(ill="unsure")):
        noise = Noise.from_seed(1, law=True)
        found = answers(kind, data(rows), multiplier=MULTIPLIER, noise=noise)
        seen.append(np.concatenate([a.values.ravel() for step in found for a in step]))
    assert np.array_equal(*seen)
    assert np.std(seen[0]) > 0


# ---- (c) neighbours --------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "size"), [("discrete gaussian", 2), ("discrete laplace", 4)])
def test_answers_differ_by_the_norm_of_their_noise(mechanism: str, size: float) -> None:
    """A kind with Laplace noise is not under-charged unnoticed: its sensitivity is in L1."""
    charge = replace(KINDS[0].question.measured()[0], mechanism=mechanism)
    one, two = (Measurement(np.full((2, 2), value), 1.0, mechanism) for value in (3.0, 2.0))
    assert moved(charge, one, two) == size


def _moves(kind: Kind, one: lk.Dataset, two: lk.Dataset, **asking: Any) -> list[list[float]]:
    """By how much two data sets' answers differ, noise frozen: by step and measurement."""
    return [
        [moved(*each) for each in zip(kind.question.measured(), left, right, strict=True)]
        for left, right in zip(
            answers(kind, one, **asking), answers(kind, two, **asking), strict=True
        )
    ]


@pytest.mark.parametrize("multiplier", [0.0, 1.0, 60.0])
@each_kind
def test_no_strange_neighbour_moves_an_answer_beyond_its_sensitivity(
    kind: Kind, multiplier: float
) -> None:
    rows = table_rows(12, seed=3)
    limits = [c.sensitivity for c in kind.question.charges(Unit())]
    longest = np.zeros(len(limits))
    for number, (name, one) in enumerate(strange_rows(rows).items()):
        more = inserted(rows, one, (6, 0, 12)[number % 3])
        for step in _moves(kind, data(rows), data(more), multiplier=multiplier):
            assert all(m <= c * (1 + 1e-9) for m, c in zip(step, limits, strict=True)), name
            longest = np.maximum(longest, step)
    assert longest[-1] > 0.9 * limits[-1]  # the bound is used, not hidden behind zeros


@each_kind
def test_no_row_taken_out_moves_an_answer_beyond_its_sensitivity(kind: Kind) -> None:
    """Brute force over every row that can be removed, noise frozen."""
    rows = table_rows(25, seed=3)
    rows.loc[0, "income"] = 1e12
    rows.loc[1, "ill"] = "who knows"
    limits = [c.sensitivity for c in kind.question.charges(Unit())]
    moves = []
    for gone in range(len(rows)):
        steps = _moves(kind, data(rows), data(rows.drop(index=gone)), multiplier=1.0)
        assert all(
            m <= c * (1 + 1e-12) for step in steps for m, c in zip(step, limits, strict=True)
        )
        moves.append(max(step[-1] for step in steps))
    assert max(moves) > 0.9 * limits[-1]
    # A row without a declared label is in no question, but in that for rows which do not fit.
    assert (moves[1] > 0) == isinstance(kind.question, StateCounts)


@each_unsampled
def test_replacing_one_row_is_priced_double_and_clipped_once(kind: Kind) -> None:
    """By a real plan: the charge doubles, what one row may add does not."""
    plans = [
        lk.plan(Inquiry(question=kind.question), SCHEMA, lk.Budget(1.0, 1e-5, unit.adjacency))
        for unit in BOTH
    ]
    single, double = ([c.sensitivity for c in plan.charges] for plan in plans)
    assert double == [2 * s for s in single]
    rows = table_rows(12, seed=3)
    longest = np.zeros(len(single))

    def moves(one: pd.DataFrame, two: pd.DataFrame) -> list[list[float]]:
        told = {"adjacency": "replace-one", "multiplier": plans[1].charges[-1].noise_multiplier}
        return _moves(kind, data(one), data(two), **told)

    for name, one in strange_rows(rows).items():
        swapped = inserted(rows.drop(index=5), one, 5)
        for step in moves(rows, swapped):
            assert all(m <= c * (1 + 1e-9) for m, c in zip(step, double, strict=True)), name
        for step in moves(rows, inserted(rows, one, 6)):
            assert all(m <= c * (1 + 1e-9) for m, c in zip(step, single, strict=True)), name
            longest = np.maximum(longest, step)
    assert longest[-1] > 0.9 * single[-1]


def test_sampled_questions_know_no_replacing() -> None:
    """Poisson sampling is accounted under add/remove only: no plan, and no mechanism either."""
    for kind in KINDS:
        if isinstance(kind.question, Gradients):
            with pytest.raises(lk.LimbeckError, match="add/remove"):
                lk.plan(
                    Inquiry(question=kind.question), SCHEMA, lk.Budget(1.0, 1e-5, "replace-one")
                )
            with pytest.raises(lk.LimbeckError, match="add/remove"):
                answers(kind, data(table_rows(4)), multiplier=1.0, adjacency="replace-one")


@pytest.mark.parametrize("unit", BOTH, ids=lambda u: u.adjacency)
def test_no_strange_neighbour_moves_counts_of_values_beyond_their_sensitivity(unit: Unit) -> None:
    kind, rows = Kind("values", VALUES), table_rows(12, seed=3)
    asked = planned(VALUES, multiplier=1.0, adjacency=unit.adjacency)[0]
    (charge,) = asked.charges
    whole, longest = partial(kind, data(rows), asked, unit), 0.0
    for one in strange_rows(rows).values():
        more = inserted(rows, one, 6)
        changed = more if unit.factor == 1 else more.drop(index=5).reset_index(drop=True)
        moved = distance(whole, partial(kind, data(changed), asked, unit))
        assert moved <= charge.sensitivity
        longest = max(longest, moved)
    assert longest >= 1.0


# ---- (e) parts of the rows -------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [0.0, 3.0])
@pytest.mark.parametrize("kind", [k for k in [*KINDS, CHOICE] if k.adds_up], ids=lambda k: k.name)
def test_parts_merge_to_the_same_whole_numbers(kind: Kind, multiplier: float) -> None:
    """Any split, any order, and through bytes as another process would send them."""
    rows = table_rows(90, seed=5)
    asked = planned(kind.question, multiplier=multiplier)[0]
    mechanism = kind.question.calibrated(asked.charges, Unit(), kind.row_map)
    whole = partial(kind, data(rows), asked, Unit())
    assert whole.dtype == np.int64 and whole.any()
    rng = np.random.default_rng(0)
    for cuts in ([1], [0, 45], [7, 7, 30, 89], list(range(1, 90, 11))):
        mixed = rows.iloc[rng.permutation(len(rows))]
        parts = [mixed.iloc[a:b] for a, b in pairwise([0, *cuts, len(rows)])]
        total = mechanism.zero()
        for part in rng.permutation(len(parts)):
            found = partial(kind, data(parts[part]), asked, Unit())
            total = mechanism.merge(total, mechanism.from_bytes(mechanism.to_bytes(found)))
        assert np.array_equal(total, whole), cuts
    with pytest.raises(RuntimeError, match="shapes"):
        mechanism.merge(whole, whole[..., :-1])


# ---- (f) the price is that of what is done ---------------------------------------------------


@each_kind
def test_charges_price_what_the_mechanism_does(kind: Kind) -> None:
    """Numbers that come out are the coordinates charged; a clip does not know the neighbours."""
    charges = kind.question.charges(Unit())
    assert [c.coordinates for c in charges] == kind.coordinates
    assert charges == kind.question.measured()
    assert all(c.steps == kind.paid for c in charges)
    assert len(kind.question.split) == len(charges) and math.isclose(sum(kind.question.split), 1)
    if isinstance(kind.question, Gradients):
        assert [c.sampling for c in charges] == [kind.question.rate]
        return
    assert all(c.sampling is None for c in charges)
    doubled = kind.question.charges(BOTH[1])
    for one, two in zip(charges, doubled, strict=True):
        assert two == replace(one, sensitivity=2 * one.sensitivity, coordinates=2 * one.coordinates)
    given = data(table_rows(9))
    one, two = (answers(kind, given, multiplier=0.0, adjacency=u.adjacency) for u in BOTH)
    for left, right in zip(one, two, strict=True):
        for a, b in zip(left, right, strict=True):
            assert np.array_equal(a.values, b.values)


def test_charges_of_values_price_two_counts_and_a_threshold() -> None:
    (one,), (two,) = (VALUES.charges(unit) for unit in BOTH)
    assert (one.sensitivity, one.coordinates, one.threshold_delta) == (1.0, 2, 1e-6)
    assert (two.sensitivity, two.coordinates, two.threshold_delta) == (2.0, 4, 2e-6)
    for unit, charge in zip(BOTH, (one, two), strict=True):
        made = VALUES.calibrated((replace(charge, noise_multiplier=1.0),), unit)
        assert made.chance == 1e-6


@each_kind
def test_noise_that_hides_the_grid_is_refused_by_the_plan(kind: Kind) -> None:
    """A clip is never rounded away: a contribution coarser than the grid is an error."""
    if isinstance(kind.question, Histogram | Votes) or not kind.rounds:
        pytest.skip("whole counts are exact at any noise")
    with pytest.raises(lk.LimbeckError, match="larger epsilon"):
        asked = planned(kind.question, multiplier=1e9)[0]
        kind.question.calibrated(asked.charges, Unit())


# ---- (g) maps as planned ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in [*KINDS, CHOICE] if k.smaller], ids=lambda k: k.name)
def test_a_map_larger_than_planned_is_refused(kind: Kind) -> None:
    assert kind.smaller is not None
    with pytest.raises(RuntimeError, match="planned|votes of shape"):
        answers(replace(kind, question=kind.smaller), data(table_rows(5)), multiplier=1.0)


# ---- (h) answers that were given before ------------------------------------------------------


def _same(one: list[Any], two: list[Any]) -> bool:
    pairs = [(a, b) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True)]
    return all(
        np.array_equal(a.values, b.values) and (a.noise, a.law) == (b.noise, b.law)
        for a, b in pairs
    )


@each_answer
def test_a_kept_answer_is_given_again(kind: Kind) -> None:
    """Whatever the noise of the run that asks: nothing is measured a second time."""
    kept = Kept()
    first = answers(kind, data(table_rows(20)), answers=kept)
    assert len(kept.files) == sum(len(step) for step in first)
    again = answers(kind, data(table_rows(20)), answers=kept, noise=Noise.from_seed(9))
    other = answers(kind, data(table_rows(20)), noise=Noise.from_seed(9))
    assert _same(first, again) and not _same(first, other)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.question.stepwise], ids=lambda k: k.name)
def test_a_run_that_broke_off_goes_on_as_if_it_had_not(kind: Kind) -> None:
    """The second step of a resumed run is that of a whole one, though the first is not done again."""
    given, kept = data(table_rows(20)), Kept()
    straight = answers(kind, given)
    with ask(given, kind.question, answers=kept).steps(kind.question.name, kind.row_map) as step:
        step(kind.state)
    assert _same(answers(kind, given, answers=kept), straight)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.question.stepwise], ids=lambda k: k.name)
def test_a_step_at_another_state_is_another_question(kind: Kind) -> None:
    given, kept = data(table_rows(20)), Kept()
    answers(kind, given, answers=kept)
    other = replace(kind, state={name: value + 1 for name, value in kind.state.items()})
    with pytest.raises(lk.LimbeckError, match="other public values"):
        answers(other, given, answers=kept)


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        (MapSpec(factory="kinds:scaled", settings={"by": 3.0}, seed=1), {}),
        (MapSpec(factory="kinds:scaled", settings={"by": 2.0}, seed=2), {}),
        (MapSpec(factory="kinds:scaled_too", settings={"by": 2.0}, seed=1), {}),
        (MapSpec(factory="kinds:scaled", settings={"by": 2.0}, seed=1), {"shift": np.ones(5)}),
    ],
    ids=["settings", "seed", "factory", "state"],
)
def test_another_map_or_state_is_another_question(spec: MapSpec, state: dict[str, Any]) -> None:
    given, kept = data(table_rows(20)), Kept()
    question = KINDS[0].question
    asked = MapSpec(factory="kinds:scaled", settings={"by": 2.0}, seed=1)
    first = ask(given, question, answers=kept).ask("sum", asked)
    again = ask(given, question, answers=kept, noise=Noise.from_seed(3)).ask("sum", asked)
    assert np.array_equal(first.values, again.values)
    with pytest.raises(lk.LimbeckError, match="other public values"):
        ask(given, question, answers=kept).ask("sum", spec, state)


@each_answer
def test_a_job_gives_its_answers_to_the_same_question_only(kind: Kind, tmp_path: Path) -> None:
    """As above, kept in files; a step at another state, or a map of another seed, is refused."""
    given, question = data(table_rows(20)), kind.question
    with Job(tmp_path, {"a": 1}) as job:
        job.begin("run", bytes(32), "digest", {})
        first = answers(kind, given, answers=job)
        again = answers(kind, given, answers=job, noise=Noise.from_seed(9))
        assert _same(first, again)
        private = ask(given, question, answers=job)
        with pytest.raises(lk.LimbeckError, match="other public values"):
            if question.stepwise:
                with private.steps(question.name, kind.row_map, {"more": np.ones(2)}) as step:
                    step(kind.state)
            else:
                private.ask(question.name, kind.row_map, {"more": np.ones(2)})
