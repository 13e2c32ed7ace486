"""Orders and sums, made ready: which columns others decide, in what turn, and how far they may be apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import NoReturn

import numpy as np

from ...errors import SchemaError
from ..columns import Column
from .distances import NOTHING, Distances, Limit
from .linear import Expression, Lattice, common_step, expression_of
from .rule import Order, Rule, Total


@dataclass
class Limits:
    """What keeps one column above, or below, others."""

    lower: list[Limit] = field(default_factory=list)
    upper: list[Limit] = field(default_factory=list)

    @property
    def learned(self) -> list[Limit]:
        """Those from which its distance is learned."""
        return self.lower or self.upper

    @property
    def anchors(self) -> list[str]:
        return list(dict.fromkeys(limit.anchor for limit in (*self.lower, *self.upper)))


@dataclass(frozen=True)
class Ordered:
    """All orders and sums of a schema; columns that they do not name are not in here."""

    limits: dict[str, Limits]
    """Of each column that orders decide."""
    totals: dict[str, Expression]
    """Of each column that is a sum of others."""
    turns: tuple[str, ...]
    """The decided columns, each after those that decide it."""
    lattices: dict[str, Lattice]
    """Of all columns named, between the tightest bounds that follow."""
    distances: Distances

    def reach(self, name: str, may_miss: bool) -> Fraction:
        """The greatest distance of a column from what its distance is learned from."""
        limits = self.limits[name]
        most = []
        for limit in limits.learned:
            pair = (name, limit.anchor) if limits.lower else (limit.anchor, name)
            apart = self.distances.most(*pair)
            assert apart is not None
            most.append(apart - limit.shift if limits.lower else apart + limit.shift)
        return max(most) if may_miss else min(most)

    def step(self, name: str) -> Fraction | None:
        """The step of that distance; None: any."""
        learned = self.limits[name].learned
        lattices = [self.lattices[n] for n in (name, *(limit.anchor for limit in learned))]
        return common_step(lattices, [limit.shift for limit in learned])


def ordered(rules: Sequence[Rule], columns: Mapping[str, Column]) -> Ordered:
    """Orders and sums of some rules, checked against each other and against the columns' bounds.

    Raises:
        SchemaError: No table can keep them, or not for all values that columns declare.
    """
    linear = [rule for rule in rules if isinstance(rule, Order | Total)]
    texts = {rule.left: rule.text for rule in linear}
    expressions = {rule.text: expression_of(rule, columns) for rule in linear}
    names = dict.fromkeys(name for rule in linear for name in rule.columns)
    lattices = {name: Lattice.of(columns[name]) for name in names}
    totals = _totals(linear, expressions)
    turns = in_turn({rule.left: [] for rule in linear}, linear)
    limits = _limits(linear, expressions, lattices)
    surely = [name for name in names if not columns[name].missing]
    apart = _distances(limits, lattices, surely)
    bounded = {name: lattices[name].within(*apart.range(name)) for name in names}
    for name in turns:
        if name in totals:
            _check_total(totals[name], name, bounded, apart, columns, texts[name])
            parts_miss = any(columns[part].missing for _, part in totals[name].terms)
            if not parts_miss:  # it has the bounds of its parts from here on
                low, high = _range(totals[name], bounded, apart)
                lattices[name] = bounded[name] = Lattice(low, high, lattices[name].step)
    distances = _distances(limits, lattices)
    tight = {name: lattices[name].within(*distances.range(name)) for name in names}
    for name, lattice in tight.items():
        if lattice.low > lattice.high:
            raise SchemaError(f"rules: they leave no value to column '{name}' within its bounds.")
    for name, total in totals.items():
        low, high = _range(total, tight, apart)
        if low < tight[name].low or high > tight[name].high:
            _refuse(
                texts[name], f"other rules bound '{name}' more tightly than its parts are bounded."
            )
    found = Ordered(limits, totals, turns, tight, distances)
    _check_room(found, columns)
    return found


def _totals(
    linear: Sequence[Order | Total], expressions: Mapping[str, Expression]
) -> dict[str, Expression]:
    """The sums by their column, which no other rule may decide."""
    totals = {}
    for rule in linear:
        if isinstance(rule, Total):
            if [r.left for r in linear].count(rule.left) > 1:
                _refuse(
                    rule.text,
                    f"'{rule.left}' is decided by it and by another rule, too. "
                    "Write the other one with another column on its left.",
                )
            totals[rule.left] = expressions[rule.text]
    return totals


def _limits(
    linear: Sequence[Order | Total],
    expressions: Mapping[str, Expression],
    lattices: Mapping[str, Lattice],
) -> dict[str, Limits]:
    """What keeps each ordered column up and down."""
    limits: dict[str, Limits] = {}
    for rule in linear:
        if isinstance(rule, Order):
            right = expressions[rule.text]
            shift = right.constant + _strictness(rule, right, lattices)
            sides = limits.setdefault(rule.left, Limits())
            side = sides.lower if rule.operator[0] == ">" else sides.upper
            side.append(Limit(rule.text, rule.right, shift))
    return limits


def in_turn(decided: Mapping[str, list[str]], rules: Sequence[Rule]) -> tuple[str, ...]:
    """Decided columns, each after those that decide it; a circle is refused."""
    needs = {name: list(deciders) for name, deciders in decided.items()}
    for rule in rules:
        if isinstance(rule, Order | Total):
            needs[rule.left] += rule.columns[1:]
    turns: list[str] = []
    while len(turns) < len(needs):
        ready = [
            n
            for n in needs
            if n not in turns and all(d in turns or d not in needs for d in needs[n])
        ]
        if not ready:
            left = sorted(set(needs) - set(turns))
            raise SchemaError(
                f"rules: '{left[0]}' decides itself by a circle of rules among {', '.join(left)}. The left "
                "column of a rule is decided by those on the right: turn one of the rules round."
            )
        turns += ready
    return tuple(turns)


def _strictness(rule: Order, right: Expression, lattices: Mapping[str, Lattice]) -> Fraction:
    """By how much more the left column must differ where the order is strict."""
    if len(rule.operator) == 2:
        return Fraction(0)
    pair = [lattices[rule.left], lattices[rule.right]]
    step = common_step(pair, [right.constant])
    if step is None:
        _refuse(
            rule.text,
            f"{rule.operator} needs columns with `step` or `decimals`; or say {rule.operator}=.",
        )
    return step if rule.operator == ">" else -step


def _range(
    total: Expression, lattices: Mapping[str, Lattice], apart: Distances
) -> tuple[Fraction, Fraction]:
    """The least and greatest value of a sum; of a difference of two columns, as far apart as they may be."""
    low, high = total.range(lattices)
    if len(total.terms) == 2 and total.terms[0][0] == -total.terms[1][0]:
        (factor, one), (_, other) = sorted(total.terms, reverse=True)
        most, least = apart.most(one, other), apart.most(other, one)
        high = high if most is None else min(high, total.constant + factor * most)
        low = low if least is None else max(low, total.constant - factor * least)
    return low, high


def _check_total(
    total: Expression,
    name: str,
    lattices: Mapping[str, Lattice],
    apart: Distances,
    columns: Mapping[str, Column],
    text: str,
) -> None:
    """Every sum must be a value that its column declares."""
    own = Lattice.of(columns[name])
    low, high = _range(total, lattices, apart)
    if low < own.low or high > own.high:
        _refuse(
            text,
            f"by the bounds of its parts '{name}' may be from {_shown(columns[name], low)} to "
            f"{_shown(columns[name], high)}. Declare so wide bounds (they cost nothing: it is computed), "
            "or narrower ones of the parts.",
        )
    if own.step is not None:
        sizes: list[Fraction | None] = [total.range(lattices)[0] - own.low]
        for factor, part in total.terms:
            step = lattices[part].step
            sizes.append(None if step is None else factor * step)
        if any(size is None or (size / own.step).denominator != 1 for size in sizes):
            _refuse(
                text,
                f"'{name}' has steps of {float(own.step):g}, in which its parts do not come. Give them "
                "such steps (`step`, `decimals`), too.",
            )


def _distances(
    limits: Mapping[str, Limits],
    lattices: Mapping[str, Lattice],
    through: Sequence[str] | None = None,
) -> Distances:
    found = Distances(lattices)
    ways = None if through is None else [*through, NOTHING]
    for name, sides in limits.items():
        for limit in sides.lower:
            _note(found, limit, (limit.anchor, name, -limit.shift), ways)
        for limit in sides.upper:
            _note(found, limit, (name, limit.anchor, limit.shift), ways)
    return found


def _note(
    distances: Distances,
    limit: Limit,
    apart: tuple[str, str, Fraction],
    through: Sequence[str] | None,
) -> None:
    if not distances.add(*apart, through):
        _refuse(
            limit.text, "no values can keep it, given the columns' bounds and the rules before it."
        )


def _check_room(found: Ordered, columns: Mapping[str, Column]) -> None:
    """Whatever those before it are, a column must have room between what keeps it up and what keeps it
    down. Nothing follows by way of a column that may have no value."""
    known = Distances(found.lattices)
    through = [n for n in found.lattices if not columns[n].missing] + [NOTHING]
    for name in found.turns:
        limits = found.limits.get(name)
        if limits is None:
            continue
        for low, high in product(limits.lower, limits.upper):
            apart = low.shift - high.shift
            room = known.most(low.anchor, high.anchor)
            if low.anchor != high.anchor and (room is None or room > -apart):
                _refuse(
                    low.text,
                    f"together with '{high.text}' it demands {high.anchor} >= {low.anchor}"
                    f"{_more(columns[high.anchor], apart)}. Make that a rule of its own.",
                )
            if len({found.lattices[n].step for n in (name, low.anchor, high.anchor)}) > 1 or (
                common_step(
                    [found.lattices[n] for n in (name, low.anchor, high.anchor)],
                    [low.shift, high.shift],
                )
                != found.lattices[name].step
            ):
                _refuse(
                    low.text,
                    f"'{name}' is bounded from both sides, so it needs the same `step` as "
                    + " and ".join(f"'{n}'" for n in dict.fromkeys((low.anchor, high.anchor)))
                    + ", of which offsets are multiples.",
                )
        for limit in limits.lower:
            known.add(limit.anchor, name, -limit.shift, through)
        for limit in limits.upper:
            known.add(name, limit.anchor, limit.shift, through)


def _more(column: Column, apart: Fraction) -> str:
    if not apart:
        return ""
    unit = {"date": " days", "datetime": " seconds", "duration": " seconds"}.get(column.kind, "")
    return f" {'+' if apart > 0 else '-'} {float(abs(apart)):g}{unit}"


def _shown(column: Column, value: Fraction) -> str:
    if column.kind in ("integer", "float"):
        return f"{float(value):.10g}"
    shown = column.shown(np.asarray([float(value)]))[0]  # type: ignore[union-attr]
    return str(shown).removesuffix(" 00:00:00")


def _refuse(text: str, what: str) -> NoReturn:
    raise SchemaError(f"rule '{text}': {what}")
