"""Forbidden combinations: conditions that never hold together, and how to draw evenly from what is left."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from ...errors import SchemaError
from ..category import Category
from ..columns import Column
from ..date import Date
from ..date_time import DateTime
from ..duration import Duration, duration_seconds
from ..image import Image
from ..raw import EPOCH, canonical
from .linear import Lattice, exact
from .rule import Atom, Combination

MOST_TOGETHER = 200_000
"""Number of combinations of what rules tell apart in columns that they tie together, at most."""

Values = Mapping[str, np.ndarray]
"""Values of columns by name: codes of categories, numbers of others (NaN: none)."""


@dataclass(frozen=True)
class Test:
    """A condition on one column, read against it. No missing cell meets one."""

    column: Column
    codes: frozenset[int] = frozenset()
    """Of a category: the values that meet it."""
    operator: str = ""
    bound: float = 0.0

    def holds(self, values: np.ndarray) -> np.ndarray:
        if isinstance(self.column, Category):
            return np.isin(values, list(self.codes))
        with np.errstate(invalid="ignore"):
            return {
                ">=": values >= self.bound,
                ">": values > self.bound,
                "<=": values <= self.bound,
                "<": values < self.bound,
            }[self.operator]


@dataclass(frozen=True)
class Forbidden:
    """Conditions that never hold together."""

    text: str
    tests: tuple[Test, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(test.column.name for test in self.tests))

    def broken(self, values: Values) -> np.ndarray:
        """Rows in which all of them hold."""
        return np.logical_and.reduce([t.holds(values[t.column.name]) for t in self.tests])


def forbidden(rule: Combination, columns: Mapping[str, Column]) -> Forbidden:
    """A combination read against the columns."""
    return Forbidden(rule.text, tuple(_test(rule, a, columns[a.column]) for a in rule.forbidden))


def _test(rule: Combination, atom: Atom, column: Column) -> Test:
    if isinstance(column, Image):
        _refuse(rule.text, "images have no rules.")
    if column.estimated:
        what = "values" if isinstance(column, Category) else "bounds"
        _refuse(rule.text, f"the {what} of '{column.name}' are to be estimated. Declare them.")
    if not isinstance(column, Category):
        if atom.operator in ("in", "not in"):
            _refuse(rule.text, f"'{column.name}' is a {column.kind}: compare it by >=, >, <= or <.")
        return Test(column, operator=atom.operator, bound=_bound(rule, column, atom.values[0]))
    if atom.operator not in ("in", "not in"):
        _refuse(rule.text, f"'{column.name}' is a {column.kind}: compare it by =, != or in (...).")
    codes = set()
    for value in atom.values:
        code = column.code(value)
        if code is None:
            _refuse(rule.text, f"column '{column.name}' declares no value '{value}'.")
        codes.add(code)
    if atom.operator == "not in":
        codes = set(range(len(column.values))) - codes
    return Test(column, codes=frozenset(codes))


def _bound(rule: Combination, column: Column, text: str) -> float:
    """A constant in the column's units."""
    try:
        if isinstance(column, Date):
            return float((datetime.date.fromisoformat(text) - EPOCH).days)
        if isinstance(column, DateTime):
            moment = datetime.datetime.fromisoformat(text)
            return float(exact(replace(column, min=moment, max=moment).number.range[0]))
        bound = duration_seconds(text) if isinstance(column, Duration) else float(text)
        if math.isfinite(bound):
            return bound
    except ValueError:
        pass
    wanted = {"date": "a date such as 2020-01-31", "datetime": "a moment such as 2020-01-31T08:00",
              "duration": "a length of time such as '2 days'"}  # fmt: skip
    _refuse(
        rule.text,
        f"'{column.name}' is compared with {wanted.get(column.kind, 'a number')}, got '{text}'.",
    )


