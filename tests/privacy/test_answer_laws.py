"""Laws of every kind of question that need no rows: the noise of each number, rounding, charges."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers import ask, planned, table_rows, table_schema
from kinds import CHOICE, KINDS, Kind, Swayed, answers, data, partial
from scipy.special import ndtri

import limbeck as lk
from limbeck.accounting import cost
from limbeck.data import Rows
from limbeck.data.persons import Sharing
from limbeck.privacy import (
    Faculty,
    FrequentValues,
    Gradients,
    Histogram,
    LaplaceHistogram,
    Stream,
    Unit,
    Votes,
    estimates,
    maps,
)
from limbeck.privacy.estimate import values as _values
from limbeck.privacy.grid import GridSum
from limbeck.privacy.questions import laplace_histogram as _laplace
from limbeck.privacy.questions.outer import ProductGrid

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
DRAWS = 500


@each_kind
def test_noise_of_every_number_is_as_charged_and_its_own(kind: Kind) -> None:
    """Each number of an answer has the charged deviation, and no two have noise in common."""
    question = kind.question
    charges = planned(question, multiplier=4.0)[0].charges
    mechanism = question.calibrated(charges, Unit(), kind.row_map)
    drawn: dict[str, list[np.ndarray]] = {}
    for number in range(DRAWS):
        secret = number.to_bytes(32, "little")
        found = mechanism.finish(mechanism.zero(), lambda c, s=secret: Stream(s, c.name))
        for charge, answer in zip(charges, found, strict=True):
            drawn.setdefault(charge.name, []).append(np.ravel(answer.values))
    for charge in charges:
        noise = np.stack(drawn[charge.name])
        wanted, peaked = charge.noise, 0.5  # (kurtosis - 1) / 4
        if charge.mechanism == "discrete laplace":
            ratio = math.exp(-1 / charge.noise)
            wanted, peaked = math.sqrt(2 * ratio) / (1 - ratio), 1.25
        rough = 6 * math.sqrt(peaked / DRAWS)
        assert np.std(noise, axis=0) == pytest.approx(wanted, rel=rough)
        assert np.std(noise) == pytest.approx(wanted, rel=6 * math.sqrt(peaked / noise.size))
        assert np.abs(noise.mean(axis=0)).max() < 6 * wanted / math.sqrt(DRAWS)
        if noise.shape[1] > 1:
            apart = np.corrcoef(noise.T) - np.eye(noise.shape[1])
            assert np.abs(apart).max() < 6 / math.sqrt(DRAWS)


@pytest.mark.parametrize("kind", [*KINDS, CHOICE], ids=lambda k: k.name)
def test_every_kind_charges_as_many_steps_as_it_takes(kind: Kind) -> None:
    assert {charge.steps for charge in kind.question.measured()} == {kind.paid}


@each_kind
def test_float_sums_are_told(kind: Kind) -> None:
    """Sums that are not of whole numbers all the way are named, for the certificate."""
    private = ask(data(table_rows(3)), kind.question, multiplier=1.0)
    if kind.question.stepwise:
        with private.steps(kind.question.name, kind.row_map):
            pass
    else:
        private.ask(kind.question.name, kind.row_map)
    ghost = hasattr(kind.row_map, "prepare")
    assert private.float_sums == ([kind.question.name] if ghost else [])


def test_maps_work_on_one_shape_whatever_the_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: set[tuple[int, ...]] = set()
    evaluate = maps.evaluate

    def spy(row_map: Any, *arrays: Any) -> Any:
        seen.update(np.shape(array) for array in arrays)
        return evaluate(row_map, *arrays)

    monkeypatch.setattr(maps, "evaluate", spy)
    shapes = []
    for count in (1, 63, 65, 130):
        seen.clear()
        answers(KINDS[0], data(table_rows(count)), multiplier=1.0)
        shapes.append(set(seen))
    assert all(shape == shapes[0] for shape in shapes) and shapes[0]


# ---- rounding --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_at_most", [1, 3, 9])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_rounding_never_carries_a_row_beyond_its_bound(size: int, rows_at_most: int) -> None:
    """On a coarse grid, whatever the rows are: within the bound together, and not thrown away."""
    coarse = 2.0**24 / 200.0  # noise over bound: 200 grid steps to the bound
    grid = GridSum(bound=1.0, noise=coarse, groups=1, size=size, rows_at_most=rows_at_most)
    rng = np.random.default_rng(0)
    weights = np.full(rows_at_most, 1 / rows_at_most)
    for _ in range(200):
        one = np.repeat(rng.normal(size=(1, size)), rows_at_most, axis=0) * 10 ** rng.uniform(-1, 9)
        one += rng.normal(size=one.shape) * 1e-3
        total = grid.accumulate(one, np.zeros(rows_at_most, np.int64), weights)
        norm = np.linalg.norm(total.astype(np.float64))
        assert norm <= grid.bound / grid.grid
        if np.linalg.norm(one[0]) > 2:
            assert norm > 0.8 * grid.limit - math.sqrt(size)


@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (9, 9)])
def test_rounding_never_carries_a_product_beyond_its_bound(shape: tuple[int, int]) -> None:
    left, right = shape
    grid = ProductGrid(bound=1.0, noise=2.0**24 / 300.0, left=left, right=right)
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = rng.normal(size=(1, left)) * 10 ** rng.uniform(-3, 6)
        rounded, norms = grid.round_left(rows)
        others = grid.round_right(rng.normal(size=(1, right)) * 10 ** rng.uniform(0, 6), norms)
        product = (rounded.astype(np.float64).T @ others).astype(np.int64).ravel()
        before = rng.integers(-(2**40), 2**40, left * right)
        moved = grid.in_steps(before + product) - grid.in_steps(before)
        assert np.linalg.norm(moved.astype(np.float64)) <= grid.bound / grid.step


# ---- counts ----------------------------------------------------------------------------------


def test_rows_that_are_not_kept_enter_no_count_of_their_own() -> None:
    """Even if they had a bin: of a person with two kept rows of three, each counts for a half."""
    question = Histogram(name="counts", bins=2)
    charge = replace(question.measured()[0], noise_multiplier=1.0)
    mechanism = question.calibrated((charge,), Unit(person=True, rows_at_most=2))
    sharing = Sharing(
        np.ones((3, 2), np.uint64), np.asarray([0, -1, 1], np.int32), np.asarray([2, 0, 2])
    )
    batch = Rows(np.zeros((3, 1)), np.zeros(3, np.int32), None, sharing)
    total = mechanism.accumulate(mechanism.zero(), batch, np.asarray([0, 1, 0]))
    assert total.tolist() == [2 * (mechanism.grid.unit // 2), 0]


COUNTING: dict[str, Any] = {
    "histogram": (Histogram(name="c", bins=4), None),
    "histogram, Laplace": (LaplaceHistogram(name="c", bins=4, epsilon=1.0), None),
    "choice": (CHOICE.question, CHOICE.row_map),
}
"""Kinds of question that count rows for whole parts of a person, with their maps."""


@pytest.mark.parametrize("kept", [2, 3, 5, 7, 11])
@pytest.mark.parametrize("name", COUNTING)
def test_whole_parts_of_a_person_are_no_more_than_one(name: str, kept: int) -> None:
    """To the last grid step: however many rows share it, all in one bin; one more is not kept."""
    question, row_map = COUNTING[name]
    charge = replace(question.measured()[0], noise_multiplier=1.0)
    unit = Unit(person=True, rows_at_most=kept)
    mechanism = question.calibrated((charge,), unit, row_map)
    count, ranks = kept + 1, np.r_[np.arange(kept), -1].astype(np.int32)
    shares = np.where(ranks < 0, 0, kept)
    sharing = Sharing(np.ones((count, 2), np.uint64), ranks, shares)
    rows = Rows(np.zeros((count, 1)), np.zeros(count, np.int32), None, sharing)
    each = (count, len(row_map.sizes)) if row_map is not None else (count,)
    total = mechanism.accumulate(mechanism.zero(), rows, np.zeros(each, np.int64))
    assert mechanism.whole - kept < total.max() <= mechanism.whole


def test_a_count_in_grid_steps_is_no_more_than_it_was_charged_as() -> None:
    """What one row adds, in whole steps, is no longer than the bound, for any ratio of both."""
    for noise in (0.3, 1.0, 2.7, 19.03):
        grid = GridSum(bound=1.0, noise=noise, groups=2, size=1)
        assert grid.unit * grid.grid <= grid.bound < (grid.unit + 1) * grid.grid


@pytest.mark.parametrize("epsilon", [0.1, 0.37, 3.0])
def test_laplace_noise_is_never_less_than_was_charged(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[Fraction] = []

    def spy(stream: Stream, scale: Fraction, count: int) -> np.ndarray:
        scales.append(scale)
        return np.zeros(count, np.int64)

    monkeypatch.setattr(_laplace, "discrete_laplace", spy)
    for person in (False, True):
        question = LaplaceHistogram(name="counts", bins=2, epsilon=epsilon)
        mechanism = question.calibrated(question.measured(), Unit(person=person, rows_at_most=2))
        mechanism.finish(mechanism.zero(), lambda c: Stream(bytes(32), c.name))
        noise = scales.pop() / mechanism.whole
        assert Fraction(question.measured()[0].noise) <= noise <= Fraction(1.0001 / epsilon) + 1


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_pure_question_costs_the_epsilon_that_it_names(epsilon: float) -> None:
    counts = LaplaceHistogram(name="counts", bins=3, epsilon=epsilon)
    found = cost(counts.charges(Unit()), lk.Budget(10.0, 1e-12))
    assert found.epsilon == pytest.approx(epsilon, rel=1e-3)
    picks = replace(CHOICE.question, picks=3, epsilon=epsilon)
    found = cost(picks.charges(Unit()), lk.Budget(10.0, 1e-12))
    assert 2 * epsilon < found.epsilon <= 3 * epsilon * 1.001


def test_a_row_without_a_label_is_in_no_utility() -> None:
    charge = replace(CHOICE.question.measured()[0], noise_multiplier=1.0)
    mechanism = CHOICE.question.calibrated((charge,), Unit(), CHOICE.row_map)
    rows = data(table_rows(20).assign(ill="who knows"))._encoded()
    made = mechanism.evaluate(CHOICE.row_map, rows, table_schema())
    assert (made == -1).all()
    assert not mechanism.accumulate(mechanism.zero(), rows, made).any()


@pytest.mark.parametrize("kind", [KINDS[1], KINDS[4]], ids=lambda k: k.name)
def test_rows_without_a_label_add_nothing_to_the_one_sum(kind: Kind) -> None:
    """Where all rows are of one sum, those without a declared label are still of none."""
    one = replace(kind, question=replace(kind.question, groups=1))
    asked = planned(one.question, multiplier=1.0)[0]
    for label in ("who knows", None):
        assert not partial(one, data(table_rows(9).assign(ill=label)), asked, Unit()).any()
    assert partial(one, data(table_rows(9)), asked, Unit()).any()


@dataclass(frozen=True)
class Greedy(Swayed):
    """A teacher that takes whatever it is shown for its own."""

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return state + rows.sum() + 1.0


def test_a_teacher_without_rows_has_seen_none() -> None:
    """One row among many teachers changes what one of them says, however greedy the others are."""
    teacher = Greedy(4, bins=3, count=40)
    question = Votes(name="votes", coordinates=4, bins=3, count=1)
    kind = Kind("votes", question, Faculty(teacher), {"question": np.zeros(2)})
    asked = planned(question, multiplier=1.0)[0]
    none = partial(kind, data(table_rows(3).iloc[:0]), asked, Unit())
    for at in range(6):
        one = partial(kind, data(table_rows(9).iloc[[at]]), asked, Unit())
        assert np.abs(one - none).sum() in (0, 8) and none.sum() == one.sum() == 160
    assert np.count_nonzero(none) == 4


# ---- thresholds ------------------------------------------------------------------------------


def test_values_come_by_their_noisy_counts_alone() -> None:
    """Which pass, and in what order: as it follows from counts with their noise, drawn a second time."""
    question = FrequentValues(name="v", column="town", most=4, threshold_delta=0.2)
    charge = replace(question.charges(Unit())[0], noise_multiplier=6.0)
    mechanism = question.calibrated((charge,), Unit())
    true = Counter({f"v{number}": 10 + number // 2 for number in range(12)} | {"many": 900})
    names, differ = sorted(true), 0
    for seed in range(6):
        secret = bytes([seed]) * 32
        grid = GridSum(bound=1.0, noise=charge.noise, groups=len(names), size=1)
        whole = np.asarray([[true[name] * grid.unit] for name in names])
        noisy = grid.finalise(whole, Stream(secret, "v"))[:, 0]
        order = [names[place] for place in np.argsort(-noisy, kind="stable")]
        (found,) = mechanism.finish(true, lambda c, s=secret: Stream(s, c.name))
        assert found.values.tolist() == order[:4]
        differ += order[1:4] != [name for name, _ in true.most_common(4)][1:]
    assert differ
    loud = replace(question, most=None)
    charge = replace(charge, noise_multiplier=40.0)  # some of many rows do not pass, some of few do
    mechanism = loud.calibrated((charge,), Unit())
    grid = GridSum(bound=1.0, noise=charge.noise, groups=len(names), size=1)
    whole = np.asarray([[true[name] * grid.unit] for name in names])
    noisy = grid.finalise(whole, Stream(bytes(32), "v"))[:, 0]
    (found,) = mechanism.finish(true, lambda c: Stream(bytes(32), c.name))
    passed = noisy >= 1 - charge.noise * ndtri(0.2)
    assert set(found.values.tolist()) == {n for n, one in zip(names, passed, strict=True) if one}
    assert 2 <= passed.sum() <= len(names) - 4


@pytest.mark.parametrize("chance", [1e-3, 1e-7])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_lone_value_passes_no_more_often_than_was_charged(
    chance: float, adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise from which on a lone value passes is the one that is so rare."""
    unit = Unit(adjacency=adjacency)
    question = FrequentValues(name="v", column="town", most=None, threshold_delta=chance)
    charge = replace(question.charges(unit)[0], noise_multiplier=7.0)
    mechanism = question.calibrated((charge,), unit)
    rare = -ndtri(chance) * charge.noise
    for noise, passes in ((rare - 1e-3, 0), (rare + 1e-3, 1)):
        steps = int(noise / mechanism.grid.grid)
        monkeypatch.setattr(
            "limbeck.privacy.grid.discrete_gaussian",
            lambda stream, count, s=steps: np.full(count, s, np.int64),
        )
        lone = Counter({"alone": 1})
        found = mechanism.finish(lone, lambda c: Stream(bytes(32), c.name))
        assert len(found[0].values) == passes


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_thresholds_of_all_columns_share_their_part_of_delta(adjacency: str) -> None:
    columns = [lk.Category(name=f"c{i}", most=5) for i in range(4)]
    schema = table_schema(columns=(*columns, *table_schema().columns))
    budget = lk.Budget(1.0, 1e-5, adjacency)
    unit = Unit.of(budget, schema)
    asked = estimates(tuple(c.name for c in columns), schema, budget)
    charges = [charge for one in asked for charge in one.question.charges(unit)]
    assert len(charges) == 4
    total = sum(charge.threshold_delta for charge in charges)
    assert total == pytest.approx(0.05 * budget.delta)
    assert _values.values_name(columns[0]) == charges[0].name


# ---- sampling --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-3, 0.25, 1.0])
def test_batches_are_drawn_at_the_rate_that_is_charged(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Gradients(name="g", clip=1.0, size=3, rate=rate, rows=1000, count=4)
    (charge,) = question.measured()
    mechanism = question.calibrated((replace(charge, noise_multiplier=1.0),), Unit())
    assert mechanism.batches.probability == charge.sampling == rate
    drawn: list[float] = []

    class Spy:
        def heads(self, probability: float, stream: Stream) -> np.ndarray:
            drawn.append(probability)
            return np.zeros(0, np.int64)

    mechanism.batches.draw(Spy(), Stream(bytes(32), "coins"))  # type: ignore[arg-type]
    assert drawn == [rate]
