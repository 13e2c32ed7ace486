"""Values of a declared set: categories, booleans, the label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .raw import Raw, Scalar, Values, canonical
from .states import MISSING, UNKNOWN, USABLE, needs_missing, says_nothing

VALUES_SHOWN = 5
BLANK = -1.0
"""Cell of a category value that is neither declared nor mapped: it contributes nothing."""


@dataclass(frozen=True, kw_only=True)
class Category:
    """One of a declared set of values; also booleans, and the label."""

    name: str
    values: tuple[Scalar, ...] = ()
    """The declared values; empty where frequent values are to be estimated."""
    missing: bool = False
    outside: str | None = None
    """An undeclared value counts as "missing", as one named declared value, or (None) as nothing."""
    most: int | None = None
    """How many frequent values may be estimated with some of the budget."""
    label: bool = False
    boolean: bool = False
    reads: ClassVar[str] = "values"
    _table: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        spell = _truth if self.boolean else canonical
        table = {spell(v): i for i, v in enumerate(self.values)}
        object.__setattr__(self, "_table", table)
        if len(table) < len(self.values):
            twice = next(v for i, v in enumerate(self.values) if table[spell(v)] != i)
            raise SchemaError(f"Column '{self.name}': the value {twice!r} is declared twice.")
        if self.boolean and list(table) != ["false", "true"]:
            raise SchemaError(
                f"Column '{self.name}': expected the two values of a boolean, no before yes, such as "
                '[0, 1] or ["no", "yes"]; for others use kind = "category".'
            )
        if not self.values and self.most is None:
            raise SchemaError(f"Column '{self.name}': declare at least one value.")
        if self.label and self.missing:
            raise SchemaError(
                f"Label '{self.name}': a label cannot be missing; rows without one count as nothing."
            )
        if self.outside not in (None, "missing") and spell(self.outside) not in table:
            raise SchemaError(
                f'Column \'{self.name}\': outside = "{self.outside}" must be "missing" or one of '
                "the declared values."
            )
        if self.outside == "missing" and not self.missing:
            raise needs_missing(self.name)

    @property
    def kind(self) -> str:
        return "label" if self.label else "boolean" if self.boolean else "category"

    @property
    def estimated(self) -> bool:
        return not self.values

    @property
    def slots(self) -> int:
        return len(self.values) + self.missing

    def code(self, value: object) -> int | None:
        """The number of a declared value, however it is spelled; None for any other."""
        return self._table.get(_truth(value) if self.boolean else canonical(value))

    def encode(self, raw: Raw) -> np.ndarray:
        if not isinstance(raw, Values):
            raise TypeError("a category is read as Values")
        absent = float(len(self.values)) if self.missing else BLANK
        undeclared = {None: absent, "missing": absent}.get(self.outside)
        if undeclared is None:
            undeclared = float(self._table[(_truth if self.boolean else canonical)(self.outside)])
        known = map(self.code, raw.distinct)
        table = [undeclared if code is None else float(code) for code in known]
        # Code -1 (null) picks the last entry.
        return np.asarray([*table, absent], dtype=np.float32)[raw.codes]

    def states(self, raw: Raw) -> np.ndarray:
        if not isinstance(raw, Values):
            raise TypeError("a category is read as Values")
        # Where values are estimated, those that are rare have a catch-all.
        other = UNKNOWN if self.most is None else USABLE
        spell = _truth if self.boolean else canonical
        table = [
            USABLE if spell(v) in self._table else MISSING if says_nothing(v) else other
            for v in raw.distinct
        ]
        return np.asarray([*table, MISSING], dtype=np.uint8)[raw.codes]

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        if self.estimated:
            return f"frequent values, {self.most} at most"
        shown = [f'"{canonical(v)}"' for v in self.values[:VALUES_SHOWN]]
        return ", ".join(shown + ["..."] * (len(self.values) > VALUES_SHOWN))

    def expand(self, cells: np.ndarray) -> np.ndarray:
        slots = np.zeros((len(cells), self.slots), np.float32)
        self.mark(cells, slots)
        return slots

    def mark(self, cells: np.ndarray, slots: np.ndarray) -> None:
        """Put a one where each cell says, into slots of zeros."""
        rows = np.flatnonzero(cells >= 0)
        slots[rows, cells[rows].astype(np.int64)] = 1.0

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        weights = np.maximum(np.nan_to_num(slots.astype(np.float64)), 0)
        weights += 1e-12  # a block of zeros is drawn uniformly rather than refused
        steps = np.cumsum(weights, axis=1)
        draw = rng.random((len(slots), 1)) * steps[:, -1:]
        return np.minimum((draw >= steps).sum(axis=1), self.slots - 1).astype(np.float32)

    def decode(self, cells: np.ndarray) -> pd.Series:
        codes = cells.astype(np.int64)
        absent = (codes < 0) | (codes >= len(self.values))
        picked = np.asarray([*self.values, None], dtype=object)[np.where(absent, -1, codes)]
        series = pd.Series(picked, name=self.name, dtype=object)
        kinds = {type(v) for v in self.values}
        if kinds == {bool}:
            return series.astype("boolean" if absent.any() else bool)
        if kinds == {int}:
            return series.astype("Int64" if absent.any() else np.int64)
        if kinds <= {int, float}:
            return series.astype(np.float64)
        return series.map(lambda v: None if v is None else str(v)).astype("str")

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {} if self.label else {"missing": self.missing}
        if not self.boolean or {type(v) for v in self.values} != {bool}:
            facts |= {"values": "estimate" if self.estimated else list(self.values)}
        if self.most is not None:
            # Kept when values were found, too: from it one knows again what was planned.
            facts |= {"most": self.most}
        return facts if self.outside is None else facts | {"outside": self.outside}


def _truth(value: object) -> str:
    text = canonical(value).lower()
    yes = text in ("true", "t", "yes", "y", "1")
    return "true" if yes else "false" if text in ("false", "f", "no", "n", "0") else text
