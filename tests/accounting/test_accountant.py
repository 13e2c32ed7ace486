"""Charges, epsilons, calibration."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np
import pytest

from limbeck import Budget, LimbeckError
from limbeck.accounting import (
    Charge,
    calibrate,
    cost,
    gaussian_bound,
    gaussian_delta,
    gaussian_epsilon,
    mu_for,
    pure_mu,
    removable_noise,
    slack,
    without_warnings,
)
from limbeck.errors import LimbeckWarning
from limbeck.privacy import Sum, Unit

ONE = Charge(name="one", sensitivity=1.0, coordinates=1)


def test_budget_refuses_nonsense() -> None:
    for bad in ({"epsilon": 0}, {"epsilon": 1, "delta": 0}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(LimbeckError):
            Budget(**bad)
    with pytest.raises(LimbeckError, match="1/rows"):
        Budget(1.0, 1e-3).check_rows(5000)
    Budget(1.0, 1e-5).check_rows(5000)


@pytest.mark.parametrize(("rows", "delta"), [(None, 0.5), (None, 1.1e-3), (1, 0.5), (100, 2e-3)])
def test_no_number_of_rows_allows_any_delta(rows: int | None, delta: float) -> None:
    with pytest.raises(LimbeckError, match=f"delta <= 0.001, got {delta:g}"):
        Budget(1.0, delta).check_rows(rows)
    Budget(math.inf, 0.5).check_rows(rows)  # nothing is promised there


@pytest.mark.parametrize(("rows", "delta"), [(5000, 2.1e-5), (5000, 2e-4), (None, 1.1e-5)])
def test_a_delta_near_its_limit_is_warned_of(rows: int | None, delta: float) -> None:
    with pytest.warns(LimbeckWarning, match=f"delta {delta:g} is large"):
        Budget(1.0, delta).check_rows(rows)
    Budget(1.0, 0.1 / rows if rows else 1e-5).check_rows(rows)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (10.0, 0.49989)])
def test_known_noise_for_one_gaussian(epsilon: float, sigma: float) -> None:
    [charge] = calibrate([ONE], [1.0], Budget(epsilon))
    assert charge.noise_multiplier == pytest.approx(sigma, rel=2e-5)


@pytest.mark.parametrize("count", [2, 7, 50])
def test_equal_measurements_cost_the_root_of_their_number(count: int) -> None:
    charges = calibrate([ONE] * count, [1.0] * count, Budget(1.0))
    single = 1 / mu_for(1.0, 1e-5)
    assert charges[0].noise_multiplier == pytest.approx(single * math.sqrt(count), rel=1e-9)
    assert cost(charges, Budget(1.0)).epsilon == pytest.approx(1.0, abs=1e-9)


def test_shares_divide_the_squared_mu() -> None:
    rare, rich = calibrate([ONE, ONE], [0.1, 0.9], Budget(1.0))
    assert (rare.noise_multiplier / rich.noise_multiplier) ** 2 == pytest.approx(9.0)


def test_an_order_that_does_not_converge_is_left_out_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sampled = replace(ONE, sampling=1 / 6, steps=300)
    found = cost([replace(sampled, noise_multiplier=1.634464)], Budget(10.0))
    assert 9 < found.rdp < 13 and not caplog.records


def test_other_messages_are_nobodys_business() -> None:
    """Filters are there while a price is computed, and gone afterwards."""
    logger = logging.getLogger("absl")
    before = list(logger.filters)
    assert not before
    sampled = replace(ONE, sampling=1 / 6, steps=300, noise_multiplier=1.5)
    cost([sampled], Budget(10.0))
    assert logger.filters == before
    with without_warnings():
        assert len(logger.filters) == 1
        elsewhere = logging.LogRecord("absl", 30, "", 0, "_compute_log_a_frac", (), None)
        assert not logger.filters[0](elsewhere)
        elsewhere.thread = -1
        assert logger.filters[0](elsewhere)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_slack_of_a_long_run_is_a_small_part_of_delta(epsilon: float) -> None:
    """Divergences add over steps; distances would, too, and grow with the number of steps."""
    long = Charge(name="g", sensitivity=1.0, coordinates=10**5, sampling=0.01, steps=5000)
    lost = slack([replace(long, noise_multiplier=1.0)], epsilon)
    assert 0 < lost < 0.01 * 1e-5
    whole = slack([replace(long, noise_multiplier=1.0, steps=1, coordinates=5 * 10**8)], epsilon)
    assert lost == pytest.approx(whole)
    parts = [replace(long, name=str(i), noise_multiplier=1.0, steps=50) for i in range(100)]
    assert slack(parts, epsilon) == pytest.approx(lost)


def test_noise_in_floating_point_is_priced_but_never_planned() -> None:
    old = replace(ONE, mechanism="gaussian", noise_multiplier=4.0)
    assert removable_noise([old, ONE]) == [old.name]
    assert removable_noise([replace(old, noise_multiplier=0.0)]) == []
    assert cost([old], Budget(1.0)).epsilon == pytest.approx(
        cost([replace(old, mechanism="discrete gaussian")], Budget(1.0)).epsilon, rel=1e-6
    )
    with pytest.raises(RuntimeError, match="removed"):
        calibrate([old], [1.0], Budget(1.0))


def test_three_accountants_agree() -> None:
    for epsilon in (0.1, 1.0, 10.0):
        found = cost(calibrate([ONE], [1.0], Budget(epsilon)), Budget(epsilon))
        assert found.exact == pytest.approx(epsilon, rel=1e-9)
        assert found.pld == pytest.approx(epsilon, rel=1e-3)
        assert found.pld * 0.999 < found.rdp < 1.25 * found.pld


def test_sampled_gradients_are_priced_by_pld_and_stay_within_budget() -> None:
    steps = Charge(
        name="gradients",
        sensitivity=1.0,
        coordinates=10,
        sampling=0.02,
        steps=200,
    )
    budget = Budget(1.0)
    charges = calibrate([steps, ONE], [0.9, 0.1], budget)
    found = cost(charges, budget)
    assert found.exact is None
    assert 0.99 < found.epsilon <= 1.0
    assert found.pld < found.rdp < 1.25 * found.pld
    # Sampling amplifies: without it the same noise would cost far more.
    assert cost([replace(charges[0], sampling=None), charges[1]], budget).epsilon > 3


def test_charged_steps_matter() -> None:
    """P15, P19: one step more than charged costs more than claimed."""
    [charge] = calibrate([replace(ONE, steps=100)], [1.0], Budget(1.0))
    assert cost([replace(charge, steps=101)], Budget(1.0)).epsilon > 1.0


def test_discrete_laplace_is_pure() -> None:
    charge = Charge(
        name="ratio",
        mechanism="discrete laplace",
        sensitivity=1.0,
        coordinates=2,
        noise_multiplier=100.0,
    )
    found = cost([charge], Budget(1.0))
    assert found.epsilon == pytest.approx(0.01, rel=2e-2) and found.epsilon <= 0.01
    both = calibrate([charge, ONE], [1.0, 1.0], Budget(1.0))
    assert both[0] == charge and 0.99 < cost(both, Budget(1.0)).epsilon <= 1.0


def test_slack_and_thresholds_are_taken_from_delta() -> None:
    wide = replace(ONE, coordinates=6_000_000)
    for epsilon in (1.0, 10.0):
        budget = Budget(epsilon)
        found = cost(calibrate([wide], [1.0], budget), budget)
        assert 0 < found.slack < 1e-3 * budget.delta
    cut = replace(ONE, threshold_delta=5e-6)
    [charge] = calibrate([cut], [1.0], Budget(1.0))
    assert charge.noise_multiplier == pytest.approx(1 / mu_for(1.0, 5e-6), rel=1e-6)
    with pytest.raises(LimbeckError, match="larger delta"):
        calibrate([replace(ONE, threshold_delta=1e-5)], [1.0], Budget(1.0))


def test_infinite_epsilon_means_no_noise() -> None:
    charges = calibrate([ONE], [1.0], Budget(math.inf))
    assert charges[0].noise == 0 and math.isinf(cost(charges, Budget(math.inf)).epsilon)


def test_gaussian_curve_is_monotone_and_inverts() -> None:
    mus = np.geomspace(1e-3, 20, 30)
    epsilons = [gaussian_epsilon(m, 1e-6) for m in mus]
    assert all(a <= b for a, b in zip(epsilons, epsilons[1:], strict=False))
    for mu, epsilon in zip(mus[10:], epsilons[10:], strict=True):
        if epsilon > 0:
            assert mu_for(epsilon, 1e-6) == pytest.approx(mu, rel=1e-6)


def test_every_mechanism_pays_for_its_steps() -> None:
    for mechanism in ("discrete laplace", "discrete gaussian"):
        charge = Charge(
            name="n", mechanism=mechanism, sensitivity=1.0, coordinates=1, noise_multiplier=20.0
        )
        once = cost([charge], Budget(1.0)).epsilon
        assert cost([replace(charge, steps=100)], Budget(1.0)).epsilon > 5 * once


def test_noise_too_large_for_its_grid_is_refused() -> None:
    """Before anything is spent: `plan` calibrates every question."""
    wide = Sum(name="wide", bound=1.0, size=4000, groups=1)
    (charge,) = wide.charges(Unit())
    with pytest.raises(LimbeckError, match="too many"):
        wide.calibrated([replace(charge, noise_multiplier=1e6)], Unit())
    wide.calibrated([replace(charge, noise_multiplier=10.0)], Unit())


@pytest.mark.parametrize(
    ("epsilon", "sampling", "steps"),
    [(1.0, 500 / 60000, 1200), (0.1, 0.02, 50), (10.0, 0.3, 10)],
)
def test_calibration_takes_few_evaluations_and_never_falls_short(
    epsilon: float, sampling: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search starts from the RDP answer and goes on on a coarse grid: few PLDs on the fine one, which are slow."""
    from limbeck.accounting import accountant as _accountant

    made = []
    real = _accountant.PLDAccountant
    monkeypatch.setattr(
        _accountant, "PLDAccountant", lambda **grid: made.append(grid) or real(**grid)
    )
    charge = replace(ONE, sampling=sampling, steps=steps)
    budget = Budget(epsilon)
    charges = calibrate([charge], [1.0], budget)
    fine = [grid for grid in made if grid["value_discretization_interval"] == 1e-4]
    assert 1 <= len(fine) <= 3 and len(made) <= 8
    assert (1 - 3e-4) * epsilon <= cost(charges, budget).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [100.0, 1000.0, 1e6])
