"""From any source of rows, here or elsewhere, to a data set."""

from __future__ import annotations

from pathlib import Path

from ..data import Dataset
from ..data import read as read_here
from ..schema import Schema


def read(source: object, schema: Schema | str | Path) -> Dataset:
    """Bind a source of rows to its schema.

    Nothing is read yet but the source's structure (column names, image sizes).

    Args:
        source: A path to a CSV file, a Parquet file or folder, an npz or idx file or a folder of
            images per class; or a pandas, Arrow or Polars frame; or a pair of arrays (images, labels); or
            a Spark DataFrame, whose rows stay on the cluster; or a DuckDB relation, read in batches.
        schema: The public description of the data, or the path of its TOML file.

    >>> import pandas as pd
    >>> import limbeck as lk
    >>> schema = lk.Schema(dataset="ages", rows=3, columns=(lk.Numeric(name="age", min=0, max=99),))
    >>> lk.read(pd.DataFrame({"age": [31, 45, 62]}), schema)
    Dataset('ages', columns=1)
    """
    if hasattr(source, "mapInArrow"):
        from .spark import read_spark

        return read_spark(source, schema if isinstance(schema, Schema) else Schema.load(schema))
    return read_here(source, schema)
