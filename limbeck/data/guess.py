"""Guess the kind of a column from its first cells, for a draft that its owner completes.

A guess holds nothing of a cell: a kind, and how cells are written (a pattern of dates, a number of
digits, the two words of a boolean). Bounds and values are the owner's to declare.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ..schema import UNFILLED, Values, duration_seconds, spelled_by, toml_value
from .cells import PLAIN
from .texts import number, plainly

CELLS = 1000
"""Distinct cells that a guess looks at."""
MOST = 0.95
"""Share of them that must fit."""
LONG_TEXT = 40
"""Letters of the average cell of a column that is taken for free text."""
DIGITS = 6
"""Digits after the point, at most, that are taken for a number's own."""
PATTERNS = ("%d.%m.%Y", "%d.%m.%y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d")
SLASHES = ("%d/%m/%Y", "%m/%d/%Y")
"""Patterns alike but for what comes first, day or month."""
CLOCKS = ("", " %H:%M", " %H:%M:%S")
TRUTHS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("0", "1"))
SEPARATORS = (",", "'", " ")
"""Separators of thousands that a draft knows beside a decimal point; beside a comma, dots are understood."""
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
"""Numbers with commas between thousands, which are no decimal commas."""
KINDS = "integer, float, category, boolean, date, datetime, duration, id, text or label"


class Guess(NamedTuple):
    """A kind, what else a draft says about it, and a hint."""

    kind: str
    lines: tuple[str, ...] = ()
    hint: str = KINDS


def guess(name: str, raw: Values | None, marks: tuple[str, str] = PLAIN) -> Guess:
    """The kind of a column, and its settings, from its name and its first cells.

    Args:
        name: The column's.
        raw: Its first cells.
        marks: What numbers have before fractions and between thousands.
    """
    texts = [] if raw is None else [t.strip() for t in raw.distinct[:CELLS] if t.strip()]
    if not texts:
        return _category()
    for first_guess in (
        _aside(name, texts, raw),
        _boolean(texts),
        _number(texts, marks),
        _written_otherwise(texts, marks),
        _moment(texts),
        _duration(texts),
    ):
        if first_guess is not None:
            return first_guess
    return _category()


def guess_decimal(raws: Mapping[str, Values]) -> str:
    """A comma, if some column has numbers with it and no column has numbers with a point."""
    columns = [[t.strip() for t in raw.distinct[:CELLS] if t.strip()] for raw in raws.values()]
    commas = any(
        texts
        and _most(texts, _comma)
        and any("," in t and not THOUSANDS.fullmatch(t) for t in texts)
        for texts in columns
    )
    points = any(
        texts and _most(texts, _point) and any(re.search(r"\.\d{1,2}$", t) for t in texts)
        for texts in columns
    )
    return "," if commas and not points else "."


def guess_thousands(raws: Mapping[str, Values], decimal: str) -> str | None:
    """What stands between thousands, if beside a decimal point some column has numbers with it."""
    columns = [[t.strip() for t in raw.distinct[:CELLS] if t.strip()] for raw in raws.values()]
    for mark in SEPARATORS if decimal == "." else ():
        for texts in columns:
            if any(_reads(t, (".", mark)) and not _reads(t, PLAIN) for t in texts) and _most(
                texts, partial(_reads, marks=(".", mark))
            ):
                return mark
    return None


def _most(texts: Iterable[str], test: Callable[[str], bool]) -> bool:
    fits = [bool(test(t)) for t in texts]
    return sum(fits) > MOST * len(fits)


def _point(text: str) -> bool:
    return math.isfinite(number(text))


def _comma(text: str) -> bool:
    return _reads(text, (",", "."))


def _reads(text: str, marks: tuple[str, str]) -> bool:
    return math.isfinite(number(plainly(text, *marks)))


def _bounds(hint: str, *more: str) -> tuple[str, ...]:
    low = f'min = "{UNFILLED}"   # {hint}'
    return (low, f'max = "{UNFILLED}"', *more, "missing = false")


def _category() -> Guess:
    values = f'values = "{UNFILLED}"   # such as ["yes", "no"]; or values = "estimate"'
    return Guess("category", (values, "missing = false"))


def _aside(name: str, texts: list[str], raw: Values | None) -> Guess | None:
    """Identifiers by their name, free texts by their length: of neither is a cell ever read."""
    cells = 0 if raw is None else len(raw.codes)
    distinct = raw is not None and cells > 20 and len(raw.distinct) > 0.9 * cells
    if distinct and re.search(r"(?i:(^|[_\W])(id|uuid))$|[a-z]I[Dd]$", name):
        return Guess("id", hint="left out; the release counts its rows afresh. Or " + KINDS)
    if distinct and sum(map(len, texts)) > LONG_TEXT * len(texts):
        return Guess("text", hint="left out of the release. Or " + KINDS)
    return None


