"""Numbers within declared bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .raw import Numbers, Raw, as_numbers
from .states import MISSING, OUTSIDE, UNKNOWN, check_outside
from .target import check_target


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
    scale: str = "linear"
    """"log": cells lie evenly in the logarithm, for amounts of many sizes; zero stands apart."""
    step: float | None = None
    """Distance of the values that there are, counted from `min`; of integers 1."""
    target: bool = False
    """Whether models will predict it: what a label is among categories."""
    bins: int | None = None
    """Of a target, the parts of its range that methods treat as classes; None: as many as the declared rows
    allow."""
    reads: ClassVar[str] = "numbers"

    def __post_init__(self) -> None:
        check_outside(self.name, self.outside, ("clip", "missing"), self.missing)
        if self.step is not None and not (np.isfinite(self.step) and self.step > 0):
            raise SchemaError(f"Column '{self.name}': expected step > 0, got {self.step}.")
        low, high = self.range
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise SchemaError(f"Column '{self.name}': expected min <= max, got {low} and {high}.")
        if self.scale not in ("linear", "log"):
            raise SchemaError(
                f'Column \'{self.name}\': scale = "{self.scale}" must be "linear" or "log".'
            )
        if self.integer and self.step is not None and self.step != round(self.step):
            raise SchemaError(
                f"Column '{self.name}': an integer has whole steps, got step = {self.step}."
            )
        if self.scale == "log":
            self._check_logarithm(low)
        if self.target or self.bins is not None:
            check_target(self)

    def _check_logarithm(self, low: float) -> None:
        if low < 0:
            raise SchemaError(f"Column '{self.name}': scale = \"log\" needs min >= 0, got {low}.")
        if low == 0 and self.lattice is None:
            raise SchemaError(
                f"Column '{self.name}': scale = \"log\" from 0 on needs the least amount above it: "
                "`step` or `decimals`; or a min above 0."
            )

    @property
    def kind(self) -> str:
        return "integer" if self.integer else "float"

    @property
    def estimated(self) -> bool:
        return self.min is None or self.max is None

    @property
    def number(self) -> Numeric:
        """Itself: other kinds have a number underneath."""
        return self

    @property
    def lattice(self) -> float | None:
        """Distance of the values that there are; None for fractions of any size."""
        return 1.0 if self.step is None and self.integer else self.step

    @property
    def range(self) -> tuple[float, float]:
        """The bounds rows are encoded with: the declared ones, or the outer range. With a step, the upper
        one is the last value that there is."""
        if self.min is not None and self.max is not None:
            low, high = self.min, self.max
        elif self.outer is not None:
            low, high = self.outer
        else:
            raise SchemaError(
                f"Column '{self.name}': bounds to be estimated need `outer = [lowest, highest]`, "
                "a range known without looking at the rows."
            )
        if self.step is None or not high > low:
            return low, high
        return low, low + self.step * math.floor((high - low) / self.step + 1e-9)

    @property
    def units(self) -> int | None:
        """Values that there are, less one; None for fractions of any size."""
        low, high = self.range
        return None if self.lattice is None else round((high - low) / self.lattice)

    def to_unit(self, values: np.ndarray) -> np.ndarray:
        """Places in [0, 1] of values within the bounds, in the declared scale."""
        low, high = self.range
        if self.scale == "linear":
            return (values - low) / (high - low or 1.0)
        with np.errstate(divide="ignore"):
            return self._logarithm(values) / (self._logarithm(np.asarray(high)) or 1.0)

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """The value at each place in [0, 1]; not yet one of those that there are."""
        low, high = self.range
        if self.scale == "linear":
            return low + unit * (high - low)
        grown = unit * self._logarithm(np.asarray(high))
        return low * np.exp(grown) if low > 0 else (self.lattice or 1.0) * np.expm1(grown)

    def _logarithm(self, values: np.ndarray) -> np.ndarray:
        """Zero at the lower bound. From 0 on it is of 1 + the number of steps, so that 0 has a place."""
        low = self.range[0]
        return np.log(values / low) if low > 0 else np.log1p(values / (self.lattice or 1.0))

    def on_lattice(self, values: np.ndarray) -> np.ndarray:
        """The nearest values that there are."""
        low, high = self.range
        if self.step is None:
            if self.integer:
                return np.clip(np.rint(values), np.ceil(low), np.floor(high))
            return np.clip(values, low, high)
        near = low + self.step * np.rint((values - low) / self.step)
        return np.clip(np.round(near, max(map(_decimals, (low, self.step)))), low, high)

    @property
    def slots(self) -> int:
        return 2 if self.missing else 1

    def encode(self, raw: Raw) -> np.ndarray:
        values = as_numbers(raw)
        low, high = self.range
        bad = np.isnan(values)
        if self.outside == "missing":
            bad |= (values < low) | (values > high)
        cells = self.to_unit(np.clip(values, low, high))
        # A value that is absent where absence was not declared sits at mid-range: a constant.
        cells[bad] = np.nan if self.missing else 0.5
        return cells.astype(np.float32)

    def states(self, raw: Raw) -> np.ndarray:
        values, (low, high) = as_numbers(raw), self.range
        states = np.where((values < low) | (values > high), OUTSIDE, 0).astype(np.uint8)
        states[np.isnan(values)] = MISSING
        if isinstance(raw, Numbers):
            states[raw.unread] = UNKNOWN
        return states

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        return "{} from {:g} to {:g}".format(
            "whole numbers" if self.integer else "numbers", *self.range
        )

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
        # float64: float32 cells of a wide integer range would miss whole units.
        return self.shown(self.on_lattice(self.from_unit(cells.astype(np.float64))))

    def shown(self, values: np.ndarray) -> pd.Series:
        """Values that there are, as the column shows them."""
        if not self.integer:
            return pd.Series(values, name=self.name)
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
        unusual: dict[str, object] = {} if self.scale == "linear" else {"scale": self.scale}
        if self.step is not None:
            unusual["step"] = shown(self.step)
        if self.target:
            unusual["target"] = True
        if self.bins is not None:
            unusual["bins"] = self.bins
        return bound | outer | unusual | {"missing": self.missing, "outside": self.outside}


def _decimals(number: float) -> int:
    """Digits after the point of a number as it is written.

    >>> _decimals(0.25), _decimals(1e-7), _decimals(5.0)
    (2, 7, 1)
    """
    exponent = Decimal(repr(float(number))).as_tuple().exponent
    return max(0, -int(exponent))
