"""Counts of cells and of pairs of cells as GROUP BY, in the database that has the rows: they never leave it.

Every cell of a column is told by comparisons with numbers and texts that the schema gives; nothing is cast, so no
row can make a query fail. All queries of a run see one snapshot. A row adds the same whole numbers to a sum as
it does in one process: they depend on how many of its columns have a cell, which is counted, too.
"""

from __future__ import annotations

import itertools
import re
import secrets
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data import Dataset, check_columns
from ..errors import DataError, LimbeckError
from ..features.cells import Cells
from ..features.marginals import ColumnPairs, SingleColumns
from ..privacy import (
    Histogram,
    OuterSum,
    RowAccess,
    State,
    StateCounts,
    Sum,
    Work,
)
from ..schema import (
    STATES,
    Column,
    Raw,
    Schema,
)
from .comparisons import coded, quoted
from .remote import RemoteDataset, RemoteEngine

KINDS = {
    "integer": "TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER int2 int4 int8",
    "float": "FLOAT DOUBLE float4 float8",
    "text": "VARCHAR text varchar bpchar",
    "boolean": "BOOLEAN bool",
}
"""Types of columns in a database, by how they are compared."""


@dataclass(frozen=True)
class Table:
    """A table or view of a database.

    Args:
        url: `duckdb:///path/of/file` or `postgresql://user@host/base`.
        name: Of the table or view, perhaps with a schema before a point.
    """

    url: str
    name: str

    @property
    def place(self) -> str:
        return ".".join(quoted(part) for part in self.name.split("."))

    def connect(self) -> Any:
        """A cursor within one read-only snapshot."""
        kind, _, rest = self.url.partition("://")
        try:
            if kind == "duckdb":
                import duckdb

                cursor: Any = duckdb.connect(rest.removeprefix("/"), read_only=True)
                cursor.execute("BEGIN TRANSACTION")
                return cursor
            if kind == "postgresql":
                import psycopg

                cursor = psycopg.connect(self.url, autocommit=True).cursor()
                cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return cursor
        except ImportError:
            raise LimbeckError(
                "The engine sql needs an extra: pip install 'limbeck[sql]'."
            ) from None
        except Exception as error:
            raise DataError(f"Cannot open the {kind} database: {type(error).__name__}.") from None
        raise DataError(
            f"Expected duckdb:///FILE or postgresql://..., got a database of kind '{kind}'."
        )

    def kinds(self, cursor: Any) -> dict[str, str]:
        """How each column is compared; types that are not known stand as they are."""
        try:
            cursor.execute(f"SELECT * FROM {self.place} LIMIT 0")
        except Exception as error:
            raise DataError(
                f"The database has no table '{self.name}' ({type(error).__name__})."
            ) from None
        found = {}
        for column in cursor.description:
            kind = str(column[1])
            if kind.isdigit():  # PostgreSQL names types by number
                from psycopg.postgres import types

                kind = types[int(kind)].name if types.get(int(kind)) else kind
            found[column[0]] = next(
                (k for k, names in KINDS.items() if kind in names.split()), kind
            )
        return found


def read_table(table: Table, schema: Schema) -> Dataset:
    """A table of a database bound to its schema, to be counted where it is; no row is read."""
    cursor = table.connect()
    try:
        kinds = table.kinds(cursor)
        engine = partial(SqlEngine, table, kinds, cursor)
        return RemoteDataset(schema, TableSource(table, kinds), engine)
    except LimbeckError:
        closed(cursor)
        raise


def closed(cursor: Any) -> None:
    """End a snapshot."""
    getattr(cursor, "connection", cursor).close()


class TableSource:
    """The structure of a table in a database."""

    def __init__(self, table: Table, kinds: Mapping[str, str]) -> None:
        self._table, self._kinds = table, kinds

    def check(self, schema: Schema) -> None:
        where = f"table '{self._table.name}'"
        if schema.image or schema.person or schema.estimated:
            raise LimbeckError(
                f"{where}: the engine sql counts tables of rows with declared bounds and values: no images, no "
                '[person], nothing to "estimate". Read the table here instead.'
            )
        if schema.learned_by_rules:
            raise LimbeckError(
                f"{where}: the engine sql counts columns as they are, and by the schema's rules others are "
                "learned. Take only combinations as rules, or read the table here instead."
            )
        check_columns(list(self._kinds), schema, where)
        for column in schema.columns:
            coded(column, self._kinds[column.name], where)

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        raise DataError("The rows are with the database, and are not read here.")


