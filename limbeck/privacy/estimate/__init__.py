"""Bounds, values and rows per person that a schema leaves open, found with a part of the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...accounting import Budget
from ...schema import Category, Numeric, Schema
from ..asked import Asked
from .quantiles import EDGES
from .quantiles import Edges as Edges
from .quantiles import Quantiles as Quantiles
from .rows_of_persons import PERSONS_SHARE, ROWS_EACH, RowsOfPersons, shares_of
from .values import OTHER as OTHER
from .values import FrequentValues as FrequentValues
from .values import Texts as Texts
from .values import values_name

if TYPE_CHECKING:
    from ..private import Private

THRESHOLD_SHARE = 0.05
"""Part of delta for the thresholds of all estimated categories together."""


def estimates(names: tuple[str, ...], schema: Schema, budget: Budget) -> list[Asked]:
    """What settling the named columns asks: they share evenly, and so do a column's questions. Named as
    a column, the persons' ids ask how many rows persons have."""
    delta = THRESHOLD_SHARE * budget.delta / budget.sensitivity_factor if budget.private else 0.0
    columns, asked = [c for c in schema.columns if c.name in names], []
    share = schema.estimate_share / max(1, len(columns))
    for column in columns:
        if isinstance(column, Numeric):
            questions = Quantiles(column, schema.inputs.index(column)).questions
            asked += [Asked(question=q, share=share / len(questions)) for q in questions]
        elif isinstance(column, Category):
            question = FrequentValues.of_column(column, delta / len(columns))
            asked.append(Asked(question=question, share=share))
    if schema.person and schema.person.column in names:
        counted = RowsOfPersons.of_person(schema.person)
        asked.append(Asked(question=counted, share=PERSONS_SHARE))
    return asked


def estimated(private: Private) -> dict[str, tuple[Any, ...]]:
    """What was found for every column that the schema leaves open: bounds, or values; and for persons'
    ids, shares of persons by their number of rows."""
    settled: dict[str, tuple[Any, ...]] = {}
    for column in private.schema.estimated:
        if isinstance(column, Numeric):
            settled[column.name] = estimated_bounds(private, column)
        elif isinstance(column, Category):
            settled[column.name] = estimated_values(private, column)
    person = private.schema.person
    if person and person.estimated:
        settled[person.column] = shares_of(private.ask(ROWS_EACH).values)
    return settled


def estimated_bounds(private: Private, column: Numeric) -> tuple[float, float]:
    """Noisy lower and upper quantile of a column within its outer range."""
    quantiles = Quantiles(column, private.schema.inputs.index(column))
    edges, bottom, top = quantiles.start(), 0.0, 1.0
    for question in quantiles.questions:
        answer = private.ask(question.name, EDGES, {"edges": edges})
        bottom, top, edges = quantiles.zoom(edges, answer)
    return quantiles.bounds(bottom, top)


def estimated_values(private: Private, column: Category) -> tuple[str, ...]:
    """The frequent values of a column, and a catch-all for the rest."""
    answer = private.ask(values_name(column))
    return (*(str(v) for v in answer.values if str(v) != OTHER), OTHER)
