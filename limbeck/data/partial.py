"""Rows that hold some of a schema's columns: what they give is kept, the rest is filled in or predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import DataError
from ..schema import Schema, Values, as_numbers
from .csv_files import CsvSource
from .dataset import Dataset
from .reading import open_source
from .tables import FrameSource, ParquetSource, QuerySource


def read_partial(
    source: object, schema: Schema
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Encoded cells of the columns that a source has, by name, and where one was given: an empty cell
    is given where the column declares "missing", a category's value where it is declared.

    Args:
        source: A frame, or the path of a CSV or Parquet file.
        schema: All columns, without a label among them.
    """
    opened = open_source(source, schema.encoding)
    if not isinstance(opened, CsvSource | FrameSource | ParquetSource):
        raise DataError("Expected a table with some of the columns: a frame, or its file.")
    names = opened.names if isinstance(opened, CsvSource) else opened.schema.names
    columns = tuple(c for c in schema.columns if c.name in names)
    if not columns:
        raise DataError(
            f"The frame has none of the columns {', '.join(c.name for c in schema.columns)}."
        )
    some = replace(schema, columns=columns)
    opened.check(some)
    cells: dict[str, list[np.ndarray]] = {c.name: [] for c in columns}
    known: dict[str, list[np.ndarray]] = {c.name: [] for c in columns}
    for chunk in opened.chunks(some):
        for column in columns:
            raw = chunk[column.name]
            encoded = column.encode(raw)
            if isinstance(raw, Values):
                there = encoded >= 0
            else:
                there = ~np.isnan(as_numbers(raw)) | column.missing
            cells[column.name].append(encoded)
            known[column.name].append(there)
    if not cells[columns[0].name]:
        raise DataError("The frame to complete has no rows.")
    return {n: np.concatenate(c) for n, c in cells.items()}, {
        n: np.concatenate(k) for n, k in known.items()
    }


def read_inputs(source: object, schema: Schema) -> Dataset:
    """Rows whose label is not known, or not looked at: all declared columns but the label, and no others.

    Args:
        source: As `read` takes it.
        schema: Of rows with their label.
    """
    opened = open_source(source, schema.encoding, schema.delimiter)
    names: list[str] = []
    if isinstance(opened, CsvSource):
        names = list(opened.names)
    elif isinstance(opened, FrameSource | ParquetSource | QuerySource):
        names = list(opened.schema.names)
    inputs = tuple(c for c in schema.columns if c.kind != "label")
    known = {c.name for c in inputs}
    left_out = tuple(name for name in names if name not in known)
    return Dataset(replace(schema, columns=inputs, person=None, unread=(), ignore=left_out), opened)
