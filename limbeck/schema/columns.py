"""The kinds of column a schema can declare: public bounds, and the road from raw values and back.

A raw column arrives from `limbeck.data` in one of two plain forms: `Numbers` (float64, NaN where there is
no number; dates as days since 1970) or `Values` (codes into a list of distinct texts, -1 for
null). `encode` turns it into one float32 cell per row. The cell is compact; `expand` gives the
slots that methods see (one-hot blocks, numbers in [0, 1], a slot for "missing"), `collapse`
turns slots made by a generator back into cells, and `decode` gives the owner's own values.

No rule here can fail on what one row contains: whatever is outside the declaration follows the
declared policy.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError

BLANK = -1.0
"""Cell of a category value that is neither declared nor mapped: it contributes nothing."""

EPOCH = datetime.date(1970, 1, 1)

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Values:
    """Texts of a column, dictionary-coded: `codes` index `distinct`; -1 is null."""

    codes: np.ndarray
    distinct: list[str]


Raw = np.ndarray | Values


def canonical(value: object) -> str:
    """The text under which two spellings of one category value meet.

    >>> canonical(1.0), canonical(" 1"), canonical(True), canonical(b"1")
    ('1', '1', 'true', '1')
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return str(value).strip()


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """An integer or a float within declared bounds."""

    name: str
    integer: bool = False
    min: float | None = None
    """Lower bound; None where it is to be estimated within `outer`."""
    max: float | None = None
    missing: bool = False
    """Whether "no value" is a value of this column: kept, and released too."""
    outside: str = "clip"
    """What happens beyond the bounds: "clip" to them or count as "missing"."""
    outer: tuple[float, float] | None = None
    """Public outer range within which bounds are estimated with some of the budget."""
    reads: ClassVar[str] = "numbers"

    def __post_init__(self) -> None:
        _check_policy(self.name, self.outside, ("clip", "missing"), self.missing)
        low, high = self.range
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise SchemaError(f"Column '{self.name}': expected min <= max, got {low} and {high}.")

    @property
    def kind(self) -> str:
        return "integer" if self.integer else "float"

    @property
    def estimated(self) -> bool:
        return self.min is None or self.max is None

    @property
    def range(self) -> tuple[float, float]:
        """The bounds rows are encoded with: the declared ones, or the outer range."""
        if self.min is not None and self.max is not None:
            return self.min, self.max
        if self.outer is None:
            raise SchemaError(
                f"Column '{self.name}': bounds to be estimated need `outer = [lowest, highest]`, "
                "a range known without looking at the rows."
            )
        return self.outer

    @property
    def slots(self) -> int:
        return 2 if self.missing else 1

    def encode(self, raw: Raw) -> np.ndarray:
        values = _numbers(raw)
        low, high = self.range
        bad = np.isnan(values)
        if self.outside == "missing":
            bad |= (values < low) | (values > high)
        cells = (np.clip(values, low, high) - low) / (high - low or 1.0)
        # A value that is absent where absence was not declared sits at mid-range: a constant.
        cells[bad] = np.nan if self.missing else 0.5
        return cells.astype(np.float32)

    def expand(self, cells: np.ndarray) -> np.ndarray:
        gone = np.isnan(cells)
        value = np.where(gone, 0.5, np.clip(cells, 0, 1))
        return np.stack([value, gone][: self.slots], axis=1).astype(np.float32)

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cells = np.clip(slots[:, 0], 0, 1).astype(np.float32)
        if self.missing:
            cells[rng.random(len(cells)) < slots[:, 1]] = np.nan
        return cells

    def decode(self, cells: np.ndarray) -> pd.Series:
        low, high = self.range
        # float64: float32 cells of a wide integer range would miss whole units.
        values = low + cells.astype(np.float64) * (high - low)
        if not self.integer:
            return pd.Series(np.clip(values, low, high), name=self.name)
        values = np.clip(np.rint(values), np.ceil(low), np.floor(high))
        if self.missing:
            return pd.Series(values, name=self.name).astype("Int64")
        return pd.Series(values.astype(np.int64), name=self.name)

    def facts(self) -> dict[str, object]:
        shown = (lambda v: int(v)) if self.integer else (lambda v: float(v))
        bound: dict[str, object] = {
            key: "estimate" if value is None else shown(value)
            for key, value in (("min", self.min), ("max", self.max))
        }
        outer = {} if self.outer is None else {"outer": [shown(v) for v in self.outer]}
        return bound | outer | {"missing": self.missing, "outside": self.outside}