def _boolean(texts: list[str]) -> Guess | None:
    words = {t.lower() for t in texts}
    pair = next((p for p in TRUTHS if words <= set(p)), None)
    if pair is None or (pair == ("0", "1") and len(words) < 2):
        return None
    if pair == ("false", "true") and not all(t.isupper() for t in texts):
        return Guess("boolean", ("missing = false",))
    spelling = {t.lower(): t for t in texts}
    values: list[object] = [0, 1] if pair == ("0", "1") else [_like(w, spelling) for w in pair]
    declared = f"values = {toml_value(values)}   # no before yes, as the release writes them"
    return Guess("boolean", (declared, "missing = false"))


def _like(word: str, spelling: Mapping[str, str]) -> str:
    """A word in capitals where the column has it so."""
    shown = next(iter(spelling.values()))
    return word.upper() if shown.isupper() else word.capitalize() if shown[0].isupper() else word


def _number(texts: list[str], marks: tuple[str, str]) -> Guess | None:
    if _most(texts, lambda t: re.fullmatch(r"\d+", t) is not None) and any(
        re.fullmatch(r"0\d+", t) for t in texts
    ):
        return _category()._replace(hint="a code with leading zeros stays a text. Or " + KINDS)
    if not _most(texts, lambda text: _reads(text, marks)):
        return None
    texts = [plainly(t, *marks) for t in texts if _reads(t, marks)]
    hint = 'or min = "estimate" with outer = [lowest, highest]'
    scale = '# scale = "log"   # for amounts of many sizes: incomes, counts, waiting times'
    if not any("." in t or "e" in t.lower() for t in texts):
        return Guess("integer", _bounds(hint, scale))
    fractions = [re.fullmatch(r"[^.eE]*(?:\.(\d*))?", t) for t in texts]
    digits = max(len(f[1] or "") if f else DIGITS + 1 for f in fractions)
    decimals = [f"decimals = {digits}   # digits after the point"] if digits <= DIGITS else []
    return Guess("float", _bounds(hint, *decimals, scale))


def _written_otherwise(texts: list[str], marks: tuple[str, str]) -> Guess | None:
    """Numbers as they are not read: with units, or (not in a CSV file) with separators of thousands."""
    bare = [t.strip("%$€£ ") for t in texts]
    if marks == PLAIN and any(map(THOUSANDS.fullmatch, bare)):
        marks = (".", ",")
    if not _most(bare, lambda text: _reads(text, marks)):
        return None
    unit = "units" if bare != texts else "separators of thousands"
    return _category()._replace(
        hint=f"numbers with {unit} are not read as such: write them plainly. Or {KINDS}"
    )


def _moment(texts: list[str]) -> Guess | None:
    if _most(texts, lambda t: re.match(r"\d{4}-\d\d-\d\d", t) is not None):
        if not any(map(_has_time, texts)):
            return Guess("date", _bounds("such as 1990-01-31"))
        zone = f'zone = "{UNFILLED}"   # such as "Europe/Berlin": of the released moments'
        aware = _most(texts, lambda t: re.search(r"\d(Z|[+-]\d\d:?\d\d)$", t) is not None)
        return Guess("datetime", _moment_lines(texts, *([zone] if aware else [])))
    for clock in CLOCKS:
        for pattern in PATTERNS:
            if _most(texts, _fits(pattern + clock)):
                return _patterned(texts, pattern + clock)
        both = [p + clock for p in SLASHES if _most(texts, _fits(p + clock))]
        if both:
            return _patterned(texts, *both)
    return None


def _fits(pattern: str) -> Callable[[str], bool]:
    return lambda text: spelled_by(text, pattern) is not None


def _patterned(texts: list[str], *patterns: str) -> Guess:
    """Dates or moments of a pattern; where two fit, the owner says which."""
    known = patterns[0] if len(patterns) == 1 else UNFILLED
    choice = "" if len(patterns) == 1 else "   # " + " or ".join(f'"{p}"' for p in patterns)
    form = f'format = "{known}"{choice}'
    if "%H" in patterns[0]:
        return Guess("datetime", _moment_lines(texts, form))
    return Guess("date", _bounds("such as 1990-01-31", form))


def _moment_lines(texts: list[str], *more: str) -> tuple[str, ...]:
    fine = any(re.search(r":\d\d:(\d\d(\.\d+)?)", t) and not _whole_minute(t) for t in texts)
    step = f'step = "{"1 second" if fine else "1 minute"}"   # such as "15 minutes" or "1 hour"'
    return _bounds("such as 1990-01-31T00:00:00", step, *more)


def _whole_minute(text: str) -> bool:
    return re.search(r":\d\d:00(\.0+)?(\D|$)", text) is not None


def _has_time(text: str) -> bool:
    """Whether a moment is not the beginning of a day."""
    time = re.match(r"\s*\d{4}-\d\d-\d\d[T ](\d.*)", text)
    return time is not None and bool(re.search("[1-9]", re.split(r"[Z+-]", time[1])[0]))


def _duration(texts: list[str]) -> Guess | None:
    if not _most(texts, lambda t: math.isfinite(duration_seconds(t))):
        return None
    step = 'step = "1 minute"   # such as "1 second" or "1 hour"'
    return Guess("duration", _bounds('such as "0:00", "36:00" or "2 days"', step))
