"""The person behind several rows: whose presence is hidden where a schema says `[person]`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from ..errors import SchemaError
from .lifetime import is_number

KINDS = ("text", "integer")
MOST_ROWS = 10_000
"""Largest `rows_at_most`: beyond it, so many roundings leave no room for what is measured."""
LONGEST = 40
"""Characters of the longest text that is read as a number: ids are no longer."""

_WHOLE = re.compile(r"([+-]?\d+)\.0*")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Which column tells persons apart, and how many rows of one may enter.

    >>> Person(column="patient", rows_at_most=8).identity(" 7.0 ")
    '7'
    """

    column: str
    """Holds an id per row, one for each person; it is read and never released."""
    rows_at_most: int
    """Rows of a person that are kept; a person with more is represented by a choice of them."""
    persons: int | None = None
    """Public, approximate number of persons; None: unknown."""
    rows_per_person: Sequence[float] | str | None = None
    """Shares of persons with one row, with two and so on, after which released rows get fresh ids;
    "estimate": bought with some of the budget; None: every released row is another person's."""
    kind: str = "text"
    """How ids are compared: as texts ("007" is not "7"), or as whole numbers ("integer")."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(
                '[person]: expected column = "...", the column with an id per person.'
            )
        _check_whole("rows_at_most", self.rows_at_most)
        if self.rows_at_most > MOST_ROWS:
            raise SchemaError(
                f"[person]: expected rows_at_most <= {MOST_ROWS:,}, got {self.rows_at_most}."
            )
        if self.persons is not None:
            _check_whole("persons", self.persons)
        if self.kind not in KINDS:
            raise SchemaError(f'[person]: kind = "{self.kind}" must be "text" or "integer".')
        if self.rows_per_person not in (None, "estimate"):
            object.__setattr__(self, "rows_per_person", self._shares(self.rows_per_person))

    def _shares(self, given: Any) -> tuple[float, ...]:
        plain = isinstance(given, list | tuple) and all(is_number(s) and s >= 0 for s in given)
        if not plain or not 0 < len(given) <= self.rows_at_most or sum(given) <= 0:
            raise SchemaError(
                '[person]: expected rows_per_person = "estimate", or the shares of persons with one row, with '
                f"two and so on up to rows_at_most = {self.rows_at_most}; got {given!r}."
            )
        return tuple(float(share) for share in given)

    @property
    def estimated(self) -> bool:
        """Whether the shares of persons with so many rows are to be bought."""
        return self.rows_per_person == "estimate"

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Shares of persons with one row, with two and so on; None: each released row is another's."""
        return self.rows_per_person if isinstance(self.rows_per_person, tuple) else None

    def identity(self, text: str) -> str | None:
        """The one text of an id, however it is written: 7, " 7" and 7.0 are one person. None: no id."""
        text = text.strip()
        if self.kind == "integer":
            return _integer(text)
        whole = _WHOLE.fullmatch(text)
        return (whole[1] if whole else text) or None

    def facts(self) -> dict[str, object]:
        """Plain data, as written into certificates and hashed."""
        facts: dict[str, object] = {
            "column": self.column,
            "rows_at_most": self.rows_at_most,
            "kind": self.kind,
        }
        if self.persons is not None:
            facts["persons"] = self.persons
        if self.rows_per_person is not None:
            facts["rows_per_person"] = "estimate" if self.shares is None else list(self.shares)
        return facts


def parse_person(value: object) -> Person | None:
    """The table [person] of a schema; None where there is none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise SchemaError(
            f"expected a section [person] with column and rows_at_most, got {value!r}."
        )
    known = ("column", "rows_at_most", "persons", "kind", "rows_per_person")
    for key in value:
        if key not in known:
            raise SchemaError(f"[person]: unknown key '{key}'. Known: {', '.join(known)}.")
    for key in ("column", "rows_at_most"):
        if key not in value:
            raise SchemaError(f"[person]: `{key}` is missing.")
    given: dict[str, Any] = dict(value)
    return Person(**given)


def _check_whole(key: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"[person]: expected {key} to be a whole number from 1, got {value!r}.")


def _integer(text: str) -> str | None:
    if len(text) > LONGEST or not text.isascii() or "_" in text:
        return None
    try:
        number = Decimal(text)
        if not number.is_finite() or abs(number.adjusted()) > LONGEST:
            return "0" if number == 0 else None
        return str(math.trunc(number)) if number == number.to_integral_value() else None
    except InvalidOperation:
        return None
