"""A schema with what was estimated filled in: noisy answers, which are public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .category import Category
from .columns import Column
from .numeric import Numeric

if TYPE_CHECKING:
    from .schema import Schema


def settled_schema(schema: Schema, settled: Mapping[str, tuple[Any, ...]]) -> Schema:
    """The schema with estimated bounds (low, high), values, and shares of rows per person.

    Args:
        schema: Says what is to be estimated.
        settled: What was found, by the name of the column.
    """
    person = schema.person
    if person and person.estimated:
        person = replace(person, rows_per_person=settled[person.column])
    columns = tuple(
        _settled(column, settled[column.name]) if column.estimated else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, person=person)


def _settled(column: Column, found: tuple[Any, ...]) -> Column:
    if isinstance(column, Numeric):
        low = found[0] if column.min is None else column.min
        high = found[1] if column.max is None else column.max
        return replace(column, min=min(low, high), max=max(low, high))
    assert isinstance(column, Category)
    # The last value found is the catch-all, to which every other value is mapped.
    return replace(column, values=tuple(found), outside=str(found[-1]))
