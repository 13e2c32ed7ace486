"""A choice: its chances are those of permute-and-flip, and no neighbour changes them beyond the price."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from helpers import ask, asked, planned, table_rows
from kinds import CHOICE, SCHEMA, Guesses, Inquiry, data, inserted, partial, strange_rows

import limbeck as lk
from limbeck.accounting import Charge, calibrate, cost
from limbeck.privacy import Choice, Noise, Unit
from limbeck.privacy.questions.choice import FINE, permute_and_flip, utilities

BOTH = [Unit(), Unit(adjacency="replace-one")]
ONE = FINE * FINE
"""A utility of one."""
PRICED = Charge(name="c", mechanism="permute-and-flip", sensitivity=1.0, coordinates=9)


def chances(given: list[float], noise: float) -> np.ndarray:
    """Of permute-and-flip, by its definition: over all orders, who is the first to show heads."""
    heads = np.exp((np.asarray(given) - max(given)) / (2 * noise))
    found = np.zeros(len(given))
    orders = list(permutations(range(len(given))))
    for order in orders:
        left = 1.0
        for key in order:
            found[key] += left * heads[key] / len(orders)
            left *= 1 - heads[key]
    return found


@dataclass(frozen=True)
class Fixed:
    """Candidates with what a test says of them."""

    sizes: tuple[int, ...]
    expected: np.ndarray
    weights: np.ndarray
    penalties: np.ndarray


def fixed(*expected: float) -> Fixed:
    """Of one cell each."""
    size = len(expected)
    return Fixed((1,) * size, np.asarray(expected), np.ones(size), np.zeros(size))


@pytest.mark.parametrize("unit", BOTH, ids=lambda u: u.adjacency)
@pytest.mark.parametrize("multiplier", [0.37, 2.0, 11.0])
def test_measured_frequencies_are_the_chances_that_were_charged(
    unit: Unit, multiplier: float
) -> None:
    question, expected = Choice(name="c", candidates=4, cells=4), [0.0, 1.5, 4.0, 3.75]
    (asked_now,) = planned(question, multiplier=multiplier, adjacency=unit.adjacency)
    mechanism = question.calibrated(asked_now.charges, unit, fixed(*expected))
    (charge,) = asked_now.charges
    assert charge.noise == multiplier * unit.factor
    noise, draws = Noise.from_seed(3), 4000
    seen = np.zeros(4)
    for number in range(draws):
        (answer,) = mechanism.finish(mechanism.zero(), lambda c, n=number: noise.stream(f"{n}"))
        seen[answer.values] += 1
    wanted = chances(expected, charge.noise)
    error = np.sqrt(wanted * (1 - wanted) / draws)
    assert (abs(seen / draws - wanted) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_no_chance_changes_by_more_than_the_price(epsilon: float) -> None:
    """Utilities of neighbours, each moved by as much as it may be in any direction."""
    rng, largest = np.random.default_rng(0), 0.0
    for unit in BOTH:
        (charge,) = Choice(name="c", candidates=4, cells=4, epsilon=epsilon).charges(unit)
        for _ in range(40):
            given = rng.normal(0, 3 / epsilon, 4)
            for signs in np.ndindex(3, 3, 3, 3):
                near = given + (np.asarray(signs) - 1) * unit.factor
                ratio = chances(list(given), charge.noise) / chances(list(near), charge.noise)
                largest = max(largest, abs(np.log(ratio)).max())
    assert 0.9 * epsilon < largest <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("unit", BOTH, ids=lambda u: u.adjacency)
def test_no_neighbour_moves_a_utility_by_more_than_one_row(unit: Unit) -> None:
    """In whole numbers, exactly; though cells are not there and what is expected is not finite."""
    rows, guesses = table_rows(25, seed=3), Guesses()
    asked_now = planned(CHOICE.question, multiplier=1.0, adjacency=unit.adjacency)[0]
    neighbours = [inserted(rows, one, 6) for one in strange_rows(rows).values()]
    neighbours += [rows.drop(index=gone).reset_index(drop=True) for gone in range(len(rows))]
    if unit.factor == 2:
        neighbours = [inserted(rows.drop(index=5), one, 5) for one in strange_rows(rows).values()]
    whole = utilities(partial(CHOICE, data(rows), asked_now, unit), guesses)
    moves = [
        max(abs(a - b) for a, b in zip(whole, changed, strict=True))
        for near in neighbours
        for changed in [utilities(partial(CHOICE, data(near), asked_now, unit), guesses)]
    ]
    assert ONE <= max(moves) <= unit.factor * ONE
    unlabelled = inserted(rows, strange_rows(rows)["an undeclared label"], 3)
    assert utilities(partial(CHOICE, data(unlabelled), asked_now, unit), guesses) == whole


def test_a_utility_is_a_weighted_distance_less_its_penalty() -> None:
    counts = np.array([3, 0, 10, 2])
    told = Fixed(
        (2, 1, 1), np.array([1.5, 1.0, 10.25, 4.0]), np.array([0.5, 1.0, 9.0]), np.eye(3)[2]
    )
    assert utilities(counts, told) == [ONE * 5 // 4, ONE // 4, ONE]


def test_utilities_are_exact_where_floating_point_is_not() -> None:
    counts, told = np.array([1 << 40, (1 << 40) + 1]), fixed(-(2.0**40), -(2.0**40))
    one, two = utilities(counts, told)
    assert two - one == ONE


def test_the_best_are_chosen_without_noise() -> None:
    rows = data(table_rows(30))
    whole = partial(CHOICE, rows, planned(CHOICE.question, multiplier=0.0)[0], Unit())
    order = sorted(range(12), key=lambda number: (-utilities(whole, Guesses())[number], number))
    chosen = asked(rows, CHOICE.question, Guesses(), epsilon=math.inf)
    assert chosen.tolist() == order[:5]


def test_whoever_is_offered_can_be_chosen_however_far_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By coins whose chances multiply to exp(-gap / (2 noise)), exactly, and are never none."""
    thrown: list[Fraction] = []

    def heads(stream: object, numerator: int, denominator: int) -> bool:
        thrown.append(Fraction(numerator, denominator))
        return True

    monkeypatch.setattr("limbeck.privacy.questions.choice.coin_exp", heads)
    for gap in (0, 1, 7, 300):
        seen = set()
        for seed in range(30):
            thrown.clear()
            stream = Noise.from_seed(seed).stream("x")
            seen.add(permute_and_flip(stream, {0: gap * ONE, 1: 0, 2: 0}, 0.5))
            assert sum(thrown) in (gap, 0) and all(0 <= one <= 1 for one in thrown)
        assert seen == {0, 1, 2}


