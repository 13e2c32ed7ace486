"""Sums of columns in the units of the column that they are compared with, and the lattice they lie on.

A date counts days, a datetime and a duration seconds. Beside dates a plain number counts days.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

import numpy as np

from ...errors import SchemaError
from ..category import Category
from ..columns import Column
from ..date import Date
from ..date_time import DateTime
from ..duration import Duration, duration_seconds
from ..image import Image
from .rule import Offset, Order, Total

DAY = Fraction(86_400)
NEAR = 1e-6
"""Part of a step by which a computed value may miss one of the values that there are."""


def exact(number: float) -> Fraction:
    """A number as it is written.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(Decimal(repr(float(number))))


@dataclass(frozen=True)
class Lattice:
    """The values that a column has: whole steps from a lowest one; without a step, any between."""

    low: Fraction
    high: Fraction
    step: Fraction | None

    @classmethod
    def of(cls, column: Column) -> Lattice:
        number = column.number  # type: ignore[union-attr]
        low, high = map(exact, number.range)
        step = None if number.lattice is None else exact(number.lattice)
        if number.step is None and step is not None:  # whole numbers, whatever the bounds
            low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
        return cls(low, high, step)

    def within(self, low: Fraction, high: Fraction) -> Lattice:
        """The same between tighter bounds, which are moved to values that there are."""
        low, high = max(low, self.low), min(high, self.high)
        if self.step is not None:
            low = self.low + self.step * math.ceil((low - self.low) / self.step)
            high = self.low + self.step * math.floor((high - self.low) / self.step)
        return Lattice(low, high, self.step)

    def up(self, values: np.ndarray) -> np.ndarray:
        """The least value not below each."""
        return self._moved(values, lambda x: np.ceil(x - NEAR))

    def down(self, values: np.ndarray) -> np.ndarray:
        """The greatest value not above each."""
        return self._moved(values, lambda x: np.floor(x + NEAR))

    def near(self, values: np.ndarray) -> np.ndarray:
        """The nearest value to each."""
        return self._moved(values, np.rint)

    def _moved(self, values: np.ndarray, whole: Callable[..., np.ndarray]) -> np.ndarray:
        if self.step is None:
            return values
        low, step = float(self.low), float(self.step)
        near = low + step * whole((values - low) / step)
        digits = max(decimals(self.low), decimals(self.step))
        return np.round(near, digits)


def decimals(number: Fraction) -> int:
    """Digits after the point, 12 at most."""
    return next((d for d in range(12) if (number * 10**d).denominator == 1), 12)


def common_step(lattices: list[Lattice], shifts: list[Fraction]) -> Fraction | None:
    """The step of all differences between values of the first lattice and of others, shifted; None: any."""
    first = lattices[0]
    parts = [lattice.step for lattice in lattices]
    if any(part is None for part in parts):
        return None
    parts += [first.low - o.low - s for o, s in zip(lattices[1:], shifts, strict=True)]
    step = Fraction(0)
    for part in parts:
        assert part is not None
        step = _divisor(step, abs(part))
    return step


def _divisor(a: Fraction, b: Fraction) -> Fraction:
    """The greatest of which both are whole multiples."""
    common = a.denominator * b.denominator
    return Fraction(math.gcd(int(a * common), int(b * common)), common)


