"""Calendar days within declared bounds."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from .numeric import Numeric
from .raw import EPOCH, Raw


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

    def states(self, raw: Raw) -> np.ndarray:
        return self._days.states(raw)

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        return f"days from {self.min.isoformat()} to {self.max.isoformat()}"

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
