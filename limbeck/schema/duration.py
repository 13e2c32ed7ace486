"""Durations, in steps, within declared bounds; and how they are spelled."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .counted import Counted
from .numeric import Numeric

UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
"""Seconds of each unit."""
_SHORT = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day", "w": "week"}
_NUMBER = r"(\d+(?:\.\d+)?)"
_WORDS = re.compile(rf"{_NUMBER}\s*([a-z]+)", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+) days?,? )?(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?", re.ASCII)
_ISO = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII
)


def duration_seconds(text: str) -> float:
    """Seconds of a duration, or NaN: a clock's reading, ISO 8601, a number with a unit, or plain seconds.

    >>> duration_seconds("1:30"), duration_seconds("2 days 00:00:01"), duration_seconds("PT15M"), duration_seconds("1.5 h"), duration_seconds("x")
    (5400.0, 172801.0, 900.0, 5400.0, nan)
    """
    text = text.strip()
    sign = -1.0 if text.startswith("-") else 1.0
    bare = text.lstrip("+-") if len(text) - len(text.lstrip("+-")) <= 1 else ""
    if re.fullmatch(_NUMBER, bare, re.ASCII):
        return sign * float(bare)
    if clock := _CLOCK.fullmatch(bare):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return sign * (86400 * days + 3600 * hours + 60 * minutes + seconds)
    if bare.startswith("P") and bare[-1] not in "PT" and (iso := _ISO.fullmatch(bare)):
        sizes = (604800.0, 86400.0, 3600.0, 60.0, 1.0)
        return sign * sum(s * float(p or 0) for s, p in zip(sizes, iso.groups(), strict=True))
    if words := _WORDS.fullmatch(bare.lower()):
        unit = words[2] if words[2] in _SHORT else words[2].removesuffix("s")
        return sign * float(words[1]) * UNITS.get(_SHORT.get(unit, unit), math.nan)
    return math.nan


def seconds_of(declared: object, name: str, key: str) -> float:
    """Seconds of a duration in a schema."""
    found = duration_seconds(str(declared)) if not isinstance(declared, bool) else math.nan
    if not math.isfinite(found):
        raise SchemaError(
            f'Column \'{name}\': expected {key} to be a duration such as "15 minutes" or "36:00", '
            f"got {declared!r}."
        )
    return found


def spelled(seconds: float) -> str:
    """Seconds in the largest unit that they are whole numbers of.

    >>> spelled(900.0), spelled(86400.0), spelled(0.5)
    ('15 minutes', '1 day', '0.5 seconds')
    """
    units = [(u, s) for u, s in UNITS.items() if u != "week" and seconds and seconds % s == 0]
    unit, size = units[-1] if units else ("second", 1.0)
    count = seconds / size
    shown = str(int(count)) if count.is_integer() else str(count)
    return f"{shown} {unit}" + ("" if count == 1 else "s")


@dataclass(frozen=True, kw_only=True)
class Duration(Counted):
    """A length of time within declared bounds, in whole steps from the lower one."""

    name: str
    min: str
    """Such as "0:00" or "0 minutes"."""
    max: str
    step: str = "1 second"
    missing: bool = False
    outside: str = "clip"
    scale: str = "linear"
    kind: ClassVar[str] = "duration"
    reads: ClassVar[str] = "spans"

    def __post_init__(self) -> None:
        for key in ("min", "max", "step"):
            object.__setattr__(self, key, spelled(seconds_of(getattr(self, key), self.name, key)))
        self.number  # noqa: B018  (bounds and step are checked by the numeric column underneath)

    @property
    def number(self) -> Numeric:
        low, high, step = (duration_seconds(text) for text in (self.min, self.max, self.step))
        return Numeric(
            name=self.name,
            min=low,
            max=high,
            step=step,
            scale=self.scale,
            missing=self.missing,
            outside=self.outside,
        )

    def decode(self, cells: np.ndarray) -> pd.Series:
        return pd.Series(pd.to_timedelta(self.decoded(cells), unit="s"), name=self.name)

    def facts(self) -> dict[str, object]:
        scale = {} if self.scale == "linear" else {"scale": self.scale}
        bounds = {"min": self.min, "max": self.max, "step": self.step}
        return bounds | scale | {"missing": self.missing, "outside": self.outside}
