"""What a text spells: a number, a day. Each by itself, whatever other cells hold."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress

import numpy as np
import pandas as pd

from ..schema import EPOCH, spelled_by

SECONDS_PER_DAY = 86_400


def number(text: str) -> float:
    """The number that a text spells, or NaN.

    >>> number(" 1e3 "), number("true"), number("1_000")
    (1000.0, 1.0, nan)
    """
    text = text.strip()
    try:
        # Python would also take underscores and digits of other scripts.
        return float(text) if text.isascii() and "_" not in text else np.nan
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(text.lower(), np.nan)


def plainly(text: str, decimal: str, thousands: str) -> str:
    """A number's text, whose marks before fractions and between thousands are known, with a point and no other mark.

    >>> plainly("1.234,5", ",", "."), plainly("-0,25", ",", "."), plainly("1.5", ",", "."), plainly("9,500", ".", ",")
    ('1234.5', '-0.25', 'no number', '9500')
    """
    text = text.strip()
    if thousands == " ":
        text = text.replace("\u00a0", " ").replace("\u202f", " ")
    if thousands and thousands in text:
        groups = rf"[+-]?\d{{1,3}}({re.escape(thousands)}\d{{3}})+({re.escape(decimal)}\d*)?"
        if re.fullmatch(groups, text, re.ASCII):
            text = text.replace(thousands, "")
    if decimal == ",":
        return "no number" if "." in text else text.replace(",", ".")
    return text


def day(text: str, pattern: str | None = None) -> float:
    """Days since 1970 of the day that a text spells (of a moment with a zone: in UTC), or NaN.

    >>> day("1970-01-03"), day("1970-01-01T23:00-02:00"), day("yesterday")
    (2.0, 1.0, nan)
    >>> day("03.01.1970", "%d.%m.%Y")
    2.0
    """
    if pattern is not None and (spelled := spelled_by(text, pattern)) is not None:
        return float((spelled.date() - EPOCH).days)
    text = text.strip()
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        if not re.match(r"[+-]?\d", text):  # pandas knows words such as "today"
            return np.nan
        try:
            stamp = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
            moment = datetime.datetime(int(stamp.year), int(stamp.month), int(stamp.day))
        except (ValueError, TypeError, OverflowError):  # no date, or before the year 1
            return np.nan
    if moment.tzinfo is not None:
        with suppress(OverflowError):  # on the first or the last day there is
            moment = moment.astimezone(datetime.UTC)
    return float((moment.date() - EPOCH).days)
