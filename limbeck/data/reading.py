"""From a path, a frame or arrays to a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import DataError, SchemaError
from ..schema import Schema
from .csv_files import CsvSource
from .dataset import Dataset, Source
from .images import ArraySource, ImageFolderSource, read_idx, read_npz
from .tables import FrameSource, ParquetSource, QuerySource


def read(source: object, schema: Schema | str | Path) -> Dataset:
    """Bind a source of rows to its schema.

    Nothing is read yet but the source's structure (column names, image sizes).

    Args:
        source: A path to a CSV file, a Parquet file or folder, an npz or idx file or a folder of
            images per class; or a pandas, Arrow or Polars frame; or a pair of arrays
            (images, labels).
        schema: The public description of the data, or the path of its TOML file.

    >>> import pandas as pd
    >>> import limbeck as lk
    >>> schema = lk.Schema(dataset="ages", rows=3, columns=(lk.Numeric(name="age", min=0, max=99),))
    >>> lk.read(pd.DataFrame({"age": [31, 45, 62]}), schema)
    Dataset('ages', columns=1)
    """
    if isinstance(schema, str | Path):
        schema = Schema.load(schema)
    if not isinstance(schema, Schema):
        raise SchemaError(
            f"Expected a schema or the path of its TOML file, got {type(schema).__name__}."
        )
    return Dataset(schema, open_source(source, schema.encoding, schema.delimiter))


def open_source(source: object, encoding: str = "utf-8", delimiter: str | None = None) -> Source:
    """The reader that fits a path or an object."""
    if isinstance(source, str | Path):
        return _open_path(Path(source), encoding, delimiter)
    if isinstance(source, tuple):
        if len(source) != 2:
            raise DataError(f"Expected a pair (images, labels), got a tuple of {len(source)}.")
        try:
            images = np.asarray(source[0])
        except ValueError:
            raise DataError(
                "The images are not all of one shape. Bring them to one size."
            ) from None
        return ArraySource(images, source[1])
    if hasattr(source, "mapInArrow"):
        raise DataError(
            "The frame is Spark's, and this reads rows on this machine. Give it a part: "
            "frame.limit(100_000).toPandas()."
        )
    return QuerySource(source) if hasattr(source, "to_arrow_reader") else FrameSource(source)


def _open_path(path: Path, encoding: str, delimiter: str | None) -> Source:
    if not path.exists():
        raise DataError(f"No file or folder at {path}.")
    if path.is_dir():
        return _open_folder(path)
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        return ParquetSource(path)
    if name.endswith(".npz"):
        return read_npz(path)
    if "idx3" in name or name.endswith("ubyte"):
        return read_idx(path)
    if name.endswith((".csv", ".tsv", ".txt")):
        return CsvSource(path, encoding, delimiter)
    raise DataError(
        f"{path}: unknown kind of file. Known are .csv (also .csv.gz), .parquet, .npz, idx files, "
        "a folder of Parquet files, and a folder with one folder of images per class."
    )


def _open_folder(path: Path) -> Source:
    if any(path.rglob("*.parquet")):
        return ParquetSource(path)
    if any(p.is_dir() and not p.name.startswith(".") for p in path.iterdir()):
        return ImageFolderSource(path)
    raise DataError(f"{path} holds neither Parquet files nor folders of images per class.")