@pytest.mark.parametrize("beyond", [0, 1, 5, -2])
def test_a_cell_beyond_its_candidate_is_no_cell_of_another(beyond: int) -> None:
    """A map that lies: a row would count in two cells of the same candidate."""
    question = Choice(name="c", candidates=3, cells=9)
    told = Fixed((3, 2, 4), np.zeros(9), np.ones(3), np.zeros(3))
    charge = replace(question.measured()[0], noise_multiplier=1.0)
    mechanism = question.calibrated((charge,), Unit(), told)
    one = data(table_rows(1))._encoded()
    cells = np.asarray([[1, 2 + beyond if beyond >= 0 else -1, 0]])
    total = mechanism.accumulate(mechanism.zero(), one, cells)
    assert total.tolist() == [0, 1, 0, 0, 0, 1, 0, 0, 0]


def test_none_is_chosen_twice_and_noise_is_fresh() -> None:
    given, seen = data(table_rows(30)), []
    for seed in range(20):
        private = ask(given, CHOICE.question, noise=Noise.from_seed(seed), multiplier=1e15)
        answer = private.ask("choice", Guesses())
        assert answer.law == "permute-and-flip" and answer.noise == 1e15
        assert len(set(answer.values.tolist())) == 5
        seen.append(tuple(answer.values))
    assert len(set(seen)) == 20


