"""Rows drawn from tables of chances, one after the other; the class first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...features import table_cells
from ...schema import Schema
from ..by_class import ByClass
from .conditional_tables import ConditionalTable


@dataclass(frozen=True, kw_only=True)
class TableRows(ByClass):
    """Groups of cells are drawn by tables, then a cell of each group, then a value of the cell.

    Variables are the columns but the label, in their order, and last the class.
    """

    tables: tuple[ConditionalTable, ...]
    """They draw every column; the class is given."""
    groups: np.ndarray
    """The group of each cell of all columns, numbered within its column, (cells,)."""
    within: np.ndarray
    """Chance of each cell, as weights within its group, (cells,)."""
    class_weights: np.ndarray
    grid: int
    """Number of cells of a number with more values than that."""

    kind = "tables"

    def of_classes(
        self, schema: Schema, labels: np.ndarray, rng: np.random.Generator, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        columns = table_cells(schema, self.grid)
        codes = np.zeros((len(labels), len(columns) + 1), np.int64)
        codes[:, -1] = labels
        for table in self.tables:
            table.draw(codes, rng)
        cells, start = np.empty((len(labels), len(columns)), np.float32), 0
        for number, column in enumerate(columns):
            place = slice(start, start + column.count)
            member = np.eye(int(self.groups[place].max()) + 1)[self.groups[place]].T
            ConditionalTable((number,), (number,), member * self.within[place]).draw(codes, rng)
            cells[:, number] = column.draw(codes[:, number], rng)
            start += column.count
        return cells, labels

    def facts(self) -> dict[str, Any]:
        named = [{"given": list(t.given), "new": list(t.new)} for t in self.tables]
        return {"grid": self.grid, "tables": named}

    def arrays(self) -> dict[str, np.ndarray]:
        tables = {f"table_{n}": t.chances for n, t in enumerate(self.tables)}
        others = {"groups": self.groups, "within": self.within, "class_weights": self.class_weights}
        return tables | others

    @classmethod
    def load(
        cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> TableRows:
        tables = [
            ConditionalTable(tuple(t["given"]), tuple(t["new"]), arrays.pop(f"table_{n}"))
            for n, t in enumerate(facts["tables"])
        ]
        return cls(tables=tuple(tables), grid=facts["grid"], **arrays)
