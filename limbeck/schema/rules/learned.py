"""What methods learn of a table with rules: columns of their own, and the roads there and back.

A column that rules decide is not learned itself. Of an ordered one its distance is learned from what keeps it
up (or down); a sum, and what a table gives, are computed. Where one of them may be missing, so that the rule
says nothing, the decided column is learned, too. Each row is encoded and decoded by itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ...errors import SchemaError
from ..category import Category
from ..columns import Column
from ..date import Date
from ..date_time import DateTime
from ..duration import Duration, clock_reading
from ..image import Image
from ..numeric import Numeric
from ..raw import EPOCH, Raw, as_numbers
from .combined import Forbidden, by_table, forbidden, parse_table, tied
from .linear import Lattice
from .ordered import Ordered, in_turn, ordered
from .parser import parse_rule
from .rule import Combination, Dependence, Rule, Total

LINEAR_UNITS = 100
"""Steps of a distance, above which it has a logarithmic scale: most distances are short for their bounds."""

Fixed = Mapping[str, np.ndarray]
"""Where columns keep the values that were given, (rows,), by name."""


class Learned:
    """The columns that methods learn, made of a schema's columns by its rules."""

    def __init__(
        self,
        columns: Sequence[Column],
        rules: Sequence[str],
        tables: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.rules = _parsed(rules, self.columns)
        self.label = next((c for c in columns if c.kind == "label"), None)
        self._numbers: Ordered = ordered(self.rules, self.columns)
        self._dependences = self._read_tables(tables)
        self._decided = {*self._numbers.turns, *(d.decided for d, _ in self._dependences)}
        self._tight = {
            n: _tightened(c, self._numbers.lattices.get(n)) for n, c in self.columns.items()
        }
        self._distances: dict[str, int] = {}
        self.places: dict[str, int] = {}
        """Where the columns are that are learned as they are, by name."""
        self.inputs: tuple[Column, ...] = self._inputs()
        self.ties = tied(self._clauses())

    # ---- made when the schema is made ---------------------------------------------------------------

    def _read_tables(
        self, tables: Mapping[str, Sequence[tuple[str, str]]]
    ) -> list[tuple[Dependence, dict[int, int]]]:
        """Dependences on other columns than the label, in turn, with their tables as codes."""
        written = {" ".join(text.split()): pairs for text, pairs in tables.items()}
        found, self._label_clauses = [], list[Forbidden]()
        dependences = [rule for rule in self.rules if isinstance(rule, Dependence)]
        decided = [rule.decided for rule in dependences]
        if strange := sorted(set(written) - {rule.text for rule in dependences}):
            raise SchemaError(
                f"tables: '{strange[0]}' is none of the rules, as it is written there."
            )
        turns = in_turn({rule.decided: [rule.decides] for rule in dependences}, [])
        for rule in sorted(dependences, key=lambda r: turns.index(r.decided)):
            pair = [self.columns[name] for name in rule.columns]
            for column in pair:
                if not isinstance(column, Category) or column.estimated:
                    raise SchemaError(
                        f"rule '{rule.text}': '{column.name}' must be a category with declared values."
                    )
            if decided.count(rule.decided) > 1:
                raise SchemaError(
                    f"rule '{rule.text}': another rule decides '{rule.decided}', too."
                )
            if rule.text not in written:
                raise SchemaError(
                    f"rule '{rule.text}': give its public table: [tables] \"{rule.text}\" = a CSV file beside "
                    "the schema, or the values: it is never read off the rows."
                )
            decides, to = pair
            assert isinstance(decides, Category) and isinstance(to, Category)
            table = parse_table(rule.text, decides, to, written[rule.text])
            if to.label:
                self._label_clauses += by_table(rule.text, decides, to, table)
            else:
                found.append((rule, table))
        return found

    def _inputs(self) -> tuple[Column, ...]:
        inputs: list[Column] = []
        for name, column in self.columns.items():
            if column is self.label:
                continue
            if name not in self._decided or self._may_miss(name):
                self.places[name] = len(inputs)
                inputs.append(self._tight[name])
            if name in self._numbers.limits:
                self._distances[name] = len(inputs)
                inputs.append(self._distance(name))
        names = [column.name for column in inputs]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise SchemaError(
                f"rules: '{twice}' is what a learned distance is called; rename that column."
            )
        return tuple(inputs)

    def _deciders(self, name: str) -> list[str]:
        if name in self._numbers.limits:
            return self._numbers.limits[name].anchors
        if name in self._numbers.totals:
            return [part for _, part in self._numbers.totals[name].terms]
        return [rule.decides for rule, _ in self._dependences if rule.decided == name]

    def _may_miss(self, name: str) -> bool:
        """Whether a decided column has to be learned as well, for rows in which the rule says nothing."""
        missing = any(self.columns[d].missing for d in self._deciders(name))
        return missing or (self.columns[name].missing and name not in self._numbers.limits)

    def _distance(self, name: str) -> Numeric:
        """The column of distances of an ordered column."""
        limits, may_miss = self._numbers.limits[name], self._may_miss(name)
        most, step = self._numbers.reach(name, may_miss), self._numbers.step(name)
        anchors = list(dict.fromkeys(limit.anchor for limit in limits.learned))
        other = (
            anchors[0]
            if len(anchors) == 1
            else f"{'max' if limits.lower else 'min'}({', '.join(anchors)})"
        )
        whole = step is not None and step.denominator == 1
        many = step is not None and most / step > LINEAR_UNITS
        return Numeric(
            name=f"{name} - {other}" if limits.lower else f"{other} - {name}",
            integer=whole,
            min=0,
            max=float(most),
            step=None if step is None or step == 1 and whole else float(step),
            scale="log" if many else "linear",
            missing=may_miss or self.columns[name].missing,
        )

    def _clauses(self) -> list[Forbidden]:
        clauses = list(self._label_clauses)
        for rule in self.rules:
            if isinstance(rule, Combination):
                for name in rule.columns:
                    if name in self._decided:
                        raise SchemaError(
                            f"rule '{rule.text}': '{name}' is decided by another rule. Say it of "
                            f"{' or '.join(self._deciders(name))} instead."
                        )
                clauses.append(forbidden(rule, self._tight))
        return clauses

    # ---- rows in --------------------------------------------------------------------------------------

    def encode(self, raw: Mapping[str, Raw]) -> np.ndarray:
        """Compact cells (rows, learned columns). A row that breaks a rule is moved to the nearest that does
        not; a forbidden combination stays as it is, for nothing is released of it."""
        numbers = self._projected(
            {n: _bounded(self.columns[n], raw[n]) for n in self._numbers.lattices}, {}
        )
        cells: list[np.ndarray] = [np.empty(0)] * len(self.inputs)
        for name, place in self.places.items():
            column = self._tight[name]
            inside = name in numbers
            cells[place] = (
                column.number.encode(numbers[name])  # type: ignore[union-attr]
                if inside
                else column.encode(raw[name])
            )
        for name, place in self._distances.items():
            distance = self.inputs[place]
            assert isinstance(distance, Numeric)
            cells[place] = distance.encode(self._apart(name, numbers))
        return np.stack(cells, axis=1)

    def _apart(self, name: str, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
        """The distance of a column from what keeps it up (or down); NaN where there is no such."""
        limits = self._numbers.limits[name]
        edge = _edge(limits.learned, numbers, upper=not limits.lower)
        return numbers[name] - edge if limits.lower else edge - numbers[name]

    def _projected(self, values: dict[str, np.ndarray], fixed: Fixed) -> dict[str, np.ndarray]:
        """The nearest numbers that keep all orders and sums: one column after the other is moved, those that
        are fixed not at all."""
        found: dict[str, np.ndarray] = {}
        order = [n for n in values if n not in self._decided] + list(self._numbers.turns)
        for name in order:
            if name not in values:
                continue
            lattice, own = self._numbers.lattices[name], values[name]
            total = self._numbers.totals.get(name)
            if total is not None:
                sums = lattice.near(total.of({**values, **found}))
                own = np.where(np.isnan(sums) | np.isnan(own), own, sums)
            low, high = self._room(name, found, len(own))
            moved = np.clip(own, low, np.maximum(low, high))
            found[name] = np.where(fixed[name], values[name], moved) if name in fixed else moved
        return {name: found[name] for name in values}

    def _room(
        self, name: str, known: Mapping[str, np.ndarray], rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Between which values a column may lie, given those that are known."""
        lattice = self._numbers.lattices[name]
        low, high = np.full(rows, float(lattice.low)), np.full(rows, float(lattice.high))
        limits = self._numbers.limits.get(name)
        if limits is not None:
            if limits.lower:
                low = np.fmax(low, lattice.up(_edge(limits.lower, known)))
            if limits.upper:
                high = np.fmin(high, lattice.down(_edge(limits.upper, known, upper=True)))
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
        found: dict[str, np.ndarray] = {}
        if self.label is not None:
            found[self.label.name] = labels.astype(np.float64)
        for name, place in self.places.items():
            found[name] = _value(self._tight[name], cells[:, place].astype(np.float64))
        for name, values in (given or {}).items():
            found[name] = np.where(np.isnan(values), found[name], values)
        for name in self._numbers.turns:
            found[name] = self._decided_number(name, found, cells)
        self._look_up(found)
        return found

    def _look_up(self, found: dict[str, np.ndarray]) -> None:
        """Fill in what tables decide."""
        for rule, table in self._dependences:
            codes = np.asarray([table[i] for i in range(len(table))], np.float64)
            by = found[rule.decides]
            known = (by >= 0) & (by < len(codes))
            looked = codes[np.where(known, by, 0).astype(np.int64)]
            own = found.get(rule.decided)
            if own is None:
                found[rule.decided] = looked
            else:
                count = len(self.columns[rule.decided].values)  # type: ignore[union-attr]
                found[rule.decided] = np.where(known & (own < count), looked, own)

    def _decided_number(
        self, name: str, found: Mapping[str, np.ndarray], cells: np.ndarray
    ) -> np.ndarray:
        lattice, own = self._numbers.lattices[name], found.get(name)
        total = self._numbers.totals.get(name)
        if total is not None:
            sums = lattice.near(total.of(found))
            return sums if own is None else np.where(np.isnan(sums) | np.isnan(own), own, sums)
        limits = self._numbers.limits[name]
        distance = self.inputs[self._distances[name]]
        apart = _value(distance, cells[:, self._distances[name]].astype(np.float64))
        edge = _edge(limits.learned, found, upper=not limits.lower)
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

    # ---- rows of which some columns are given ----------------------------------------------------------

    @property
    def undecided(self) -> list[Column]:
        """The columns that no rule decides, as they are learned; without the label."""
        return [self.inputs[at] for name, at in self.places.items() if name not in self._decided]

    def given_values(
        self, cells: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values of the schema's columns from their own cells; NaN where nothing is known, or missing."""
        found = {}
        for name, own in cells.items():
            column = self.columns[name]
            values = _value(column, own.astype(np.float64))
            if isinstance(column, Category):
                values = np.where(values < len(column.values), values, np.nan)
            found[name] = np.where(known[name], values, np.nan)
        return found

    def encoded(self, name: str, values: np.ndarray) -> np.ndarray:
        """Cells of a column that is learned as it is, from its values; NaN: missing."""
        column = self._tight[name]
        if isinstance(column, Category):
            return np.where(np.isnan(values), float(len(column.values)), values).astype(np.float32)
        return column.number.encode(values)  # type: ignore[union-attr]

    def half_given(self, given: Mapping[str, np.ndarray]) -> str | None:
        """A sum that is given in some row without all of its parts, if there is one."""
        for name, total in self._numbers.totals.items():
            if name in given:
                there = ~np.isnan(given[name])
                parts = [given.get(part, np.full(len(there), np.nan)) for _, part in total.terms]
                if (there & np.isnan(np.sum(parts, axis=0))).any():
                    return name
        return None

    def completed(
        self, values: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values that keep the orders, with those that are given in them: others make room. What an ordered
        column is learned from moves with it, so that its distance stays."""
        found, numbers = dict(values), self._numbers
        fixed = {n: ~np.isnan(given[n]) for n in numbers.lattices if n in given}
        for name, there in fixed.items():
            found[name] = np.where(there, given[name], values[name])
        for name in reversed(numbers.turns):
            limits = numbers.limits.get(name)
            if limits is None or name not in fixed or len(limits.learned) > 1:
                continue
            anchor = limits.learned[0].anchor
            free = fixed[name] & ~fixed.get(anchor, np.zeros(len(fixed[name]), bool))
            moved = values[anchor] + found[name] - values[name]
            found[anchor] = np.where(free & ~np.isnan(moved), moved, found[anchor])
        order = [n for n in numbers.lattices if n not in self._decided] + list(numbers.turns)
        settled = dict(fixed)
        for name in order:
            rows = np.zeros(len(found[name]), bool)
            own = found[name]
            if name in numbers.totals:
                sums = numbers.lattices[name].near(numbers.totals[name].of(found))
                own = np.where(np.isnan(sums) | np.isnan(own), own, sums)
            else:
                low, high = self._room_beside(name, found, settled)
                own = np.clip(numbers.lattices[name].near(own), low, np.maximum(low, high))
            found[name] = np.where(fixed.get(name, rows), found[name], own)
            settled[name] = ~rows
        return found

    def _room_beside(
        self, name: str, found: Mapping[str, np.ndarray], settled: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Between which values a column may lie, given those that are settled, whatever else follows."""
        lattice, distances = self._numbers.lattices[name], self._numbers.distances
        low = np.full(len(found[name]), float(lattice.low))
        high = np.full(len(found[name]), float(lattice.high))
        for other, there in settled.items():
            up, down = distances.most(name, other), distances.most(other, name)
            beside = np.where(there, found[other], np.nan)
            if other != name and up is not None:
                high = np.fmin(high, lattice.down(beside + float(up)))
            if other != name and down is not None:
                low = np.fmax(low, lattice.up(beside - float(down)))
        return low, high

    def looked_back(
        self,
        values: dict[str, np.ndarray],
        given: Mapping[str, np.ndarray],
        rng: np.random.Generator,
    ) -> None:
        """Where a decided category is given and comes out otherwise, another of the values that decide it so."""
        wanted = dict(given)
        for rule, table in reversed(self._dependences):
            to = wanted.get(rule.decided)
            if to is None:
                continue
            by = values[rule.decides].copy()
            for row in np.flatnonzero(~np.isnan(to) & (values[rule.decided] != to)):
                codes = [code for code, given_code in table.items() if given_code == to[row]]
                if codes:
                    by[row] = codes[int(rng.integers(len(codes)))]
            values[rule.decides] = by
            values[rule.decided] = np.where(np.isnan(to), values[rule.decided], to)
            if rule.decides in self._decided:
                wanted[rule.decides] = by

    def decided_again(
        self, values: Mapping[str, np.ndarray], fixed: Fixed
    ) -> dict[str, np.ndarray]:
        """The same after other columns have changed: orders, sums and tables hold again."""
        numbers = {name: values[name] for name in self._numbers.lattices}
        found = {**values, **self._projected(numbers, fixed)}
        self._look_up(found)
        return found

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
        found = {rule.text: np.zeros(len(next(iter(values.values()))), bool) for rule in self.rules}
        with np.errstate(invalid="ignore"):
            for name, limits in self._numbers.limits.items():
                for upper, side in enumerate((limits.lower, limits.upper)):
                    for limit in side:
                        edge = values[limit.anchor] + float(limit.shift)
                        over = values[name] - edge if upper else edge - values[name]
                        found[limit.text] |= over > self._slack(name, edge)
            for rule in self.rules:
                if isinstance(rule, Total):
                    total = self._numbers.totals[rule.left].of(values)
                    found[rule.text] |= np.abs(values[rule.left] - total) > self._slack(
                        rule.left, total
                    )
        for tie in self.ties:
            for clause in tie.clauses:
                found[clause.text] |= clause.broken(values)
        for rule, table in self._dependences:
            codes = np.asarray([table[i] for i in range(len(table))], np.float64)
            by, to = values[rule.decides], values[rule.decided]
            known = (by >= 0) & (by < len(codes)) & (to >= 0)
            known &= to < len(self.columns[rule.decided].values)  # type: ignore[union-attr]
            found[rule.text] |= known & (codes[np.where(known, by, 0).astype(np.int64)] != to)
        return found

    def _slack(self, name: str, values: np.ndarray) -> np.ndarray:
        """By how much floating point may miss."""
        step = self._numbers.lattices[name].step
        return np.maximum(1e-9 * np.abs(values), 0.0 if step is None else 1e-3 * float(step))


def _parsed(texts: Sequence[str], columns: Mapping[str, Column]) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for text in texts:
        rule = parse_rule(text)
        for name in rule.columns:
            if name not in columns:
                raise SchemaError(
                    f"rule '{rule.text}': there is no column '{name}'. There is: {', '.join(columns)}."
                )
            if isinstance(columns[name], Image):
                raise SchemaError(f"rule '{rule.text}': images have no rules.")
        if any(rule.text == other.text for other in rules):
            raise SchemaError(f"rule '{rule.text}' stands there twice.")
        rules.append(rule)
    return tuple(rules)


def _edge(
    limits: Sequence[object], values: Mapping[str, np.ndarray], *, upper: bool = False
) -> np.ndarray:
    """The greatest of what keeps a column up, or the least of what keeps it down; NaN where nothing does."""
    edges = [values[limit.anchor] + float(limit.shift) for limit in limits]  # type: ignore[attr-defined]
    found = edges[0]
    for edge in edges[1:]:
        found = np.fmin(found, edge) if upper else np.fmax(found, edge)
    return found


def _value(column: Column, cells: np.ndarray) -> np.ndarray:
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


def _tightened(column: Column, lattice: Lattice | None) -> Column:
    """A column between the tightest bounds that follow from the rules."""
    if lattice is None:
        return column
    own = Lattice.of(column)
    if (own.low, own.high) == (lattice.low, lattice.high):
        return column
    low, high = float(lattice.low), float(lattice.high)
    if isinstance(column, Numeric):
        return replace(column, min=low, max=high, outer=None)
    if isinstance(column, Date):
        days = (EPOCH + datetime.timedelta(days=round(bound)) for bound in (low, high))
        return replace(column, min=next(days), max=next(days))
    if isinstance(column, Duration):
        return replace(column, min=clock_reading(low), max=clock_reading(high))
    assert isinstance(column, DateTime)
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    ends = [start + datetime.timedelta(seconds=bound) for bound in (low, high)]
    if column.zone is None:
        ends = [end.replace(tzinfo=None) for end in ends]
    return replace(column, min=ends[0], max=ends[1])
