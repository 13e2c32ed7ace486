"""Bounds and values that a schema leaves open, found with a part of the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...accounting import Budget
from ...schema import Category, Numeric, Schema
from ..asked import Asked
from .quantiles import Edges as Edges
from .quantiles import Quantiles as Quantiles
from .values import OTHER as OTHER
from .values import FrequentValues as FrequentValues
from .values import values_name

if TYPE_CHECKING:
    from ..private import Private

THRESHOLD_SHARE = 0.05
"""Part of delta for the thresholds of all estimated categories together."""


def estimates(names: tuple[str, ...], schema: Schema, budget: Budget) -> list[Asked]:
    """What settling the named columns asks: they share evenly, and so do a column's questions."""
    delta = THRESHOLD_SHARE * budget.delta / budget.sensitivity_factor if budget.private else 0.0
    share, asked = schema.estimate_share / max(1, len(names)), []
    for column in (c for c in schema.columns if c.name in names):
        if isinstance(column, Numeric):
            questions = Quantiles(column, schema.inputs.index(column)).questions
            asked += [Asked(question=q, share=share / len(questions)) for q in questions]
        elif isinstance(column, Category):
            question = FrequentValues.of_column(column, delta / len(names))
            asked.append(Asked(question=question, share=share))
    return asked


def estimated(private: Private) -> dict[str, tuple[Any, ...]]:
    """What was found for every column that the schema leaves open: bounds, or values."""
    settled: dict[str, tuple[Any, ...]] = {}
    for column in private.schema.estimated:
        if isinstance(column, Numeric):
            settled[column.name] = estimated_bounds(private, column)
        elif isinstance(column, Category):
            settled[column.name] = estimated_values(private, column)
    return settled


def estimated_bounds(private: Private, column: Numeric) -> tuple[float, float]:
    """Noisy lower and upper quantile of a column within its outer range."""
    quantiles = Quantiles(column, private.schema.inputs.index(column))
    edges, bottom, top = quantiles.start(), 0.0, 1.0
    for question in quantiles.questions:
        bottom, top, edges = quantiles.zoom(edges, private.ask(question.name, Edges(edges)))
    return quantiles.bounds(bottom, top)


def estimated_values(private: Private, column: Category) -> tuple[str, ...]:
    """The frequent values of a column, and a catch-all for the rest."""
    answer = private.ask(values_name(column))
    return (*(str(v) for v in answer.values if str(v) != OTHER), OTHER)
