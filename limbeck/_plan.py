"""The plan of a run: everything that will be asked and spent, made without touching a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ._check import LimbeckError
from ._columns import Numeric
from ._schema import Schema
from .methods import AbstractInquiry
from .privacy import (
    Budget,
    Charge,
    Cost,
    calibrate,
    calibrate_stopping,
    check_grid,
    cost,
    stopping_cost,
)

CHOICE = "choice"
THRESHOLD_SHARE = 0.05
"""Part of delta for the thresholds of all estimated categories together."""
ZOOMS, ZOOM_BINS = 3, 67
"""Histograms that `Private.bounds` takes per estimated column, and the most bins one has."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will measure, at which noise, and what that costs together.

    >>> import limbeck as lk
    >>> schema = lk.Schema(dataset="d", rows=1000, columns=(lk.Numeric(name="x", min=0, max=1),))
    >>> plan = lk.plan(lk.DPMERF(), schema, lk.Budget(1.0))
    >>> [charge.name for charge in plan.charges]
    ['class counts', 'mean embedding']
    >>> round(plan.cost.epsilon, 6)
    1.0
    """

    schema: Schema
    method: AbstractInquiry
    """What asks: a method, or a score that is paid for."""
    budget: Budget
    charges: tuple[Charge, ...]
    shares: tuple[float, ...]
    cost: Cost


def plan(
    method: AbstractInquiry,
    schema: Schema,
    budget: Budget,
    *,
    choice: tuple[int, float] | None = None,
) -> Plan:
    """Calibrate everything the method and the schema will ask, jointly, to the budget.

    Args:
        method: What to make, or whatever else asks.
        schema: The public description of the data; bounds it wants estimated are charged too.
        budget: Epsilon and delta for the whole run.
        choice: Number of candidates made from the same answers, and the share for comparing them.
    """
    comparing = None if choice is None else (choice_charge(choice[0]), choice[1])
    asked = _asked(method, schema, budget, comparing)
    charges = calibrate([c for c, _ in asked], [s for _, s in asked], budget)
    return _planned(method, schema, budget, asked, charges, cost(charges, budget))


def plan_stopping(
    methods: Sequence[AbstractInquiry], schema: Schema, budget: Budget, *, share: float, mean: float
) -> list[Plan]:
    """A plan for each of several candidates, of which randomly many are run and one is kept.

    Args:
        methods: The candidates.
        schema: The public description of the data.
        budget: Pays for all of it.
        share: Part of each run for its score.
        mean: Average number of runs.
    """
    asked = [_asked(m, schema, budget, (choice_charge(1), share)) for m in methods]
    alternatives = calibrate_stopping(
        [[c for c, _ in one] for one in asked], [[s for _, s in one] for one in asked], budget, mean
    )
    price = stopping_cost(alternatives, budget, mean)
    return [
        _planned(method, schema, budget, one, charges, price)
        for method, one, charges in zip(methods, asked, alternatives, strict=True)
    ]


def choice_charge(candidates: int) -> Charge:
    """What comparing candidates measures: the differences between their numbers of right
    predictions, all at once, or for one alone (of randomly many) that number."""
    bound = 1.0 if candidates == 1 else math.sqrt(candidates) / 2
    return Charge(name=CHOICE, sensitivity=bound, coordinates=candidates)


def _asked(
    method: AbstractInquiry,
    schema: Schema,
    budget: Budget,
    comparing: tuple[Charge, float] | None,
) -> list[tuple[Charge, float]]:
    """Every question with its share: estimates, the method's own, the comparison of candidates."""
    budget.check_rows(schema.rows)
    if method.needs_bare_rows and budget.private:
        raise LimbeckError(
            f"{method.name} works on the bare rows and keeps nothing private; it runs with epsilon = "
            "infinity (--non-private) only."
        )
    asked = _estimates(schema, budget) + ([] if comparing is None else [comparing])
    left = 1.0 - sum(share for _, share in asked)
    wanted = method.requests(schema)
    whole = sum(r.share for r in wanted)
    asked += [(r.charge, left * r.share / whole) for r in wanted]
    if budget.adjacency == "replace-one":
        if any(c.sampling is not None for c, _ in asked):
            raise LimbeckError(
                "Poisson sampling is accounted under add/remove only; use adjacency = add-remove."
            )
        asked = [(doubled(c), share) for c, share in asked]
    return asked


def _planned(
    method: AbstractInquiry,
    schema: Schema,
    budget: Budget,
    asked: Sequence[tuple[Charge, float]],
    charges: Sequence[Charge],
    price: Cost,
) -> Plan:
    for charge in charges:
        check_grid(charge)
    return Plan(
        schema=schema,
        method=method,
        budget=budget,
        charges=tuple(charges),
        shares=tuple(s for _, s in asked),
        cost=price,
    )


def doubled(charge: Charge) -> Charge:
    """The charge under replace-one, where neighbours differ by two rows."""
    return replace(
        charge,
        sensitivity=2 * charge.sensitivity,
        coordinates=2 * charge.coordinates,
        threshold_delta=2 * charge.threshold_delta,
    )


def estimate_charges(names: Sequence[str], schema: Schema, budget: Budget) -> list[Charge]:
    """What estimating the named columns asks, in the schema's order."""
    charges: list[Charge] = []
    delta = THRESHOLD_SHARE * budget.delta / budget.sensitivity_factor if budget.private else 0.0
    for column in (c for c in schema.columns if c.name in names):
        if isinstance(column, Numeric):
            charges += [
                Charge(name=f"bounds of {column.name}/{i}", sensitivity=1.0, coordinates=ZOOM_BINS)
                for i in range(ZOOMS)
            ]
        else:
            # Neighbours differ in the counts of at most two values, however many there are.
            name = f"values of {column.name}"
            part = delta / len(names)
            charges.append(Charge(name=name, sensitivity=1.0, coordinates=2, threshold_delta=part))
    return charges


def _estimates(schema: Schema, budget: Budget) -> list[tuple[Charge, float]]:
    """Charges with their shares: the columns share evenly, and so do a column's histograms."""
    names = [c.name for c in schema.estimated]
    charges = estimate_charges(names, schema, budget)
    whole = schema.estimate_share / max(1, len(names))
    return [(c, whole / ZOOMS if c.name.startswith("bounds of ") else whole) for c in charges]