class SqlEngine(RemoteEngine):
    """Counts the cells of a table."""

    name = "sql"
    processors: set[str] = set()

    def __init__(self, table: Table, kinds: Mapping[str, str], cursor: Any, schema: Schema) -> None:
        self.table, self.kinds, self.cursor, self.schema = table, kinds, cursor, schema
        weakref.finalize(self, closed, cursor)

    def version(self) -> str:
        self.cursor.execute("SELECT version()")
        words = str(self.cursor.fetchone()[0])
        number = re.search(r"\d+(\.\d+)+", words)
        kind = self.table.url.partition("://")[0]
        return f"{kind} {number[0] if number else words}"

    def keyed_sum(self, key: bytes) -> np.ndarray:
        """Nothing that a later snapshot could be held against: a killed run is paid for anew."""
        self.cursor.execute(f"SELECT count(*) FROM {self.table.place}")
        count = int(self.cursor.fetchone()[0])
        fresh = np.frombuffer(secrets.token_bytes(32), np.uint64)
        return np.append(fresh, np.uint64(count))

    def partial(self, work: Work, state: State, access: RowAccess) -> Any:
        name = work.planned.question.name
        try:
            return Counting(self, work).partial()
        except LimbeckError:
            raise
        except Exception as error:
            raise LimbeckError(
                f"The database could not answer '{name}' ({type(error).__name__})."
            ) from None

    def counts(self, codes: Sequence[str], label: str, pairs: bool) -> Iterator[tuple[int, ...]]:
        """Class, number of columns with a cell, one or two columns, their cells, and how many rows."""
        names = [f"c{i}" for i in range(len(codes))]
        coded = ", ".join(f"{code} AS {name}" for code, name in zip(codes, names, strict=True))
        known = " + ".join(f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END" for name in names)
        inner = f"SELECT {label} AS l, {coded} FROM {self.table.place}"
        rows = f"SELECT *, {known} AS k FROM ({inner}) AS coded"
        which = itertools.combinations_with_replacement(range(len(codes)), 2) if pairs else (
            (i, i) for i in range(len(codes)))  # fmt: skip
        for i, j in which:
            both = f"c{i}, c{j}" if i != j else f"c{i}"
            self.cursor.execute(
                f"SELECT l, k, {both}, count(*) FROM ({rows}) AS r WHERE l >= 0 AND c{i} IS NOT NULL AND "
                f"c{j} IS NOT NULL GROUP BY l, k, {both}"
            )
            for row in self.cursor.fetchall():
                label_code, k, first, *second, count = map(int, row)
                yield label_code, k, i, first, j, second[0] if second else first, count


class Counting:
    """One question, answered by counts."""

    def __init__(self, engine: SqlEngine, work: Work) -> None:
        self._engine, self._work = engine, work

    def partial(self) -> Any:
        work, question = self._work, self._work.planned.question
        if isinstance(question, StateCounts):
            columns = work.schema.columns
            return self._singles([len(STATES)] * len(columns), columns, None, "0")
        if isinstance(question, Histogram) and work.row_map is None:
            return self._classes()
        if isinstance(question, Sum) and isinstance(work.row_map, SingleColumns):
            cells = work.row_map.cells
            sizes = [c.count for c in cells]
            return self._singles(sizes, work.schema.inputs, cells, self._label)
        if isinstance(question, OuterSum) and isinstance(work.row_map, ColumnPairs):
            return self._pairs(work.row_map)
        raise LimbeckError(
            f"'{question.name}' is not made of counts, which is all that a database gives."
        )

    @property
    def _label(self) -> str:
        label = self._work.schema.label
        if label is None:
            return "0"
        return f"COALESCE({self._code(label, Cells(column=label, grid=1))}, -1)"

    def _code(self, column: Column, cells: Cells | None) -> str:
        return coded(column, self._engine.kinds[column.name], self._engine.table.name)(cells)

    def _classes(self) -> np.ndarray:
        total = self._work.mechanism.zero()
        for label, _, _, _, _, _, count in self._engine.counts(["0"], self._label, False):
            total[label] += count
        return total

    def _singles(
        self,
        sizes: Sequence[int],
        columns: Sequence[Column],
        cells: Sequence[Cells] | None,
        label: str,
    ) -> np.ndarray:
        mechanism: Any = self._work.mechanism
        total, starts = mechanism.zero(), np.cumsum([0, *sizes])
        codes = [self._code(c, None if cells is None else cells[i]) for i, c in enumerate(columns)]
        for group, k, i, cell, _, _, count in self._engine.counts(codes, label, False):
            one = np.zeros((1, int(starts[-1])))
            one[0, :k] = 1.0  # a row with so many cells adds the same to each of them
            total[group, starts[i] + cell] += (
                count * mechanism.grid.accumulate(one, np.zeros(1, np.int64))[0, 0]
            )
        return total

    def _pairs(self, row_map: ColumnPairs) -> np.ndarray:
        mechanism: Any = self._work.mechanism
        groups = [np.asarray(g).argmax(axis=1) for g in row_map.groups]
        starts = np.cumsum([0, *(int(g.max()) + 1 for g in groups)])
        size, total = int(starts[-1]), mechanism.zero()
        codes = [self._code(c.column, c) for c in row_map.singles.cells]
        for label, k, i, first, j, second, count in self._engine.counts(codes, self._label, True):
            one = np.zeros((1, size))
            one[0, :k] = 1.0
            lefts, rights = mechanism.round([(one, one)])
            product = count * int(lefts[0][0, 0]) * int(rights[0][0, 0])
            a, b = starts[i] + groups[i][first], starts[j] + groups[j][second]
            total[label, a * size + b] += product
            if a != b:
                total[label, b * size + a] += product
        return total