@dataclass(frozen=True)
class Expression:
    """A sum of columns, each times a factor, and a constant."""

    terms: tuple[tuple[Fraction, str], ...]
    constant: Fraction

    def of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Its value in each row; NaN where one of the columns has none."""
        total: np.ndarray = np.asarray(float(self.constant))
        for factor, name in self.terms:
            total = total + float(factor) * values[name]
        return total

    def range(self, lattices: Mapping[str, Lattice]) -> tuple[Fraction, Fraction]:
        """Its least and its greatest value."""
        low = high = self.constant
        for factor, name in self.terms:
            ends = factor * lattices[name].low, factor * lattices[name].high
            low, high = low + min(ends), high + max(ends)
        return low, high


def expression_of(rule: Order | Total, columns: Mapping[str, Column]) -> Expression:
    """The right side of a rule in the units of its left column.

    Raises:
        SchemaError: Columns of kinds that do not go together.
    """
    left = columns[rule.left]
    for name in rule.columns:
        _check_number(rule, columns[name])
    parts = ((1, rule.right),) if isinstance(rule, Order) else rule.parts
    terms = tuple((sign * _factor(rule, left, columns[name]), name) for sign, name in parts)
    points = [(sign, columns[n]) for sign, n in parts if isinstance(columns[n], Date | DateTime)]
    if isinstance(left, Date | DateTime):
        if sum(sign for sign, _ in points) != 1:
            _refuse(
                rule,
                f"'{left.name}' is a {left.kind}: that is one {left.kind}, more or less some time.",
            )
    elif sum(sign for sign, _ in points) != 0 or (
        isinstance(rule, Order) and type(left) is not type(columns[rule.right])
    ):
        _refuse(rule, f"'{left.name}' is a {left.kind}, the other side is not.")
    zones = {c.zone is None for c in (left, *(c for _, c in points)) if isinstance(c, DateTime)}
    if len(zones) > 1:
        _refuse(rule, "datetimes with and without a `zone` cannot be compared.")
    return Expression(terms, _constant(rule, left, rule.offset))


def _check_number(rule: Order | Total, column: Column) -> None:
    if isinstance(column, Category | Image):
        _refuse(
            rule,
            f"'{column.name}' is a {column.kind}; numbers, dates, datetimes and durations can be compared. "
            'Of categories say "not (a = x and b = y)" or "if a = x then b = y".',
        )
    if column.estimated:
        _refuse(
            rule, f"the bounds of '{column.name}' are to be estimated. Declare its min and max."
        )


def _factor(rule: Order | Total, left: Column, column: Column) -> Fraction:
    """Units of the left column in one of another."""
    kinds: dict[tuple[type, type], Fraction] = {
        (Date, Duration): 1 / DAY,
        (Duration, Date): DAY,
        (Duration, DateTime): Fraction(1),
        (DateTime, Duration): Fraction(1),
    }
    one, other = type(left), type(column)
    if one is other:
        return Fraction(1)
    if {one.__name__, other.__name__} == {"Date", "Numeric"}:
        return Fraction(1)
    factor = kinds.get((one, other))
    if factor is None:
        _refuse(
            rule,
            f"'{left.name}' is a {left.kind} and '{column.name}' a {column.kind}: these do not add up.",
        )
    return factor


def _constant(rule: Order | Total, left: Column, offset: Offset | None) -> Fraction:
    if offset is None:
        return Fraction(0)
    amount = exact(offset.amount)
    if not offset.unit:
        if isinstance(left, DateTime | Duration):
            _refuse(rule, f"say the unit of {offset.words}, such as {abs(offset.amount):g} hours.")
        if isinstance(left, Date) and amount.denominator != 1:
            _refuse(rule, f"'{left.name}' counts whole days, got {offset.words}.")
        return amount
    seconds = duration_seconds(f"{abs(offset.amount):g} {offset.unit}")
    if not math.isfinite(seconds):
        _refuse(
            rule, f"{offset.words} is no length of time, such as 1 day, 36 hours or 15 minutes."
        )
    if not isinstance(left, Date | DateTime | Duration):
        _refuse(rule, f"'{left.name}' is a {left.kind}, so {offset.words} cannot be added.")
    units = exact(seconds) * (1 if amount >= 0 else -1)
    if isinstance(left, Date):
        units /= DAY
        if units.denominator != 1:
            _refuse(rule, f"'{left.name}' counts whole days, got {offset.words}.")
    return units


def _refuse(rule: Order | Total, what: str) -> NoReturn:
    raise SchemaError(f"rule '{rule.text}': {what}")
