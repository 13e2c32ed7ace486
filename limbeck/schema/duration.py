"""Durations, in steps, within declared bounds; and how they are spelled."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .number_underneath import NumberUnderneath
from .numeric import Numeric

UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
"""Seconds of each unit."""
_SHORT = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day", "w": "week"}
_NUMBER = r"(\d+(?:\.\d+)?)"
_WORDS = re.compile(rf"{_NUMBER}\s*([a-z]+)", re.ASCII)
_CLOCK = re.compile(r"(\d+):([0-5]\d)(?::([0-5]\d)(\.\d+)?)?", re.ASCII)
_DAYS = re.compile(r"([+-]?\d+) days?,? \+?(\d.*)", re.ASCII)
_ISO = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII
)


def duration_seconds(text: str) -> float:
    """Seconds of a duration, or NaN: a clock's reading, ISO 8601, a number with a unit, or plain seconds.

    >>> duration_seconds("1:30"), duration_seconds("2 days 00:00:01"), duration_seconds("x")
    (5400.0, 172801.0, nan)
    >>> duration_seconds("PT15M"), duration_seconds("1.5 h"), duration_seconds("-1 day, 23:00:00")
    (900.0, 5400.0, -3600.0)
    """
    text = text.strip()
    if days := _DAYS.fullmatch(text):
        # As Python and pandas write them: the days may be negative, the clock is not.
        whole, part = _clock(days[2])
        return float(int(days[1]) * 86400 + whole) + part if len(days[1]) < 12 else math.nan
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        sign = -1.0 if text.startswith("-") else 1.0
    bare = text[1:] if text[:1] in ("+", "-") else text
    if _CLOCK.fullmatch(bare):
        return sign * sum(_clock(bare))
    if bare.startswith("P") and bare[-1] not in "PT" and (iso := _ISO.fullmatch(bare)):
        sizes = (604800.0, 86400.0, 3600.0, 60.0, 1.0)
        return sign * sum(s * float(p or 0) for s, p in zip(sizes, iso.groups(), strict=True))
    if words := _WORDS.fullmatch(bare.lower()):
        unit = words[2] if words[2] in _SHORT else words[2].removesuffix("s")
        return sign * float(words[1]) * UNITS.get(_SHORT.get(unit, unit), math.nan)
    return math.nan


def _clock(text: str) -> tuple[float, float]:
    """Whole seconds of a clock's reading, and the rest."""
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return math.nan, math.nan
    hours, minutes, seconds = (float(part or 0) for part in clock.groups()[:3])
    return 3600 * hours + 60 * minutes + seconds, float(clock[4] or 0)


def seconds_of(declared: object, name: str, key: str) -> float:
    """Seconds of a duration in a schema."""
    seconds = duration_seconds(str(declared)) if not isinstance(declared, bool) else math.nan
    if not math.isfinite(seconds):
        raise SchemaError(
            f'Column \'{name}\': expected {key} to be a duration such as "15 minutes" or "36:00", '
            f"got {declared!r}."
        )
    return seconds


def clock_reading(seconds: float) -> str:
    """Seconds as hours, minutes and seconds of a clock that goes on beyond 24.

    >>> clock_reading(131_400.0), clock_reading(-90.5)
    ('36:30:00', '-0:01:30.5')
    """
    whole = Decimal(repr(abs(seconds)))
    minutes, rest = divmod(whole, 60)
    shown = f"{rest.normalize():f}"
    padded = shown if len(shown.split(".")[0]) == 2 else "0" + shown
    return f"{'-' if seconds < 0 else ''}{int(minutes) // 60}:{int(minutes) % 60:02d}:{padded}"


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
class Duration(NumberUnderneath):
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

    @property
    def declared(self) -> str:
        """What a cell may hold, in words."""
        return f"durations from {self.min} to {self.max}"

    def decode(self, cells: np.ndarray) -> pd.Series:
        return self.shown(self.decoded(cells))

    def shown(self, values: np.ndarray) -> pd.Series:
        """Seconds as durations."""
        return pd.Series(pd.to_timedelta(values, unit="s"), name=self.name)

    def facts(self) -> dict[str, object]:
        scale = {} if self.scale == "linear" else {"scale": self.scale}
        bounds = {"min": self.min, "max": self.max, "step": self.step}
        return bounds | scale | {"missing": self.missing, "outside": self.outside}