# ---- what is left -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """A column cut into parts in which all tests of it are the same."""

    column: Column
    weights: np.ndarray
    """Number of values in each part, or its width."""
    codes: tuple[np.ndarray, ...] = ()
    """Of a category: the values in each part."""
    cuts: np.ndarray | None = None
    """Of a number: where parts meet, its ends included; with steps in steps from the lowest value."""

    @property
    def samples(self) -> np.ndarray:
        """A value of each part."""
        if self.cuts is None:
            return np.asarray([float(codes[0]) for codes in self.codes])
        lattice = Lattice.of(self.column)
        if lattice.step is None:
            return (self.cuts[:-1] + self.cuts[1:]) / 2
        return lattice.near(float(lattice.low) + float(lattice.step) * self.cuts[:-1])

    def part_of(self, values: np.ndarray) -> np.ndarray:
        """The part of each value; -1 for none."""
        if self.cuts is None:
            known = np.full(len(self.column.values) + 2, -1)  # type: ignore[union-attr]
            for part, codes in enumerate(self.codes):
                known[codes] = part
            return known[values.astype(np.int64)]  # -1 picks the last one
        lattice = Lattice.of(self.column)
        place = values
        if lattice.step is not None:
            place = np.rint((values - float(lattice.low)) / float(lattice.step))
        part = np.searchsorted(self.cuts, np.nan_to_num(place), side="right") - 1
        return np.where(np.isnan(values), -1, np.clip(part, 0, len(self.weights) - 1))

    def drawn(self, parts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A value of each of these parts, evenly."""
        chance = rng.random(len(parts))
        if self.cuts is None:
            return np.asarray(
                [
                    float(self.codes[p][int(c * len(self.codes[p]))])
                    for p, c in zip(parts, chance, strict=True)
                ]
            )
        low, high = self.cuts[parts], self.cuts[parts + 1]
        lattice = Lattice.of(self.column)
        if lattice.step is None:
            return low + (0.001 + 0.998 * chance) * (
                high - low
            )  # off the edges, whichever part has them
        units = low + np.floor(chance * (high - low))
        return lattice.near(float(lattice.low) + float(lattice.step) * units)


def parts_of(column: Column, tests: Sequence[Test]) -> Parts:
    if isinstance(column, Category):
        codes = np.arange(len(column.values))
        signs = np.stack([test.holds(codes) for test in tests], axis=1)
        _, group = np.unique(signs, axis=0, return_inverse=True)
        groups = tuple(codes[group.ravel() == g] for g in range(int(group.max()) + 1))
        return Parts(column, np.asarray([float(len(c)) for c in groups]), groups)
    lattice, cuts = Lattice.of(column), set()
    low, high, step = float(lattice.low), float(lattice.high), lattice.step
    if step is None:
        cuts = {min(max(test.bound, low), high) for test in tests} | {low, high}
    else:
        units = int((lattice.high - lattice.low) / step) + 1
        for test in tests:
            place = (exact(test.bound) - lattice.low) / step
            cut = math.ceil(place) if test.operator in (">=", "<") else math.floor(place) + 1
            cuts.add(min(max(cut, 0), units))
        cuts |= {0, units}
    edges = np.asarray(sorted(cuts), np.float64)
    if len(edges) == 1:  # one value is all there is
        edges = np.repeat(edges, 2)
    return Parts(column, np.maximum(np.diff(edges), 1e-300), cuts=edges)


class Ties:
    """Columns that forbidden combinations tie together, and which combinations of their parts are left."""

    def __init__(self, clauses: Sequence[Forbidden]) -> None:
        self.clauses = tuple(clauses)
        tests = [test for clause in clauses for test in clause.tests]
        self.columns = {test.column.name: test.column for test in tests}
        self.parts = {
            name: parts_of(column, [t for t in tests if t.column.name == name])
            for name, column in self.columns.items()
        }
        sizes = [len(part.weights) for part in self.parts.values()]
        count = math.prod(sizes)
        texts = "', '".join(dict.fromkeys(clause.text for clause in clauses))
        if count > MOST_TOGETHER:
            raise SchemaError(
                f"rules '{texts}': they tell {count:,} combinations apart; at most {MOST_TOGETHER:,} can be."
            )
        grid = np.stack(np.unravel_index(np.arange(count), sizes), axis=1)
        values = {n: p.samples[grid[:, i]] for i, (n, p) in enumerate(self.parts.items())}
        bad = np.logical_or.reduce([clause.broken(values) for clause in clauses])
        self.left = grid[~bad]
        """Combinations that are left, (combinations, columns)."""
        weights = [p.weights[self.left[:, i]] for i, p in enumerate(self.parts.values())]
        self.weights = np.prod(weights, axis=0)
        self._check(texts)

    def _check(self, texts: str) -> None:
        if not len(self.left):
            raise SchemaError(f"rules '{texts}': no combination of values is left.")
        for place, (name, column) in enumerate(self.columns.items()):
            gone = set(range(len(self.parts[name].weights))) - set(self.left[:, place].tolist())
            if isinstance(column, Category) and column.label and gone:
                value = column.values[self.parts[name].codes[min(gone)][0]]
                raise SchemaError(
                    f"rules '{texts}': they leave no row to the label's value '{value}'."
                )

    def broken(self, values: Values) -> np.ndarray:
        """Rows that hold a forbidden combination."""
        return np.logical_or.reduce([clause.broken(values) for clause in self.clauses])

    def repaired(
        self, values: Values, fixed: Mapping[str, np.ndarray], rng: np.random.Generator
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Values of the tied columns with broken rows drawn anew, evenly among what is left; and which
        rows could not be mended.

        Columns that are in no broken combination of a row keep their values where that can be.

        Args:
            values: Of all columns.
            fixed: Where a column must keep its value, (rows,), by name.
            rng: Draws.
        """
        mended = {name: values[name].copy() for name in self.columns}
        stuck = np.zeros(len(next(iter(mended.values()))), bool)
        for row in np.flatnonzero(self.broken(mended)):
            here = {n: v[row : row + 1] for n, v in mended.items()}
            involved = {n for c in self.clauses if c.broken(here)[0] for n in c.names}
            held = {n for n in self.columns if n in fixed and fixed[n][row]}
            for keep in (held | (set(self.columns) - involved), held):
                choice = self._choice(here, keep, rng)
                if choice is not None:
                    break
            else:
                stuck[row] = True
                continue
            for place, (name, parts) in enumerate(self.parts.items()):
                if name not in keep:
                    mended[name][row] = parts.drawn(choice[place : place + 1], rng)[0]
        return mended, stuck

    def _choice(self, row: Values, keep: set[str], rng: np.random.Generator) -> np.ndarray | None:
        """One of the combinations that are left and have these columns' parts."""
        fits = np.ones(len(self.left), bool)
        for place, (name, parts) in enumerate(self.parts.items()):
            if name in keep:
                part = parts.part_of(row[name])[0]
                if part >= 0:  # a missing cell forbids nothing
                    fits &= self.left[:, place] == part
        chances = np.cumsum(np.where(fits, self.weights, 0.0))
        if chances[-1] <= 0:
            return None
        return self.left[np.searchsorted(chances, rng.random() * chances[-1], side="right")]


def tied(clauses: Sequence[Forbidden]) -> list[Ties]:
    """The clauses in groups that have no column in common."""
    groups: list[tuple[set[str], list[Forbidden]]] = []
    for clause in clauses:
        names, together = set(clause.names), [clause]
        for other in [g for g in groups if g[0] & names]:
            groups.remove(other)
            names |= other[0]
            together = other[1] + together
        groups.append((names, together))
    return [Ties(together) for _, together in groups]


def by_table(
    text: str, decides: Category, label: Category, table: Mapping[int, int]
) -> list[Forbidden]:
    """What a table says that decides the label: other values never come with it."""
    forbidden = []
    for code in sorted(set(table.values())):
        inputs = frozenset(value for value, given in table.items() if given == code)
        others = frozenset(range(len(label.values))) - {code}
        forbidden.append(Forbidden(text, (Test(decides, codes=inputs), Test(label, codes=others))))
    return forbidden


def parse_table(
    text: str, decides: Category, decided: Category, pairs: Sequence[tuple[str, str]]
) -> dict[int, int]:
    """A dependence's table as codes; every declared value must be in it."""
    table: dict[int, int] = {}
    for given, value in pairs:
        code = decides.code(given)
        if code is None:  # the table may know more than the schema
            continue
        to = decided.code(value)
        if to is None:
            _refuse(
                text, f"its table gives '{value}', which column '{decided.name}' does not declare."
            )
        if table.setdefault(code, to) != to:
            _refuse(text, f"its table gives two values for '{canonical(given)}'.")
    missing = [str(v) for i, v in enumerate(decides.values) if i not in table]
    if missing:
        _refuse(text, f"its table lacks '{missing[0]}', which column '{decides.name}' declares.")
    return table


def _refuse(text: str, what: str) -> NoReturn:
    raise SchemaError(f"rule '{text}': {what}")
