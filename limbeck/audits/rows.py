"""Rows that are made up for an audit from a schema alone, and the neighbours an attacker would choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..methods import Distilled
from ..release import Images, draw
from ..schema import Category, Numeric, Schema

STRANGERS = ("stranger 1", "stranger 2")
"""Ids of persons that no generated row has."""


def generated_rows(schema: Schema, count: int, seed: int = 0) -> Any:
    """Made-up rows that fit a schema: of the label's first values, never of its last one where it has
    more than two, so that a row of that class can be alone. Every fifth row is equal to the one before."""
    settled, rng = _settled(schema), np.random.default_rng(seed)
    slots = rng.random((count, settled.slots), dtype=np.float32)
    classes = len(settled.classes)
    labels = rng.integers(0, max(1, classes - (classes > 2)), count)
    same = np.arange(4, count, 5)
    slots[same], labels[same] = slots[same - 1], labels[same - 1]
    source = Distilled(slots=slots, labels=labels)
    made = draw(replace(settled, unread=(), person=None), source, count, seed=seed)
    if isinstance(made, Images):
        return made.images, made.labels
    for unread in schema.unread:
        made[unread.name] = "not read"
    if schema.person is not None:  # of one to four rows each
        ids = np.repeat(np.arange(count), 1 + np.arange(count) % 4)[:count]
        made[schema.person.column] = [f"{i}" for i in ids]
    return made


def _settled(schema: Schema) -> Schema:
    """The schema with some bounds and values where it wants them estimated."""
    found: dict[str, tuple[Any, ...]] = {}
    for column in schema.estimated:
        if isinstance(column, Numeric):
            found[column.name] = column.range
        else:
            found[column.name] = ("some value", "another", "a third")
    if schema.person is not None:
        found[schema.person.column] = (1.0,)
    return schema.resolve(found)


def neighbours(schema: Schema, rows: Any, *, replaced: bool = False) -> Iterator[tuple[str, Any]]:
    """Neighbouring rows with a name each: one unit more in the middle, in front or at the end; or less.

    Args:
        schema: Of the rows.
        rows: As `generated_rows` makes them.
        replaced: Whether neighbours differ in what a unit is, not in whether it is there.
    """
    if isinstance(rows, tuple):
        yield from _image_neighbours(schema, rows, replaced)
        return
    own = None if schema.person is None else schema.person.column
    for number, (name, strange) in enumerate(_strange_rows(schema, rows).items()):
        place = (len(rows) // 2, 0, len(rows))[number % 3]
        if own is not None:  # a whole person with several rows
            strange = pd.concat([strange.assign(**{own: STRANGERS[0]})] * 3, ignore_index=True)
        less = _without(rows, own, number) if replaced else rows
        yield name, _inserted(less, strange, min(place, len(less)))
    if not replaced:
        for gone in (0, len(rows) // 2):
            yield f"unit {gone} taken out", _without(rows, own, gone)


def _without(rows: pd.DataFrame, own: str | None, number: int) -> pd.DataFrame:
    """Rows but one, or but those of one person."""
    gone = rows.index == rows.index[number % len(rows)]
    if own is not None:
        gone = rows[own] == rows[own].iloc[number % len(rows)]
    return rows[~gone].reset_index(drop=True)


def _inserted(rows: pd.DataFrame, some: pd.DataFrame, place: int) -> pd.DataFrame:
    whole, some = rows.astype(object), some.astype(object)
    return pd.concat([whole.iloc[:place], some, whole.iloc[place:]], ignore_index=True)


def _strange_rows(schema: Schema, rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of one that may join the others."""
    inputs = {c.name: c.reads for c in schema.inputs}
    kinds: dict[str, dict[str, Any]] = {
        "extremely large": {
            "numbers": 1e300, "seconds": "9999-12-31T23:59:59", "days": "9999-12-31",
            "spans": 1e300, "values": "\uffff" * 9,
        },
        "extremely small": {
            "numbers": -np.inf, "seconds": "1000-01-01T00:00:00", "days": "1000-01-01",
            "spans": -1e300, "values": "",
        },
        "nothing": dict.fromkeys(("numbers", "seconds", "days", "spans", "values")),
        "not a number": {"numbers": np.nan, "values": "nowhere"},
    }  # fmt: skip
    changes = {
        name: {c: by_kind[reads] for c, reads in inputs.items() if reads in by_kind}
        for name, by_kind in kinds.items()
    }
    largest = {
        c.name: c.range[1] for c in schema.inputs if isinstance(c, Numeric) and not c.integer
    }
    changes |= {"at its upper bounds": largest, "an equal record": {}}
    label = schema.label
    if label is not None:
        lone = {label.name: label.values[-1]}
        changes["alone in its class"] = lone
        changes["extremely large, alone in its class"] = changes["extremely large"] | lone
        changes["an undeclared label"] = {label.name: "who knows"}
        changes["no label"] = {label.name: None}
    at = len(rows) // 3
    one = rows.iloc[[at]].astype(object)
    return {name: one.assign(**change) for name, change in changes.items()}


def _image_neighbours(
    schema: Schema, rows: tuple[np.ndarray, np.ndarray], replaced: bool
) -> Iterator[tuple[str, Any]]:
    images, labels = rows
    last = schema.classes[-1]
    one = images[:1].astype(np.float64)
    strange: dict[str, tuple[np.ndarray, Any]] = {
        "white": (np.full_like(one, 255.0), labels[0]),
        "black, alone in its class": (np.zeros_like(one), last),
        "not a number": (np.full_like(one, np.nan), labels[0]),
        "infinite": (np.full_like(one, np.inf), labels[0]),
        "noise, alone in its class": (255.0 - one, last),
        "an equal record": (one, labels[0]),
    }
    if schema.label is not None:
        strange["an undeclared label"] = (one, "who knows")
    for number, (name, (image, label)) in enumerate(strange.items()):
        place = (len(images) // 2, 0, len(images))[number % 3]
        wide, named = images.astype(np.float64), labels.astype(object)
        if replaced:
            wide, named, place = wide[1:], named[1:], min(place, len(images) - 1)
        yield (
            name,
            (np.insert(wide, place, image[0], axis=0), np.insert(named, place, label)),
        )
    if not replaced:
        yield "unit 0 taken out", (images[1:], labels[1:])


def made_for(kind: str) -> Schema:
    """A schema to audit with where none is given: a table with every usual kind of column, or images."""
    from ..schema import Date, Image

    if kind == "images":
        classes = Category(name="label", values=(0, 1, 2), label=True)
        return Schema(dataset="audit", rows=100, columns=(Image(height=8, width=8), classes))
    import datetime

    first, last = datetime.date(2000, 1, 1), datetime.date(2020, 12, 31)
    return Schema(
        dataset="audit",
        rows=200,
        columns=(
            Numeric(name="age", integer=True, min=0, max=100, missing=True),
            Numeric(name="income", min=-10.0, max=1000.0),
            Category(name="town", values=("north", "south", "east"), missing=True),
            Category(name="smoker", values=(False, True), boolean=True),
            Date(name="seen", min=first, max=last),
            Category(name="ill", values=("no", "yes", "unsure"), label=True),
        ),
    )
