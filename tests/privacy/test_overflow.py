"""Sums are exact whatever the number of rows: overflow is excluded when a run is planned."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers import ask, planned, table_rows, table_schema
from kinds import KINDS, VALUES, Kind

import limbeck as lk
from limbeck.accounting import SIGMA
from limbeck.data.dataset import ROWS_AT_MOST
from limbeck.privacy import Noise, Planned, Private, Sum, Unit
from limbeck.privacy.grid import STEPS_AT_MOST, GridSum
from limbeck.privacy.questions.outer import MOST_ROWS, UNIT, ProductGrid

LEAST = SIGMA / STEPS_AT_MOST
"""The smallest noise multiplier that is planned."""
MOST = np.iinfo(np.int64).max
GAUSSIAN = [k for k in [*KINDS, Kind("values", VALUES)] if "Laplace" not in k.name]


@pytest.mark.parametrize("kind", GAUSSIAN, ids=lambda k: k.name)
def test_noise_too_small_for_its_grid_is_refused_when_planned(kind: Kind) -> None:
    unit, question = Unit(), kind.question
    for multiplier in (LEAST * 0.1, 1e-300):  # a teacher that changes its mind counts several times
        charges = [replace(c, noise_multiplier=multiplier) for c in question.charges(unit)]
        with pytest.raises(lk.LimbeckError, match="too little"):
            question.calibrated(charges, unit)
    for multiplier in (LEAST * 2, 0.0):  # without noise the grid is the bound's
        charges = [replace(c, noise_multiplier=multiplier) for c in question.charges(unit)]
        question.calibrated(charges, unit)


def test_a_plan_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.privacy.grid.STEPS_AT_MOST", 2**10)
    with pytest.raises(lk.LimbeckError, match=r"too little .* smaller epsilon"):
        lk.plan(lk.Marginals(), table_schema(), lk.Budget(1.0))


def test_totals_of_the_most_rows_fit() -> None:
    grid = GridSum(bound=1.0, noise=LEAST, groups=1, size=1)
    most = ROWS_AT_MOST * grid.unit + 20 * SIGMA  # noise beyond 14 deviations cannot be drawn
    assert grid.unit <= STEPS_AT_MOST and most < MOST
    noisy = grid.finalise(np.full((1, 1), ROWS_AT_MOST * grid.unit), Noise.from_seed(0).stream("n"))
    assert abs(noisy[0, 0] / ROWS_AT_MOST - 1) < 1e-6
    products = ProductGrid(bound=1.0, noise=LEAST, left=3, right=3)
    assert ROWS_AT_MOST * UNIT**2 < MOST and MOST_ROWS * UNIT**2 <= 2**53
    steps = products.in_steps(np.asarray([ROWS_AT_MOST * UNIT**2]))
    assert 0 < steps[0] < MOST - 20 * SIGMA


def test_more_rows_at_once_than_float64_adds_up_are_refused() -> None:
    grid = GridSum(bound=1.0, noise=LEAST, groups=1, size=1)
    rows = np.zeros(2**53 // grid.unit + 1)
    with pytest.raises(RuntimeError, match="exactly"):
        grid.accumulate(rows[:, None], rows.astype(np.int64))


@pytest.mark.parametrize("multiplier", [2.0**-8, 1.0, 3.7, 1000.0])
def test_large_totals_of_products_reach_the_grid_exactly(multiplier: float) -> None:
    """O29: float64 rounds totals of more than some million rows, and so did the sums."""
    grid = ProductGrid(bound=2.0, noise=2.0 * multiplier, left=3, right=3)
    rng = np.random.default_rng(0)
    totals = [0, 1, -1, *(int(rng.integers(2**k)) for k in range(1, 62)), ROWS_AT_MOST * UNIT**2]
    ratio = Fraction(grid.bound / UNIT**2 / grid.step)
    for total in totals:
        # One row more moves its coordinate by at most one product, 2^32.
        for neighbour in (total, total - UNIT**2):
            (found,) = grid.in_steps(np.asarray([neighbour]))
            assert abs(int(found) - neighbour * ratio) <= Fraction(505, 1000)


@pytest.mark.parametrize("paid", [True, False])
def test_more_rows_than_can_be_added_up_are_refused_before_paying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paid: bool
) -> None:
    monkeypatch.setattr("limbeck.data.dataset.ROWS_AT_MOST", 50)
    data = lk.read(table_rows(57 if paid else 50), table_schema())
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    method = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
    if not paid:
        lk.distill(data, method, lk.Budget(1.0), ledger=book, seed=0)
        return
    with pytest.raises(lk.LimbeckError, match="more rows") as refused:
        lk.distill(data, method, lk.Budget(1.0), ledger=book, seed=0)
    assert "57" not in str(refused.value)
    assert book.accounts() == [] and not list(book.jobs.glob("*"))


@pytest.mark.parametrize("multiplier", [math.nan, -1.0])
def test_a_question_without_known_noise_is_not_answered(multiplier: float) -> None:
    """O30: noise that was never calibrated counted as none, and the answer was exact."""
    question = Sum(name="sum", bound=1.0, size=1, groups=3)
    charges = tuple(replace(c, noise_multiplier=multiplier) for c in question.charges(Unit()))
    with pytest.raises(RuntimeError, match="without noise"):
        Private(
            lk.read(table_rows(5), table_schema()),
            [Planned(question=question, charges=charges)],
            Unit(),
            Noise.from_seed(0),
        )


def test_values_of_rows_without_a_label_are_not_found() -> None:
    rows = table_rows(300)
    rows.loc[:99, "town"] = "nowhere"
    data = lk.read(rows, table_schema())
    assert "nowhere" in ask(data, VALUES, epsilon=10.0).ask(VALUES.name).values
    rows.loc[:99, "ill"] = "who knows"
    data = lk.read(rows, table_schema())
    assert "nowhere" not in ask(data, VALUES, epsilon=10.0).ask(VALUES.name).values


def test_values_that_no_row_holds_get_no_count() -> None:
    """O31: a dictionary may name values of rows that are gone; noise alone could publish them."""
    rows = table_rows(300)
    rows["town"] = rows["town"].astype("category").cat.add_categories(["gone"])
    mechanism = VALUES.calibrated(planned(VALUES)[0].charges, Unit())
    (raw,) = lk.read(rows, table_schema())._values("town")
    assert "gone" in raw.distinct  # type: ignore[union-attr]
    assert "gone" not in mechanism.accumulate(mechanism.zero(), None, raw)
