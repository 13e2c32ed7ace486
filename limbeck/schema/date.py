"""Calendar days within declared bounds."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from .number_underneath import NumberUnderneath
from .numeric import Numeric
from .pattern import DAY, check_pattern
from .raw import EPOCH


@dataclass(frozen=True, kw_only=True)
class Date(NumberUnderneath):
    """A calendar day within declared bounds."""

    name: str
    min: datetime.date
    max: datetime.date
    missing: bool = False
    outside: str = "clip"
    format: str | None = None
    """How texts write it, such as "%d.%m.%Y"; None for ISO 8601."""
    kind: ClassVar[str] = "date"
    reads: ClassVar[str] = "days"

    def __post_init__(self) -> None:
        self.number  # noqa: B018  (bounds are checked by the numeric column underneath)
        check_pattern(self.name, self.format, DAY)

    @property
    def number(self) -> Numeric:
        return Numeric(
            name=self.name,
            integer=True,
            min=(self.min - EPOCH).days,
            max=(self.max - EPOCH).days,
            missing=self.missing,
            outside=self.outside,
        )

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        written = f", written as {self.format}" if self.format else ""
        return f"days from {self.min.isoformat()} to {self.max.isoformat()}{written}"

    def decode(self, cells: np.ndarray) -> pd.Series:
        return self.shown(self.decoded(cells))

    def shown(self, values: np.ndarray) -> pd.Series:
        """Days since 1970 as dates."""
        days = pd.to_datetime(values, unit="D")
        return pd.Series(days, name=self.name).astype("datetime64[s]")

    def facts(self) -> dict[str, object]:
        form = {} if self.format is None else {"format": self.format}
        return {
            "min": self.min.isoformat(),
            "max": self.max.isoformat(),
            **form,
            "missing": self.missing,
            "outside": self.outside,
        }
