"""Conditions on columns, such as `ward=Oncology` or `age>=40`: which rows are wanted.

They are read against a schema, and hold of encoded cells, one column each. A number's condition is a
range of the values that a release shows, so `age>=40` means what a reader of the released table sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import LimbeckError
from .category import Category
from .columns import Column
from .image import Image
from .raw import canonical
from .schema import Schema

OPERATORS = ">=|<=|!=|==|=|>|<"
MISSING = "missing"
"""The word for "no value", where no declared value is called so."""
SHOWN = 8
"""Declared values that an error names, at most."""


@dataclass(frozen=True, kw_only=True)
class Among:
    """A category, or the label, is one of some declared values; "missing" may be one of them."""

    column: Category
    codes: frozenset[int]
    words: str
    """The condition as it was written."""

    def holds(self, cells: np.ndarray) -> np.ndarray:
        return np.isin(cells, list(self.codes))

    def together(self, other: Among) -> Among:
        words = f"{self.words} and {other.words}"
        both = Among(column=self.column, codes=self.codes & other.codes, words=words)
        return both if both.codes else _never(words)


@dataclass(frozen=True, kw_only=True)
class Between:
    """A number or a date lies in a range; "missing" does not."""

    column: Column
    low: Any
    """Least value, comparable with what the column decodes to."""
    high: Any
    words: str
    above: bool = False
    """Whether the least value itself is too low."""
    below: bool = False
    """Whether the greatest value itself is too high."""

    def holds(self, cells: np.ndarray) -> np.ndarray:
        return ~np.isnan(cells) & ~self.too_low(cells) & ~self.too_high(cells)

    def too_low(self, cells: np.ndarray) -> np.ndarray:
        shown = _decoded(self.column, cells)
        return _truths(shown <= self.low if self.above else shown < self.low)

    def too_high(self, cells: np.ndarray) -> np.ndarray:
        shown = _decoded(self.column, cells)
        return _truths(shown >= self.high if self.below else shown > self.high)

    def together(self, other: Between) -> Between:
        low, above = max((self.low, self.above), (other.low, other.above))
        high, strict = min((self.high, not self.below), (other.high, not other.below))
        words = f"{self.words} and {other.words}"
        if low > high or (low == high and (above or not strict)):
            _never(words)
        return Between(
            column=self.column, low=low, high=high, above=above, below=not strict, words=words
        )


Condition = Among | Between
Where = Mapping[str, Any] | Iterable[str] | str


def read_conditions(schema: Schema, where: Where | None) -> tuple[Condition, ...]:
    """Conditions in words or as a mapping, one for each column that they name; all must hold.

    Args:
        schema: The columns.
        where: Texts such as "ward=Oncology|Surgery", "ward!=Oncology", "age>=40"; or a mapping of names
            to a value, a list of values, or, for numbers and dates, a range (low, high), ends
            included, None for an open end.

    Raises:
        LimbeckError: A column or value that is not there, or a condition that no row can meet.

    >>> from limbeck import Category, Numeric
    >>> ward = Category(name="ward", values=("Oncology", "Surgery"))
    >>> age = Numeric(name="age", integer=True, min=0, max=99)
    >>> schema = Schema(dataset="d", columns=(ward, age))
    >>> [c.words for c in read_conditions(schema, {"ward": "Surgery", "age": (40, None)})]
    ['ward=Surgery', 'age>=40']
    >>> read_conditions(schema, ["age>=40", "age<30"])
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: No row can meet age>=40 and age<30.
    """
    if where is None:
        return ()
    if isinstance(where, Mapping):
        parts = [
            part for name, wanted in where.items() for part in _of_mapping(schema, name, wanted)
        ]
    else:
        texts = [where] if isinstance(where, str) else list(where)
        parts = [_of_text(schema, text) for text in texts]
    merged: dict[str, Any] = {}
    for part in parts:
        name = part.column.name
        merged[name] = merged[name].together(part) if name in merged else part
    return tuple(merged.values())


def _of_text(schema: Schema, text: object) -> Condition:
    names = sorted((c.name for c in schema.columns), key=len, reverse=True)
    if isinstance(text, str):
        for name in names:  # the longest first: names may hold blanks and signs
            if parts := re.fullmatch(rf"\s*{re.escape(name)}\s*({OPERATORS})(.*)", text, re.DOTALL):
                return _condition(_column(schema, name), parts[1], parts[2].strip(), text.strip())
        if parts := re.match(rf"(.*?)({OPERATORS})", text):
            _column(schema, parts[1].strip())  # says that there is none
    raise LimbeckError(f"Expected a condition such as ward=Oncology or age>=40, got {text!r}.")


def _of_mapping(schema: Schema, name: str, wanted: Any) -> list[Condition]:
    column = _column(schema, name)
    if isinstance(column, Category):
        several = isinstance(wanted, list | tuple | set | frozenset)
        values = list(wanted) if several else [wanted]
        words = f"{name}={'|'.join(MISSING if v is None else str(v) for v in values)}"
        return [_among(column, "=", values, words)]
    if isinstance(wanted, tuple) and len(wanted) == 2 and wanted != (None, None):
        ends = zip((">=", "<="), wanted, strict=True)
        return [_condition(column, o, v, f"{name}{o}{v}") for o, v in ends if v is not None]
    if isinstance(wanted, list | tuple | set | dict) or wanted is None:
        raise LimbeckError(
            f"Column '{name}': expected a value or a range (low, high), got {wanted!r}."
        )
    operator, value = "=", wanted
    if isinstance(wanted, str) and (parts := re.fullmatch(rf"\s*({OPERATORS})(.*)", wanted)):
        operator, value = parts[1], parts[2].strip()
    return [_condition(column, operator, value, f"{name}{operator}{value}")]


def _condition(column: Column, operator: str, value: Any, words: str) -> Condition:
    if isinstance(column, Category):
        if operator not in ("=", "==", "!="):
            raise LimbeckError(
                f"Column '{column.name}' is a {column.kind}: compare it by = or !=, got {words!r}."
            )
        whole = _code(column, value) is not None
        return _among(column, operator, [value] if whole else str(value).split("|"), words)
    if operator == "!=":
        raise LimbeckError(f"Column '{column.name}': compare it by =, <, <=, > or >=.")
    bound = _bound(column, value)
    low, high = _decoded(column, np.asarray([0.0, 1.0], np.float32))
    at_least, at_most = operator in (">=", ">", "=", "=="), operator in ("<=", "<", "=", "==")
    if (at_least and bound > high) or (at_most and bound < low):
        raise LimbeckError(
            f"Column '{column.name}' lies between {_shown(low)} and {_shown(high)}: no row can meet "
            f"{words}."
        )
    return Between(
        column=column,
        low=bound if at_least else low,
        high=bound if at_most else high,
        above=operator == ">",
        below=operator == "<",
        words=words,
    )


def _among(column: Category, operator: str, values: list[Any], words: str) -> Among:
    codes = set()
    for value in values:
        code = _code(column, value)
        if code is None:
            known = [str(v) for v in column.values] + [MISSING] * column.missing
            listed = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
            raise LimbeckError(f"Column '{column.name}' has no value {value!r}. It has: {listed}.")
        codes.add(code)
    if operator == "!=":
        codes = set(range(column.slots)) - codes
    return Among(column=column, codes=frozenset(codes), words=words) if codes else _never(words)


def _code(column: Category, value: Any) -> int | None:
    """The code of a declared value or of "missing"; None for any other."""
    absent = value is None or canonical(value).lower() == MISSING
    code = None if value is None else column.code(value)
    return len(column.values) if code is None and absent and column.missing else code


def _column(schema: Schema, name: str) -> Column:
    for column in schema.columns:
        if column.name == name and not isinstance(column, Image):
            return column
    known = ", ".join(c.name for c in schema.columns if not isinstance(c, Image))
    raise LimbeckError(
        f"There is no column '{name}' to choose rows by. There is: {known or 'none'}."
    )


def _bound(column: Column, value: Any) -> Any:
    """A value as the column decodes its own: a number, a moment or a span."""
    kind = _decoded(column, np.asarray([0.5], np.float32)).dtype
    read: Any = float
    wanted = "a number"
    if pd.api.types.is_datetime64_any_dtype(kind):
        read, wanted = pd.Timestamp, "a date such as 2020-01-31"
    elif pd.api.types.is_timedelta64_dtype(kind):
        read, wanted = pd.Timedelta, "a span of time such as 1h30min"
    try:
        bound = read(value)
        if bound == bound:  # neither NaN nor NaT
            return bound
    except (ValueError, TypeError):
        pass
    raise LimbeckError(f"Column '{column.name}': expected {wanted}, got {value!r}.")


def _decoded(column: Column, cells: np.ndarray) -> pd.Series:
    shown = column.decode(cells)
    assert isinstance(shown, pd.Series)
    return shown.astype(np.float64) if pd.api.types.is_numeric_dtype(shown.dtype) else shown


def _truths(compared: pd.Series) -> np.ndarray:
    return compared.fillna(False).to_numpy(bool)


def _shown(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound).removesuffix(" 00:00:00")


def _never(words: str) -> Any:
    raise LimbeckError(f"No row can meet {words}.")