def test_noise_is_rounded_up() -> None:
    """A gap of noise x 2 has a coin of exp(-1) or more, however odd the noise."""
    noise = 1 / 3
    gap = Fraction(noise) * 2 * ONE
    taken = [
        permute_and_flip(Noise.from_seed(seed).stream("x"), {0: math.ceil(gap), 1: 0}, noise)
        for seed in range(3000)
    ]
    wanted = math.exp(-1) / 2
    assert abs(np.mean(taken) - wanted) < 4.5 * math.sqrt(wanted * (1 - wanted) / 3000)


@pytest.mark.parametrize("steps", [1, 7, 40])
@pytest.mark.parametrize("pure", [0.05, 0.4])
def test_the_price_bounds_whatever_is_as_pure(steps: int, pure: float) -> None:
    """Randomised response tells neighbours apart as well as anything pure: its exact delta."""
    charge, budget = replace(PRICED, noise_multiplier=1 / pure, steps=steps), lk.Budget(9.0, 1e-6)
    claimed = cost([charge], budget)
    heads, count = 1 / (1 + math.exp(-pure)), np.arange(steps + 1)
    ways = np.array([math.comb(steps, k) for k in count], float)
    one = ways * heads**count * (1 - heads) ** (steps - count)
    delta = np.maximum(one - math.exp(claimed.epsilon) * one[::-1], 0).sum()
    assert delta <= budget.delta * (1 + 1e-9)
    assert claimed.epsilon <= claimed.rdp * 1.001 + 1e-3 and claimed.epsilon <= steps * pure * 1.01


def test_a_choice_has_its_own_price_or_one_by_its_share() -> None:
    counts = Charge(name="n", sensitivity=1.0, coordinates=5)
    budget = lk.Budget(1.0, 1e-6)
    own = replace(PRICED, noise_multiplier=10.0, steps=3)
    kept = calibrate([own, counts], [0.1, 0.9], budget)
    assert kept[0] == own and 0.99 < cost(kept, budget).epsilon <= 1.0
    shared = calibrate([replace(PRICED, steps=4), counts], [0.2, 0.8], budget)
    assert 0.99 < cost(shared, budget).epsilon <= 1.0
    # Squared mu is divided: four picks share what a fifth of the budget is.
    ratio = (4 / shared[0].noise_multiplier ** 2) * shared[1].noise_multiplier ** 2
    assert ratio == pytest.approx(0.25)


@pytest.mark.parametrize("unit", BOTH, ids=lambda u: u.adjacency)
def test_replacing_one_row_doubles_the_noise(unit: Unit) -> None:
    question = replace(CHOICE.question, epsilon=0.2)
    budget = lk.Budget(2.0, 1e-5, unit.adjacency)
    (charge,) = lk.plan(Inquiry(question=question), SCHEMA, budget).charges
    assert (charge.sensitivity, charge.noise) == (unit.factor, unit.factor * 5.0)
    with pytest.raises(RuntimeError, match="sensitivity"):
        question.calibrated([replace(charge, sensitivity=0.5)], unit)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"picks": 0}, "picks from 1"),
        ({"picks": 13}, "picks from 1"),
        ({"epsilon": 0.0}, "epsilon of at least"),
        ({"epsilon": math.inf}, "epsilon of at least"),
        ({"epsilon": math.nan}, "epsilon of at least"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(change: dict[str, float], words: str) -> None:
    with pytest.raises(lk.LimbeckError, match=words):
        replace(CHOICE.question, **change)  # type: ignore[arg-type]


def test_other_candidates_than_planned_are_refused() -> None:
    for change in ({"candidates": 11}, {"picks": 12, "candidates": 13, "cells": 30}):
        question = replace(CHOICE.question, **change)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="other candidates"):
            asked(data(table_rows(3)), question, Guesses())