def test_a_huge_epsilon_is_refused_in_words(epsilon: float) -> None:
    with pytest.raises(LimbeckError, match="smaller epsilon"):
        calibrate([ONE], [1.0], Budget(epsilon, 1e-6))


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_the_gaussian_of_a_pure_charge_is_no_harder_to_tell_apart(epsilon: float) -> None:
    """Its delta is at least that of the worst pure mechanism, randomised response, at every epsilon."""
    mu, truth = pure_mu(epsilon), math.exp(epsilon) / (1 + math.exp(epsilon))
    for other in np.linspace(0.0, epsilon, 20):
        response = max(0.0, truth - math.exp(other) * (1 - truth))
        assert gaussian_delta(mu, float(other)) >= response - 1e-12


def test_many_choices_cost_no_less_by_the_gaussian_bound_than_by_their_privacy_loss() -> None:
    choices = Charge(
        name="c", mechanism="permute-and-flip", sensitivity=1.0, noise_multiplier=8.0, coordinates=9,
        steps=12,
    )  # fmt: skip
    counts = Charge(name="n", sensitivity=1.0, noise_multiplier=5.0, coordinates=4, steps=3)
    mu = gaussian_bound([choices, counts])
    assert mu is not None
    bound, claimed = gaussian_epsilon(mu, 1e-6), cost([choices, counts], Budget(9.0, 1e-6)).pld
    assert claimed <= bound * (1 + 1e-3) and bound < 1.3 * claimed
    assert gaussian_bound([replace(counts, sampling=0.1)]) is None
