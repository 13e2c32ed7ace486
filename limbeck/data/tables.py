"""Tables in: Parquet files and folders, and frames in memory, through Arrow.

What a table's structure lacks (a column, a type that can be read) is refused before anything is
spent; nothing that a row contains can raise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet

from ..errors import DataError
from ..schema import Raw, Schema
from .ahead import in_order
from .cells import check_types, object_texts, raw_columns
from .column_names import check_columns, check_names, plain_reason, shown

CHUNK = 1 << 16


class ParquetSource:
    """A Parquet file or a folder of them.

    Each part is read by its own types: made one, they would be cast, which one row's value can fail.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            dataset = pa_dataset.dataset(str(path), format="parquet")
            self.schema = dataset.schema
            self._parts = list(dataset.get_fragments())
        except (pa.ArrowException, OSError) as error:
            if "duplicate field names" in str(error) and path.is_file():
                check_names(pa_parquet.read_schema(path).names, str(path), names_are_right=True)
            raise _unreadable(path, error) from None

    def check(self, schema: Schema) -> None:
        for part in self._parts:
            try:
                columns, names = part.physical_schema, part.physical_schema.names
            except UnicodeDecodeError:
                raise DataError(f"{part.path}: the name of a column is not UTF-8.") from None
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(Path(part.path), error) from None
            check_columns(names, schema, part.path)
            check_types(columns, schema, part.path)

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names, kept = schema.names_read, {"batch_size": CHUNK, "batch_readahead": 2}
        for part in self._parts:
            try:
                batches = part.to_batches(schema=part.physical_schema, columns=names, **kept)
                with closing(in_order(lambda batch: raw_columns(batch, schema), batches)) as read:
                    yield from read
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(Path(part.path), error) from None


def _unreadable(path: Path, error: BaseException) -> DataError:
    return DataError(f"Cannot read {path} as Parquet: {plain_reason(error)}.")


class FrameSource:
    """A pandas, Arrow or Polars table in memory."""

    def __init__(self, frame: object) -> None:
        self._table = to_arrow(frame)
        self.schema = self._table.schema

    def check(self, schema: Schema) -> None:
        check_columns(self._table.column_names, schema, "the frame")
        check_types(self._table.schema, schema, "the frame")

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names = schema.names_read
        for batch in self._table.select(names).to_batches(max_chunksize=CHUNK):
            yield raw_columns(batch, schema)


class QuerySource:
    """A query that is asked anew whenever its rows are wanted, such as a relation of DuckDB."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self.schema = self._query.limit(0).to_arrow_table().schema

    def check(self, schema: Schema) -> None:
        check_columns(self.schema.names, schema, "the query")
        check_types(self.schema, schema, "the query")

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        names = schema.names_read
        try:
            batches = (batch.select(names) for batch in self._query.to_arrow_reader(CHUNK))
            with closing(in_order(lambda batch: raw_columns(batch, schema), batches)) as read:
                yield from read
        except Exception as error:  # a database's own words may quote a cell
            raise DataError(f"The query could not be read ({type(error).__name__}).") from None


def to_arrow(frame: object) -> pa.Table:
    """Any frame as an Arrow table; a pandas column of objects becomes texts."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pd.DataFrame):
        names = [str(name) for name in frame.columns]
        columns = [_pandas_column(frame.iloc[:, i], name) for i, name in enumerate(names)]
        return pa.table(columns, names=names)
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError):
            raise DataError(
                "The frame has a column of a type that Arrow does not know. Convert or drop it."
            ) from None
    raise DataError(
        f"Expected a path, a pandas, Arrow or Polars frame, or (images, labels) arrays; got "
        f"{type(frame).__name__}."
    )


def _pandas_column(cells: pd.Series, name: str) -> pa.Array:
    kind = cells.dtype
    if isinstance(kind, pd.CategoricalDtype):
        # Its categories are values, and may be of mixed types like any column of objects.
        codes = cells.cat.codes.to_numpy(np.int64)
        known = _pandas_column(pd.Series(kind.categories), name)
        if isinstance(known, pa.ChunkedArray):
            known = known.combine_chunks()
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), known)
    if kind == np.dtype(object) or (isinstance(kind, pd.StringDtype) and kind.storage == "python"):
        return object_texts(cells.tolist())
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            f"the frame: column '{shown(name)}' is of type {kind}, which cannot be read. Convert it."
        ) from None