@dataclass(frozen=True, kw_only=True)
class Date:
    """A calendar day within declared bounds."""

    name: str
    min: datetime.date
    max: datetime.date
    missing: bool = False
    outside: str = "clip"
    kind: ClassVar[str] = "date"
    reads: ClassVar[str] = "days"
    estimated: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._days  # noqa: B018  (bounds are checked by the numeric column underneath)

    @property
    def _days(self) -> Numeric:
        return Numeric(
            name=self.name,
            integer=True,
            min=(self.min - EPOCH).days,
            max=(self.max - EPOCH).days,
            missing=self.missing,
            outside=self.outside,
        )

    @property
    def slots(self) -> int:
        return self._days.slots

    def encode(self, raw: Raw) -> np.ndarray:
        return self._days.encode(raw)

    def expand(self, cells: np.ndarray) -> np.ndarray:
        return self._days.expand(cells)

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self._days.collapse(slots, rng)

    def decode(self, cells: np.ndarray) -> pd.Series:
        days = self._days.decode(cells).astype("Float64").to_numpy(np.float64, na_value=np.nan)
        return pd.Series(pd.to_datetime(days, unit="D"), name=self.name).astype("datetime64[s]")

    def facts(self) -> dict[str, object]:
        return {
            "min": self.min.isoformat(),
            "max": self.max.isoformat(),
            "missing": self.missing,
            "outside": self.outside,
        }


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
        table = {canonical(v): i for i, v in enumerate(self.values)}
        object.__setattr__(self, "_table", table)
        if len(table) < len(self.values):
            twice = next(v for i, v in enumerate(self.values) if table[canonical(v)] != i)
            raise SchemaError(f"Column '{self.name}': the value {twice!r} is declared twice.")
        if not self.values and self.most is None:
            raise SchemaError(f"Column '{self.name}': declare at least one value.")
        if self.label and self.missing:
            raise SchemaError(
                f"Label '{self.name}': a label cannot be missing; rows without one count as nothing."
            )
        if self.outside not in (None, "missing") and canonical(self.outside) not in table:
            raise SchemaError(
                f'Column \'{self.name}\': outside = "{self.outside}" must be "missing" or one of '
                "the declared values."
            )
        if self.outside == "missing" and not self.missing:
            raise _needs_missing(self.name)

    @property
    def kind(self) -> str:
        return "label" if self.label else "boolean" if self.boolean else "category"

    @property
    def estimated(self) -> bool:
        return not self.values

    @property
    def slots(self) -> int:
        return len(self.values) + self.missing

    def encode(self, raw: Raw) -> np.ndarray:
        if not isinstance(raw, Values):
            raise TypeError("a category is read as Values")
        absent = float(len(self.values)) if self.missing else BLANK
        undeclared = {None: absent, "missing": absent}.get(self.outside)
        if undeclared is None:
            undeclared = float(self._table[canonical(self.outside)])
        keys = [_truth(v) if self.boolean else canonical(v) for v in raw.distinct]
        table = [float(self._table.get(k, undeclared)) for k in keys]
        # Code -1 (null) picks the last entry.
        return np.asarray([*table, absent], dtype=np.float32)[raw.codes]

    def expand(self, cells: np.ndarray) -> np.ndarray:
        slots = np.zeros((len(cells), self.slots), np.float32)
        rows = np.flatnonzero(cells >= 0)
        slots[rows, cells[rows].astype(np.int64)] = 1.0
        return slots

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
        if not self.boolean:
            facts |= {"values": "estimate" if self.estimated else list(self.values)}
        if self.most is not None:
            # Kept when values were found, too: from it one knows again what was planned.
            facts |= {"most": self.most}
        return facts if self.outside is None else facts | {"outside": self.outside}


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture of fixed size with a declared range of pixel values."""

    name: str = "image"
    height: int
    width: int
    channels: int = 1
    min: float = 0.0
    max: float = 255.0
    kind: ClassVar[str] = "image"
    estimated: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if min(self.height, self.width, self.channels) < 1:
            raise SchemaError(f"Image '{self.name}': height, width and channels must be positive.")
        if self.channels not in (1, 3):
            raise SchemaError(
                f"Image '{self.name}': expected 1 or 3 channels, got {self.channels}."
            )
        if not self.min < self.max:
            raise SchemaError(f"Image '{self.name}': expected min < max.")

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def slots(self) -> int:
        return self.height * self.width * self.channels

    def encode(self, raw: Raw) -> np.ndarray:
        """Flatten; bytes stay bytes (a quarter of the memory), all else becomes float32."""
        if isinstance(raw, Values):
            raise TypeError("an image is read as pixels")
        flat = raw.reshape(len(raw), self.slots)
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and clipped like it
            return flat if flat.dtype == np.uint8 else flat.astype(np.float32)

    def expand(self, cells: np.ndarray) -> np.ndarray:
        unit = (cells.astype(np.float32) - np.float32(self.min)) / np.float32(self.max - self.min)
        return np.clip(np.nan_to_num(unit, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)

    def decode(self, unit: np.ndarray) -> np.ndarray:
        """Pixels in the declared range, (rows, height, width, channels)."""
        pixels = self.min + np.clip(unit, 0, 1) * (self.max - self.min)
        pixels = pixels.reshape(len(unit), *self.shape)
        if (self.min, self.max) == (0, 255):
            return np.rint(pixels).astype(np.uint8)
        return pixels.astype(np.float32)

    def facts(self) -> dict[str, object]:
        return {
            "height": self.height,
            "width": self.width,
            "channels": self.channels,
            "min": self.min,
            "max": self.max,
        }


Column = Numeric | Date | Category | Image


def _check_policy(name: str, outside: str, allowed: tuple[str, ...], missing: bool) -> None:
    if outside not in allowed:
        choices = " or ".join(f'"{a}"' for a in allowed)
        raise SchemaError(f"Column '{name}': outside = \"{outside}\" must be {choices}.")
    if outside == "missing" and not missing:
        raise _needs_missing(name)


def _needs_missing(name: str) -> SchemaError:
    return SchemaError(
        f"Column '{name}': outside = \"missing\" needs `missing = true` in the same column."
    )


def _numbers(raw: Raw) -> np.ndarray:
    if isinstance(raw, Values):
        raise TypeError("a numeric column is read as numbers")
    return np.array(raw, dtype=np.float64)


def _truth(value: object) -> str:
    text = canonical(value).lower()
    yes = text in ("true", "t", "yes", "y", "1")
    return "true" if yes else "false" if text in ("false", "f", "no", "n", "0") else text
