"""The road of rows with rules: from the schema's columns to those that methods learn, and back.

Each row is encoded and decoded by itself. What comes back keeps every order, sum and table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..category import Category
from ..columns import Column
from ..image import Image
from ..numeric import Numeric
from ..raw import Raw, as_numbers
from .distances import Limit
from .learned_columns import LearnedColumns
from .rule import Total

Fixed = Mapping[str, np.ndarray]
"""Where columns keep the values that were given, (rows,), by name."""


class Learned(LearnedColumns):
    """The columns that methods learn, and the road of rows there and back."""

    # ---- rows in --------------------------------------------------------------------------------------

    def encode(self, raw: Mapping[str, Raw]) -> np.ndarray:
        """Compact cells (rows, learned columns). A row that breaks a rule is moved to the nearest that does
        not; a forbidden combination stays as it is, for nothing is released of it."""
        numbers = self.projected(
            {n: _bounded(self.columns[n], raw[n]) for n in self.numbers.lattices}, {}
        )
        cells: list[np.ndarray] = [np.empty(0)] * len(self.inputs)
        for name, place in self.places.items():
            column = self.tight[name]
            inside = name in numbers
            cells[place] = (
                column.number.encode(numbers[name])  # type: ignore[union-attr]
                if inside
                else column.encode(raw[name])
            )
        for name, place in self.distances.items():
            distance = self.inputs[place]
            assert isinstance(distance, Numeric)
            cells[place] = distance.encode(self._apart(name, numbers))
        return np.stack(cells, axis=1)

    def _apart(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """The distance of a column from what keeps it up (or down); NaN where there is no such."""
        limits = self.numbers.limits[name]
        edge = edge_of(limits.learned, numbers, upper=not limits.lower)
        return numbers[name] - edge if limits.lower else edge - numbers[name]

    def projected(self, values: dict[str, np.ndarray], fixed: Fixed) -> dict[str, np.ndarray]:
        """The nearest numbers that keep all orders and sums: one column after the other is moved, those that
        are fixed not at all."""
        nearest: dict[str, np.ndarray] = {}
        order = [n for n in values if n not in self.decided] + list(self.numbers.turns)
        for name in order:
            if name not in values:
                continue
            lattice, own = self.numbers.lattices[name], values[name]
            total = self.numbers.totals.get(name)
            if total is not None:
                sums = lattice.near(total.of({**values, **nearest}))
                own = np.where(np.isnan(sums) | np.isnan(own), own, sums)
            low, high = self._room(name, nearest, len(own))
            moved = np.clip(own, low, np.maximum(low, high))
            nearest[name] = np.where(fixed[name], values[name], moved) if name in fixed else moved
        return {name: nearest[name] for name in values}

    def _room(
        self, name: str, known: Mapping[str, np.ndarray], rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Between which values a column may lie, given those that are known."""
        lattice = self.numbers.lattices[name]
        low, high = np.full(rows, float(lattice.low)), np.full(rows, float(lattice.high))
        limits = self.numbers.limits.get(name)
        if limits is not None:
            if limits.lower:
                low = np.fmax(low, lattice.up(edge_of(limits.lower, known)))
            if limits.upper:
                high = np.fmin(high, lattice.down(edge_of(limits.upper, known, upper=True)))
        return low, high

    # ---- rows out -------------------------------------------------------------------------------------

    def values(
        self, cells: np.ndarray, labels: np.ndarray, given: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Values of all columns of the schema that keep all rules but combinations: codes of categories, the
        label's too, and numbers.

        Args:
            cells: Of the learned columns, (rows, columns).
            labels: Label codes (rows,).
            given: Values of undecided columns that take the places of those in the cells; NaN for none.
        """
        by_name: dict[str, np.ndarray] = {}
        if self.label is not None:
            by_name[self.label.name] = labels.astype(np.float64)
        for name, place in self.places.items():
            by_name[name] = value_of(self.tight[name], cells[:, place].astype(np.float64))
        for name, values in (given or {}).items():
            by_name[name] = np.where(np.isnan(values), by_name[name], values)
        for name in self.numbers.turns:
            by_name[name] = self._decided_number(name, by_name, cells)
        self.look_up(by_name)
        return by_name

    def look_up(self, by_name: dict[str, np.ndarray]) -> None:
        """Fill in what tables decide."""
        for rule, table in self.dependences:
            codes = np.asarray([table[i] for i in range(len(table))], np.float64)
            by = by_name[rule.decides]
            known = (by >= 0) & (by < len(codes))
            looked = codes[np.where(known, by, 0).astype(np.int64)]
            own = by_name.get(rule.decided)
            if own is None:
                by_name[rule.decided] = looked
            else:
                count = len(self.columns[rule.decided].values)  # type: ignore[union-attr]
                by_name[rule.decided] = np.where(known & (own < count), looked, own)

    def _decided_number(
        self, name: str, found: Mapping[str, np.ndarray], cells: np.ndarray
    ) -> np.ndarray:
        lattice, own = self.numbers.lattices[name], found.get(name)
        total = self.numbers.totals.get(name)
        if total is not None:
            sums = lattice.near(total.of(found))
            return sums if own is None else np.where(np.isnan(sums) | np.isnan(own), own, sums)
        limits = self.numbers.limits[name]
        distance = self.inputs[self.distances[name]]
        apart = value_of(distance, cells[:, self.distances[name]].astype(np.float64))
        edge = edge_of(limits.learned, found, upper=not limits.lower)
        placed = lattice.near(edge + apart if limits.lower else edge - apart)
        if own is not None:
            placed = np.where(np.isnan(placed) | np.isnan(own), own, placed)
        low, high = self._room(name, found, len(placed))
        return np.where(np.isnan(placed), np.nan, np.clip(placed, low, high))

    def frame(self, values: Mapping[str, np.ndarray]) -> list[pd.Series]:
        """The columns of the schema as they are shown, in its order."""
        return [
            column.decode(values[name])
            if isinstance(column, Category)
            else column.shown(values[name])  # type: ignore[union-attr]
            for name, column in self.columns.items()
        ]

    # ---- whether rows keep the rules ------------------------------------------------------------------

    def values_of(self, raw: Mapping[str, Raw]) -> dict[str, np.ndarray]:
        """Values of raw columns as they are: codes of categories, numbers, NaN where there is none."""
        return {
            name: column.encode(raw[name]).astype(np.float64)
            if isinstance(column, Category)
            else as_numbers(raw[name])
            for name, column in self.columns.items()
        }

    def broken(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """For each rule the rows that break it, (rows,). A missing cell breaks none."""
        breaks = {
            rule.text: np.zeros(len(next(iter(values.values()))), bool) for rule in self.rules
        }
        with np.errstate(invalid="ignore"):
            for name, limits in self.numbers.limits.items():
                for upper, side in enumerate((limits.lower, limits.upper)):
                    for limit in side:
                        edge = values[limit.anchor] + float(limit.shift)
                        over = values[name] - edge if upper else edge - values[name]
                        breaks[limit.text] |= over > self._slack(name, edge)
            for rule in self.rules:
                if isinstance(rule, Total):
                    total = self.numbers.totals[rule.left].of(values)
                    breaks[rule.text] |= np.abs(values[rule.left] - total) > self._slack(
                        rule.left, total
                    )
        for tie in self.ties:
            for clause in tie.clauses:
                breaks[clause.text] |= clause.broken(values)
        for rule, table in self.dependences:
            codes = np.asarray([table[i] for i in range(len(table))], np.float64)
            by, to = values[rule.decides], values[rule.decided]
            known = (by >= 0) & (by < len(codes)) & (to >= 0)
            known &= to < len(self.columns[rule.decided].values)  # type: ignore[union-attr]
            breaks[rule.text] |= known & (codes[np.where(known, by, 0).astype(np.int64)] != to)
        return breaks

    def _slack(self, name: str, values: np.ndarray) -> np.ndarray:
        """By how much floating point may miss."""
        step = self.numbers.lattices[name].step
        return np.maximum(1e-9 * np.abs(values), 0.0 if step is None else 1e-3 * float(step))


def edge_of(
    limits: Sequence[Limit], values: Mapping[str, np.ndarray], *, upper: bool = False
) -> np.ndarray:
    """The greatest of what keeps a column up, or the least of what keeps it down; NaN where nothing does."""
    edges = [values[limit.anchor] + float(limit.shift) for limit in limits]
    tightest = edges[0]
    for edge in edges[1:]:
        tightest = np.fmin(tightest, edge) if upper else np.fmax(tightest, edge)
    return tightest


def value_of(column: Column, cells: np.ndarray) -> np.ndarray:
    """Codes of a category's cells as they are; the numbers of others."""
    if isinstance(column, Category | Image):
        return cells
    number = column.number
    return number.on_lattice(number.from_unit(cells))


def _bounded(column: Column, raw: Raw) -> np.ndarray:
    """Numbers as their column declares them: bounded, or missing."""
    number = column.number  # type: ignore[union-attr]
    low, high = number.range
    values = as_numbers(raw)
    bad = np.isnan(values)
    if number.outside == "missing":
        bad |= (values < low) | (values > high)
    values = np.clip(values, low, high)
    values[bad] = np.nan if number.missing else number.from_unit(np.asarray(0.5))
    return values
