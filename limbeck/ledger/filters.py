"""Filters: how the runs on a data set add up, and whether one more may be booked.

Later budgets may be chosen after seeing earlier releases, so runs are added up by a *filter*
valid for adaptive choices, fixed per data set:

- "gdp": squared mus add (Gaussian differential privacy is closed under fully adaptive
  composition). Charges with a pure price enter with the mu that it implies; a run with sampled ones
  enters whole, with the mu that its epsilon implies, and its delta is set aside.
- "rdp": Renyi divergences add at one order, fixed by the lifetime budget.
- "sum": epsilons add and deltas add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dp_accounting.rdp import RdpAccountant

from ..accounting import (
    ORDERS,
    gaussian_bound,
    gaussian_epsilon,
    mu_for,
    pure_mu,
    slack,
    thresholds,
    without_warnings,
)
from ..errors import BudgetExceeded, LimbeckError
from ..schema import Lifetime
from .booked import Run


def check_admitted(run: Run, before: Sequence[Run], declared: Lifetime, fixed: Lifetime) -> None:
    """Refuse a run that would overdraw, or whose schema declares another lifetime than is held.

    Args:
        run: What is to be booked.
        before: All runs on the data set so far.
        declared: What the schema says.
        held: What the ledger says.
    """
    if fixed != declared:
        raise LimbeckError(
            f"The schema's [lifetime] (epsilon {declared.epsilon:g}, delta {declared.delta:g}, "
            f"{declared.filter}) is not the one the ledger holds for '{run.dataset}' (epsilon "
            f"{fixed.epsilon:g}, delta {fixed.delta:g}, {fixed.filter}). Put the ledger's back, or change "
            f"it knowingly: limbeck ledger --set {run.dataset} --epsilon {declared.epsilon:g} --delta "
            f"{declared.delta:g} --filter {declared.filter}."
        )
    other = [r.unit for r in before if r.private and r.unit != run.unit]
    if run.private and other:
        raise LimbeckError(
            f"'{run.dataset}' has releases that protect each {other[0]}; this run would protect each "
            f"{run.unit}. What they reveal does not add up, so a data set keeps one unit for life: go "
            "on with the schema's old [person], or without one."
        )
    after = spent([*before, run], fixed) if run.private else 0.0
    if after > fixed.epsilon * (1 + 1e-9):
        price = (
            "needs more delta than that holds (a lifetime of less epsilon loses less of it to the rounding of "
            "noise)"
            if math.isinf(after)
            else f"would bring that to {after:.4g}"
        )
        raise BudgetExceeded(
            f"Budget spent: '{run.dataset}' may cost epsilon {fixed.epsilon:g} over its lifetime "
            f"(delta {fixed.delta:g}, filter {fixed.filter}); {spent(before, fixed):.4g} is spent "
            f"and this run {price}. Use a smaller epsilon, or stop here."
        )


def spent(runs: Sequence[Run], lifetime: Lifetime) -> float:
    """Epsilon of all private runs together at the lifetime's delta; infinity if delta is used up."""
    counted = [r for r in runs if r.private]
    if not counted:
        return 0.0
    return {"gdp": _spent_gdp, "rdp": _spent_rdp, "sum": _spent_sum}[lifetime.filter](
        counted, lifetime
    )


def _spent_gdp(runs: Sequence[Run], lifetime: Lifetime) -> float:
    squares, aside = 0.0, 0.0
    for run in runs:
        mu = gaussian_bound(run.charges)
        if mu is None:
            mu, aside = pure_mu(run.epsilon), aside + run.delta
        else:
            aside += _set_aside(run, lifetime.epsilon)
        squares += mu * mu
    rest = lifetime.delta - aside
    return math.inf if rest <= 0 else gaussian_epsilon(math.sqrt(squares), rest)


@without_warnings()
def _spent_rdp(runs: Sequence[Run], lifetime: Lifetime) -> float:
    mu = mu_for(lifetime.epsilon, lifetime.delta)
    order = min(ORDERS, key=lambda a: _convert(a, a * mu * mu / 2, lifetime.delta))
    accountant = RdpAccountant([order])
    for run in runs:
        for charge in run.charges:
            accountant.compose(charge.event(renyi=True))
    rest = lifetime.delta - sum(_set_aside(r, lifetime.epsilon) for r in runs)
    return math.inf if rest <= 0 else float(accountant.get_epsilon(rest))


def _convert(order: float, divergence: float, delta: float) -> float:
    return divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)


def _spent_sum(runs: Sequence[Run], lifetime: Lifetime) -> float:
    if sum(r.delta for r in runs) > lifetime.delta * (1 + 1e-9):
        return math.inf
    return sum(r.epsilon for r in runs)


def _set_aside(run: Run, epsilon: float) -> float:
    """Delta that no curve prices: thresholds, and discrete against continuous noise."""
    return slack(run.charges, epsilon) + thresholds(run.charges)
