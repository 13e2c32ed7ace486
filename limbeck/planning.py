"""The plan of a run: everything that will be asked and spent, made without touching a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .accounting import Budget, Charge, Cost, calibrate, calibrate_stopping, cost, stopping_cost
from .errors import LimbeckError, SchemaError
from .methods import AbstractInquiry, AbstractMethod, method_class
from .privacy import Asked, Planned, Question, StateCounts, Sum, Unit, estimates
from .schema import Schema

CHOICE = "choice"
CHECK = "column states"
CHECK_SHARE = 0.01
"""Of the budget, for the noisy check whether the file fits its schema."""


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
    questions: tuple[Planned, ...]
    charges: tuple[Charge, ...]
    """Of all questions, in their order."""
    shares: tuple[float, ...]
    """Of the budget, for each charge."""
    cost: Cost

    @property
    def unit(self) -> Unit:
        return Unit.of(self.budget, self.schema)

    @property
    def check(self) -> Planned | None:
        """The noisy check of the schema, if there is one: it comes first."""
        first = self.questions[0] if self.questions else None
        return first if first is not None and isinstance(first.question, StateCounts) else None

    @property
    def check_cost(self) -> Cost:
        """What the check costs alone: all that is paid if it stops the run."""
        return cost(() if self.check is None else self.check.charges, self.budget)


def plan(
    method: AbstractInquiry | str,
    schema: Schema | Any,
    budget: Budget | float,
    *,
    choice: tuple[int, float] | None = None,
    check: bool = False,
    engine: str = "local",
) -> Plan:
    """Calibrate everything the method and the schema will ask, jointly, to the budget.

    Args:
        method: What to make, or its name, which stands for its defaults; or whatever else asks.
        schema: The public description of the data, or rows that have one; bounds it wants estimated are charged too.
        budget: Epsilon and delta for the whole run, or epsilon alone: delta then suits the rows.
        choice: Number of candidates made from the same answers, and the share for comparing them.
        check: Whether the file is first held against the schema, with noise, as `distill` does.
        engine: Where sums will be computed; a question that it cannot carry is refused.
    """
    if isinstance(method, str):
        method = method_class(method)()
    if not isinstance(method, AbstractInquiry):
        raise LimbeckError(
            f"Expected a method, such as limbeck.Marginals(), or the name of one; got {method!r}."
        )
    schema = getattr(schema, "schema", schema)
    if not isinstance(schema, Schema):
        raise SchemaError(
            f"Expected a schema, or rows from limbeck.read; got {type(schema).__name__}."
        )
    budget = Budget.of(budget, schema.units)
    comparing = None if choice is None else Asked(question=choice_of(choice[0]), share=choice[1])
    asked = _asked(method, schema, budget, comparing)
    if check:
        rest = [replace(one, share=(1 - CHECK_SHARE) * one.share) for one in asked]
        asked = [Asked(question=check_of(schema), share=CHECK_SHARE), *rest]
    check_carried([one.question for one in asked], method, engine)
    charges = calibrate(*_priced(asked, Unit.of(budget, schema)), budget)
    return _planned(method, schema, budget, asked, charges, cost(charges, budget))


def check_carried(questions: Sequence[Question], method: AbstractInquiry, engine: str) -> None:
    """Refuse questions whose sums an engine cannot compute: before anything is paid."""
    for question in questions:
        if not question.runs_on(engine):
            others = " or ".join(filter(question.runs_on, question.engines))
            work = getattr(question, "work", f"is a {type(question).__name__}")
            raise LimbeckError(
                f"'{question.name}' cannot be answered by the engine {engine}: it {work}, which needs the "
                f"engine {others}. Choose another method or settings, or another engine."
            )
    if engine == "sql" and not method.only_counts:
        raise LimbeckError(
            f"{method.name} asks for more than counts of cells, which is all that the engine sql gives. Use "
            "marginals, or read the table here."
        )


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
    comparing = Asked(question=choice_of(1), share=share)
    asked = [_asked(m, schema, budget, comparing) for m in methods]
    priced = [_priced(one, Unit.of(budget, schema)) for one in asked]
    alternatives = calibrate_stopping([c for c, _ in priced], [s for _, s in priced], budget, mean)
    price = stopping_cost(alternatives, budget, mean)
    return [
        _planned(method, schema, budget, one, charges, price)
        for method, one, charges in zip(methods, asked, alternatives, strict=True)
    ]


def check_of(schema: Schema) -> StateCounts:
    """What the noisy check measures: whether the file fits its schema."""
    return StateCounts.of_schema(CHECK, schema)


def choice_of(candidates: int) -> Sum:
    """What comparing candidates measures: the differences between their numbers of right
    predictions, all at once, or for one alone (of randomly many) that number."""
    bound = 1.0 if candidates == 1 else math.sqrt(candidates) / 2
    return Sum(name=CHOICE, bound=bound, size=candidates, groups=1, by="map")


def charges_of(
    method: AbstractInquiry,
    schema: Schema,
    budget: Budget,
    *,
    estimated: Sequence[str],
    candidates: int = 0,
    check: bool = False,
) -> list[Charge]:
    """What a run must have been charged for, noise aside: of a settled schema, of which some columns
    were estimated, of a choice among candidates, if there are any, and of a check of the schema."""
    asked = [Asked(question=check_of(schema), share=0.0)] if check else []
    asked += method.questions(schema) + estimates(tuple(estimated), schema, budget)
    if candidates:
        asked.append(Asked(question=choice_of(candidates), share=0.0))
    return _priced(asked, Unit.of(budget, schema))[0]


def _asked(
    method: AbstractInquiry, schema: Schema, budget: Budget, comparing: Asked | None
) -> list[Asked]:
    """Every question with its share: estimates, the comparison of candidates, the method's own."""
    budget.check_rows(schema.units, "persons" if schema.person else "rows")
    if method.needs_bare_rows and budget.private:
        raise LimbeckError(
            f"{method.name} works on the bare rows and keeps nothing private; it runs with epsilon = "
            "infinity and non_private=True only."
        )
    if schema.target and isinstance(method, AbstractMethod) and not method.takes_targets:
        raise LimbeckError(
            f"{method.name} makes rows that classifiers learn from, and the target '{schema.target.name}' is a "
            "number. Use marginals, or a method with a generator, such as dp-merf; or predict a label."
        )
    asked = estimates(schema.estimated_names, schema, budget) + (
        [] if comparing is None else [comparing]
    )
    left = 1.0 - sum(one.share for one in asked)
    wanted = method.questions(schema)
    whole = sum(one.share for one in wanted)
    asked += [replace(one, share=left * one.share / whole) for one in wanted]
    sampled = any(c.sampling is not None for one in asked for c in one.question.measured())
    if budget.adjacency == "replace-one" and sampled:
        raise LimbeckError(
            "Poisson sampling is accounted under add/remove only; use adjacency = add-remove."
        )
    return asked


def _priced(asked: Sequence[Asked], unit: Unit) -> tuple[list[Charge], list[float]]:
    """All charges, and the share of each."""
    charges = [charge for one in asked for charge in one.question.charges(unit)]
    return charges, [one.share * part for one in asked for part in one.question.split]


def _planned(
    method: AbstractInquiry,
    schema: Schema,
    budget: Budget,
    asked: Sequence[Asked],
    charges: Sequence[Charge],
    price: Cost,
) -> Plan:
    method.check_importable()  # its maps are made anew from its name
    unit, questions, left = Unit.of(budget, schema), [], list(charges)
    for one in asked:
        count = len(one.question.measured())
        own, left = tuple(left[:count]), left[count:]
        one.question.calibrated(own, unit)  # refuses what cannot be answered, before it is paid
        questions.append(Planned(question=one.question, charges=own))
    return Plan(
        schema=schema,
        method=method,
        budget=budget,
        questions=tuple(questions),
        charges=tuple(charges),
        shares=tuple(_priced(asked, unit)[1]),
        cost=price,
    )
