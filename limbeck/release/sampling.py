"""What a user wants of further rows, read against the schema: conditions, classes, a frame to complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import read_partial
from ..errors import LimbeckError
from ..methods import Given, Wanted
from ..schema import Category, Column, GivenRows, Numeric, Schema, Where, read_conditions

EVEN = "even"


def read_wanted(
    schema: Schema,
    rows: int | None,
    *,
    where: Where | None,
    like: object,
    classes: str | Mapping[Any, float] | None,
) -> Wanted:
    """See `Release.sample`."""
    conditions = read_conditions(schema, where)
    if classes is not None and schema.label is None:
        raise LimbeckError("This release has no label, so it has no classes to balance.")
    if like is None:
        even = isinstance(classes, str) and classes == EVEN
        shares = None if even or classes is None else _shares(schema, classes)
        return Wanted(conditions=conditions, even=even, shares=shares)
    if classes is not None:
        raise LimbeckError(
            "A frame to complete has the classes it has: give like or classes, not both."
        )
    given, names = _given(schema, like)
    for condition in conditions:
        if condition.column.name in names:
            raise LimbeckError(
                f"The frame gives '{condition.column.name}' already: it takes no condition as well."
            )
    if rows is not None:
        given = given.again(np.arange(rows) % len(given.labels))
    return Wanted(conditions=conditions, given=given)


def _shares(schema: Schema, classes: str | Mapping[Any, float]) -> np.ndarray:
    assert schema.label is not None
    if not isinstance(classes, Mapping):
        raise LimbeckError(
            f'Expected classes to be "{EVEN}" or shares of the label\'s values, got {classes!r}.'
        )
    shares = np.zeros(len(schema.classes))
    for value, share in classes.items():
        code = schema.label.code(value)
        if code is None:
            raise LimbeckError(
                f"The label '{schema.label.name}' has no value {value!r}. It has: "
                f"{', '.join(map(str, schema.classes))}."
            )
        if not isinstance(share, int | float) or not 0 <= share < np.inf:
            raise LimbeckError(f"Expected the share of a class to be a number >= 0, got {share!r}.")
        shares[code] = share
    if shares.sum() <= 0:
        raise LimbeckError("Expected a share above zero for one class at least.")
    return shares / shares.sum()


def _given(schema: Schema, like: object) -> tuple[Given, list[str]]:
    """The cells of a partial frame, and the names of its columns."""
    if schema.image:
        raise LimbeckError(
            "Images are not completed from a frame; choose their class: where={label: value}."
        )
    # Read as columns like any other, the label or the target too, which may be all that is given.
    inputs: list[Column] = []
    for column in schema.columns:
        if isinstance(column, Category) and column.label:
            column = replace(column, label=False)
        elif isinstance(column, Numeric) and column.target:
            column = replace(column, target=False, bins=None)
        inputs.append(column)
    # Persons' ids may be there or not: the rows get fresh ones.
    read_as = replace(schema.without_person().without_rules(), columns=tuple(inputs))
    cells, known = read_partial(like, read_as)
    names = list(cells)
    count = len(cells[names[0]])
    given = Given(
        cells=np.zeros((count, len(schema.inputs)), np.float32),
        known=np.zeros((count, len(schema.inputs)), bool),
        labels=np.full(count, -1),
    )
    if schema.rules:
        return _given_under_rules(schema, cells, known), names
    place = {column.name: i for i, column in enumerate(schema.inputs)}
    for name in names:
        if name in place:
            given.cells[:, place[name]], given.known[:, place[name]] = cells[name], known[name]
        else:
            given.labels[known[name]] = cells[name][known[name]].astype(np.int64)
    return given, names


def _given_under_rules(
    schema: Schema, cells: dict[str, np.ndarray], known: dict[str, np.ndarray]
) -> Given:
    """What is given of columns that methods learn as they are, and the values of all that are given."""
    given_rows, count = GivenRows(schema.learned), len(next(iter(cells.values())))
    given = Given(
        cells=np.zeros((count, len(schema.inputs)), np.float32),
        known=np.zeros((count, len(schema.inputs)), bool),
        labels=np.full(count, -1),
        values=given_rows.given_values(cells, known),
    )
    if schema.label is not None and schema.label.name in cells:
        there = known[schema.label.name]
        given.labels[there] = cells[schema.label.name][there].astype(np.int64)
    for name, place in schema.learned.places.items():
        if name in cells:
            given.cells[:, place] = given_rows.encoded(name, given.values[name])
            given.known[:, place] = known[name]
    return given
