"""Which slots of a table are numbers and which categories, for features that see them apart."""

from __future__ import annotations

from typing import TypedDict

from ...schema import Category, Schema

EMBEDDINGS = ("joint", "heterogeneous")
"""What a row's features are taken of: whole rows; or its numbers alone, with indicators of the categories
beside them (Harder et al. 2021)."""


class SlotParts(TypedDict):
    """Slots of numbers and their gaps, slots of categories, and how many categories there are."""

    numbers: tuple[int, ...]
    codes: tuple[int, ...]
    categories: int


def slot_parts(schema: Schema) -> SlotParts:
    """The parts of a schema's rows; pixels are numbers."""
    numbers: list[int] = []
    codes: list[int] = []
    for column, at in schema.blocks():
        (codes if isinstance(column, Category) else numbers).extend(range(at.start, at.stop))
    categories = sum(isinstance(column, Category) for column in schema.inputs)
    return {"numbers": tuple(numbers), "codes": tuple(codes), "categories": categories}
