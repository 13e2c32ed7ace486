"""From any source of rows, here or elsewhere, to a data set."""

from __future__ import annotations

from pathlib import Path

from ..data import Dataset
from ..data import read as read_here
from ..errors import LimbeckError
from ..schema import Schema

ENGINES = ("local", "spark", "sql")
"""Where the rows of a path can be summed; `jax` is for whoever starts several processes."""


def read(
    source: object,
    schema: Schema | str | Path,
    *,
    engine: str = "local",
    master: str | None = None,
) -> Dataset:
    """Bind a source of rows to its schema.

    Nothing is read yet but the source's structure (column names, image sizes).

    Args:
        source: A path to a CSV file, a Parquet file or folder, an npz or idx file or a folder of
            images per class; or a pandas, Arrow or Polars frame; or a pair of arrays (images, labels); or
            a Spark DataFrame, whose rows stay on the cluster; or a DuckDB relation, read in batches.
        schema: The public description of the data, or the path of its TOML file.
        engine: What reads a path and computes sums over its rows: "local" is this process; "spark" reads
            Parquet on a cluster; "sql" counts cells in a database, for marginals: its source is
            "duckdb:///FILE#TABLE" or "postgresql://USER@HOST/BASE#TABLE".
        master: Of the Spark cluster; by default as Spark is configured.

    >>> import pandas as pd
    >>> import limbeck as lk
    >>> schema = lk.Schema(dataset="ages", rows=3, columns=(lk.Numeric(name="age", min=0, max=99),))
    >>> lk.read(pd.DataFrame({"age": [31, 45, 62]}), schema)
    Dataset('ages', columns=1)
    """
    if engine not in ENGINES:
        raise LimbeckError(f"Expected one of the engines {', '.join(ENGINES)}; got '{engine}'.")
    if engine == "local" and not hasattr(source, "mapInArrow"):
        return read_here(source, schema)
    declared = schema if isinstance(schema, Schema) else Schema.load(schema)
    if engine == "sql":
        from .sql import Table, read_table

        url, _, table = str(source).rpartition("#")
        return read_table(Table(url, table), declared)
    from .spark import open_spark, read_spark

    if not hasattr(source, "mapInArrow"):
        source = open_spark(str(source), master)
    return read_spark(source, declared)
