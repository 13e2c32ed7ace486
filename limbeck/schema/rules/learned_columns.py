"""The columns that methods learn of a table with rules, made of the schema's own.

A column that rules decide is not learned itself. Of an ordered one its distance is learned from what keeps it
up (or down); a sum, and what a table gives, are computed. Where one of them may be missing, so that the rule
says nothing, the decided column is learned, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import SchemaError
from ..category import Category
from ..columns import Column
from ..date import Date
from ..date_time import DateTime
from ..duration import Duration, clock_reading
from ..image import Image
from ..numeric import Numeric
from ..raw import EPOCH
from .combined import Forbidden, by_table, forbidden, parse_table, tied
from .linear import Lattice
from .ordered import Ordered, in_turn, ordered
from .parser import parse_rule
from .rule import Combination, Dependence, Rule

LINEAR_UNITS = 100
"""Steps of a distance, above which it has a logarithmic scale: most distances are short for their bounds."""


class LearnedColumns:
    """The columns that methods learn, and what decides the others."""

    def __init__(
        self,
        columns: Sequence[Column],
        rules: Sequence[str],
        tables: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.rules = _parsed(rules, self.columns)
        self.label = next((c for c in columns if c.kind == "label"), None)
        self.numbers: Ordered = ordered(self.rules, self.columns)
        self.dependences = self._read_tables(tables)
        self.decided = {*self.numbers.turns, *(d.decided for d, _ in self.dependences)}
        self.tight = {
            n: _tightened(c, self.numbers.lattices.get(n)) for n, c in self.columns.items()
        }
        self.distances: dict[str, int] = {}
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
            if name not in self.decided or self._may_miss(name):
                self.places[name] = len(inputs)
                inputs.append(self.tight[name])
            if name in self.numbers.limits:
                self.distances[name] = len(inputs)
                inputs.append(self._distance(name))
        names = [column.name for column in inputs]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise SchemaError(
                f"rules: '{twice}' is what a learned distance is called; rename that column."
            )
        return tuple(inputs)

    def deciders(self, name: str) -> list[str]:
        if name in self.numbers.limits:
            return self.numbers.limits[name].anchors
        if name in self.numbers.totals:
            return [part for _, part in self.numbers.totals[name].terms]
        return [rule.decides for rule, _ in self.dependences if rule.decided == name]

    def check_target(self, targets: Sequence[Numeric]) -> None:
        """Refuse a target that rules decide: methods tell classes apart by its own cells."""
        for target in targets:
            if target.name in self.decided:
                rule = next(r for r in self.rules if getattr(r, "left", "") == target.name)
                raise SchemaError(
                    f"rule '{rule.text}' decides '{target.name}', which is the target and is learned as it is. "
                    "Say it the other way round, with the target on the right ('cost <= price', not 'price >= "
                    "cost'; 'room == bill - drugs')."
                )

    def _may_miss(self, name: str) -> bool:
        """Whether a decided column has to be learned as well, for rows in which the rule says nothing."""
        missing = any(self.columns[d].missing for d in self.deciders(name))
        return missing or (self.columns[name].missing and name not in self.numbers.limits)

    def _distance(self, name: str) -> Numeric:
        """The column of distances of an ordered column."""
        limits, may_miss = self.numbers.limits[name], self._may_miss(name)
        most, step = self.numbers.reach(name, may_miss), self.numbers.step(name)
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
                    if name in self.decided:
                        raise SchemaError(
                            f"rule '{rule.text}': '{name}' is decided by another rule. Say it of "
                            f"{' or '.join(self.deciders(name))} instead."
                        )
                clauses.append(forbidden(rule, self.tight))
        return clauses

    def table_of(self, name: str) -> tuple[Column, dict[int, int]] | None:
        """The column that decides a category in every row, and its table; None where none does."""
        if name in self.places:
            return None
        tables = ((self.columns[r.decides], t) for r, t in self.dependences if r.decided == name)
        return next(tables, None)

    @property
    def undecided(self) -> list[Column]:
        """The columns that no rule decides, as they are learned; without the label."""
        return [self.inputs[at] for name, at in self.places.items() if name not in self.decided]


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
