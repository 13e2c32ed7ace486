"""Numbers within declared bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .policy import check_policy
from .raw import Numbers, Raw, as_numbers
from .states import MISSING, OUTSIDE, UNKNOWN


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
        check_policy(self.name, self.outside, ("clip", "missing"), self.missing)
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
        values = as_numbers(raw)
        low, high = self.range
        bad = np.isnan(values)
        if self.outside == "missing":
            bad |= (values < low) | (values > high)
        cells = (np.clip(values, low, high) - low) / (high - low or 1.0)
        # A value that is absent where absence was not declared sits at mid-range: a constant.
        cells[bad] = np.nan if self.missing else 0.5
        return cells.astype(np.float32)

    def states(self, raw: Raw) -> np.ndarray:
        values, (low, high) = as_numbers(raw), self.range
        found = np.where((values < low) | (values > high), OUTSIDE, 0).astype(np.uint8)
        found[np.isnan(values)] = MISSING
        if isinstance(raw, Numbers):
            found[raw.unread] = UNKNOWN
        return found

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
