"""Laws of prices: every part of a charge counts, in every accountant, and delta pays for all of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from helpers import TINY, table_schema

import limbeck as lk
from limbeck.accounting import (
    ORDERS,
    Charge,
    calibrate,
    cost,
    slack,
    stopping_cost,
)
from limbeck.planning import CHECK

BUDGET = lk.Budget(10.0, 1e-5)
PLAIN = Charge(name="a", sensitivity=1.0, coordinates=7, noise_multiplier=3.0, steps=4)
SAMPLED = replace(PLAIN, name="b", sampling=0.1, steps=20, noise_multiplier=1.5)
PURE = Charge(
    name="c", mechanism="discrete laplace", sensitivity=1.0, coordinates=2, noise_multiplier=4.0
)
PICKS = replace(PURE, name="d", mechanism="permute-and-flip", steps=3, noise_multiplier=5.0)


def _event(charge: Charge, renyi: bool) -> Any:
    """A charge in dp-accounting's words, written down a second time."""
    if charge.mechanism in ("discrete laplace", "permute-and-flip"):
        pure = 1 / charge.noise_multiplier
        one = (
            dp_accounting.ZCDpEvent(pure**2 / 2)
            if renyi
            else dp_accounting.dp_event.DiscreteLaplaceDpEvent(pure, 1)
        )
    else:
        one = dp_accounting.GaussianDpEvent(charge.noise_multiplier)
        if charge.sampling is not None:
            one = dp_accounting.PoissonSampledDpEvent(charge.sampling, one)
    return dp_accounting.SelfComposedDpEvent(one, charge.steps)


@pytest.mark.parametrize(
    "charges",
    [(PLAIN, replace(PLAIN, name="z", steps=1)), (SAMPLED,), (PLAIN, PURE), (PURE, PICKS)],
    ids=lambda c: "+".join(one.name for one in c),
)
def test_every_accountant_counts_every_part_of_a_charge(charges: tuple[Charge, ...]) -> None:
    found = cost(charges, BUDGET)
    rest = BUDGET.delta - found.slack - found.threshold
    pld, rdp = PLDAccountant(), RdpAccountant(list(ORDERS))
    for charge in charges:
        pld.compose(_event(charge, False))
        rdp.compose(_event(charge, True))
    assert found.pld == pytest.approx(pld.get_epsilon(rest), rel=1e-9)
    assert found.rdp == pytest.approx(rdp.get_epsilon(rest), rel=1e-9)
    gaussian = all(c.sampling is None and c.mechanism == "discrete gaussian" for c in charges)
    assert (found.exact is not None) == gaussian
    assert found.epsilon == (found.exact if gaussian else found.pld)


def test_slack_counts_every_number_of_every_step() -> None:
    for epsilon in (0.5, 8.0):
        many = [replace(PLAIN, coordinates=c, steps=s) for c, s in ((5, 3), (10**6, 40))]
        numbers = 15 + 40 * 10**6
        wanted = (1 + math.exp(epsilon)) * (
            math.sqrt(numbers / 574) / 2.0**48 + numbers * 2.0**-115
        )
        assert slack(many, epsilon) == pytest.approx(wanted, rel=1e-12)
        assert slack([*many, PURE], epsilon) == slack(many, epsilon)


@pytest.mark.parametrize("threshold", [0.0, 4e-6])
@pytest.mark.parametrize("coordinates", [10, 10**13])
def test_calibrated_charges_cost_no_more_than_the_budget(
    coordinates: int, threshold: float
) -> None:
    """With many numbers the slack is a large part of delta; thresholds may be, too."""
    budget = lk.Budget(3.0, 1e-5)
    request = Charge(
        name="a", sensitivity=2.0, coordinates=coordinates, steps=3, threshold_delta=threshold
    )
    found = cost(calibrate([request, replace(request, name="b")], [1, 3], budget), budget)
    assert 0.999 * budget.epsilon < found.epsilon <= budget.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("charge", [PLAIN, SAMPLED], ids=["exact", "PLD"])
def test_thresholds_and_slack_leave_the_rest_of_delta(charge: Charge) -> None:
    """What is set aside makes the same charges dearer, by as much as a smaller delta would."""
    aside = cost([replace(charge, threshold_delta=6e-6)], BUDGET)
    smaller = cost([charge], lk.Budget(BUDGET.epsilon, 4e-6))
    assert aside.threshold == 6e-6 and aside.slack > 0
    assert aside.epsilon == pytest.approx(smaller.epsilon, rel=1e-6)
    assert aside.epsilon > cost([charge], BUDGET).epsilon
    many = replace(charge, coordinates=10**11)
    assert cost([many], BUDGET).epsilon > cost([charge], BUDGET).epsilon


def test_noise_is_multiplier_times_sensitivity() -> None:
    assert replace(PLAIN, sensitivity=5.0, noise_multiplier=3.0).noise == 15.0


@pytest.mark.parametrize(("rows", "delta"), [(200, 0.009), (1_500, 9e-4), (10**6, 1e-5)])
def test_delta_is_held_against_the_declared_rows(rows: int, delta: float) -> None:
    with pytest.raises(lk.LimbeckError, match="1/rows"):
        lk.plan(lk.DPMERF(**TINY), table_schema(rows=rows), lk.Budget(1.0, delta))


def test_a_check_is_a_charge_of_the_plan() -> None:
    with_it = lk.plan(lk.DPMERF(**TINY), table_schema(), lk.Budget(1.0, 1e-5), check=True)
    without = lk.plan(lk.DPMERF(**TINY), table_schema(), lk.Budget(1.0, 1e-5))
    assert [c.name for c in with_it.charges] == [CHECK, *(c.name for c in without.charges)]
    assert with_it.cost.epsilon <= 1.0 + 1e-9 and 0 < with_it.check_cost.epsilon < 0.2
    rest = list(with_it.charges)[1:]
    assert cost(rest, with_it.budget).epsilon < with_it.cost.epsilon


def test_a_plan_refuses_sampling_under_replacement_before_any_mechanism_does() -> None:
    from helpers import FEW

    with pytest.raises(lk.LimbeckError, match="use adjacency = add-remove"):
        lk.plan(lk.DPKIP(**FEW), table_schema(), lk.Budget(1.0, 1e-5, "replace-one"))


# ---- random stopping -------------------------------------------------------------------------


def test_the_best_of_many_runs_costs_more_than_one() -> None:
    alone = cost([PLAIN], BUDGET)
    prices = [stopping_cost([[PLAIN]], BUDGET, mean).epsilon for mean in (2.0, 8.0)]
    assert alone.rdp < prices[0] < prices[1] < 8 * alone.epsilon


def test_delta_of_random_stopping_pays_for_every_run() -> None:
    """Slack and thresholds are those of the dearest alternative, times the mean number of runs."""
    costly = replace(PLAIN, threshold_delta=3e-7, coordinates=10**9)
    cheap = replace(PLAIN, noise_multiplier=30.0)
    for alternatives in ([[cheap], [costly]], [[costly], [cheap]]):
        found = stopping_cost(alternatives, BUDGET, 4.0)
        assert found.threshold == pytest.approx(4 * 3e-7)
        assert found.slack == pytest.approx(4 * slack([costly], BUDGET.epsilon))
        assert found.epsilon == pytest.approx(stopping_cost([[costly]], BUDGET, 4.0).epsilon)
        assert found.epsilon > 2 * stopping_cost([[cheap]], BUDGET, 4.0).epsilon
    assert np.isfinite(found.epsilon)
