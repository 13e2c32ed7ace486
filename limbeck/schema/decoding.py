"""Rows that were made, from numbers back to the owner's columns: nothing here sees a row of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .fresh_ids import with_fresh_ids
from .image import Image

if TYPE_CHECKING:
    from .schema import Schema


def collapsed(schema: Schema, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Slots (rows, slots) to cells (rows, columns); categories and gaps are drawn from their weights."""
    parts = [
        column.collapse(slots[:, at], rng)
        for column, at in schema.blocks()
        if not isinstance(column, Image)
    ]
    return np.stack(parts, axis=1)


def decoded(schema: Schema, cells: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """Cells and label codes to a table with the owner's columns, order, kinds and ranges."""
    if schema.rules:
        return schema.table(schema.learned.values(cells, labels))
    place = {c.name: i for i, c in enumerate(schema.inputs)}
    series = []
    for column in schema.columns:
        if isinstance(column, Image):
            raise SchemaError("Images are not decoded to a table.")
        labelled = column.kind == "label"
        at = labels.astype(np.float32) if labelled else cells[:, place[column.name]]
        series.append(column.decode(at))
    return with_fresh_ids(series, schema.unread, schema.person)
