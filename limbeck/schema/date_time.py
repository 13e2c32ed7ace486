"""Dates with a time of day, in steps, within declared bounds."""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .duration import seconds_of, spelled
from .number_underneath import NumberUnderneath
from .numeric import Numeric
from .pattern import DAY, OFFSET, TIME, check_pattern


@dataclass(frozen=True, kw_only=True)
class DateTime(NumberUnderneath):
    """A date with a time of day, within declared bounds, in whole steps from the lower one.

    Without a `zone` cells are clock times, and one that names its distance to UTC has no value. With a
    `zone` it is the other way round: every cell must name its distance. No row decides for another.
    """

    name: str
    min: datetime.datetime
    max: datetime.datetime
    step: str = "1 second"
    """Distance between two neighbouring values, such as "15 minutes"."""
    zone: str | None = None
    """Time zone of the released moments, such as "Europe/Berlin"; bounds without one are meant in it."""
    missing: bool = False
    outside: str = "clip"
    format: str | None = None
    """How texts write it, such as "%d.%m.%Y %H:%M"; None for ISO 8601."""
    kind: ClassVar[str] = "datetime"
    reads: ClassVar[str] = "seconds"

    def __post_init__(self) -> None:
        try:
            where = None if self.zone is None else zoneinfo.ZoneInfo(self.zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError, TypeError):
            raise SchemaError(
                f"Column '{self.name}': unknown zone {self.zone!r}. Give one such as \"UTC\" or "
                '"Europe/Berlin".'
            ) from None
        for key in ("min", "max"):
            bound = getattr(self, key)
            if where is None and bound.tzinfo is not None:
                raise SchemaError(
                    f"Column '{self.name}': {key} has a time zone, so the column needs `zone`."
                )
            if where is not None:
                local = bound.replace(tzinfo=where) if bound.tzinfo is None else bound
                object.__setattr__(self, key, local.astimezone(where))
        check_pattern(self.name, self.format, DAY | TIME | OFFSET if self.zone else DAY | TIME)
        if self.zone and self.format and "%z" not in self.format:
            raise SchemaError(f"Column '{self.name}': with `zone`, the format needs %z.")
        self.number  # noqa: B018  (bounds and step are checked by the numeric column underneath)

    @property
    def number(self) -> Numeric:
        low, high = (
            (b.replace(tzinfo=datetime.UTC) if b.tzinfo is None else b).timestamp()
            for b in (self.min, self.max)
        )
        return Numeric(
            name=self.name,
            min=low,
            max=high,
            step=seconds_of(self.step, self.name, "step"),
            missing=self.missing,
            outside=self.outside,
        )

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        written = f", written as {self.format}" if self.format else ""
        distance = "with" if self.zone else "without"
        return (
            f"moments from {self.min.isoformat()} to {self.max.isoformat()}, {distance} a distance to "
            f"UTC{written}"
        )

    def decode(self, cells: np.ndarray) -> pd.Series:
        return self.shown(self.decoded(cells))

    def shown(self, values: np.ndarray) -> pd.Series:
        """Seconds since 1970 as moments."""
        absent = np.isnan(values)
        whole = np.where(absent, 0, np.rint(np.where(absent, 0, values) * 1e6)).astype(np.int64)
        moments = pd.Series(whole.astype("datetime64[us]"), name=self.name)
        moments[absent] = pd.NaT
        return (
            moments if self.zone is None else moments.dt.tz_localize("UTC").dt.tz_convert(self.zone)
        )

    def facts(self) -> dict[str, object]:
        unusual = {k: v for k in ("zone", "format") if (v := getattr(self, k)) is not None}
        return {
            "min": self.min.isoformat(),
            "max": self.max.isoformat(),
            "step": spelled(seconds_of(self.step, self.name, "step")),
            **unusual,
            "missing": self.missing,
            "outside": self.outside,
        }
