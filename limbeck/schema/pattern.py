"""Patterns of dates and times, such as "%d.%m.%Y": figures and marks only, alike in every country."""

from __future__ import annotations

import datetime
import re

from ..errors import SchemaError

DAY, TIME, OFFSET = frozenset("dmyYj"), frozenset("HMSf"), frozenset("z")
"""Letters of patterns, for days, for times of day and for the distance to UTC. Names of months or days
and AM or PM are not among them: they differ by language."""


def check_pattern(name: str, pattern: str | None, allowed: frozenset[str]) -> None:
    """Refuse a pattern with other parts than those allowed, without a whole day, or at odds with ISO 8601."""
    if pattern is None:
        return
    parts = re.findall(r"%(.?)", pattern) if isinstance(pattern, str) else []
    strange = [p for p in parts if p != "%" and p not in allowed]
    known = ", ".join(f"%{letter}" for letter in sorted(allowed))
    if strange:
        raise SchemaError(
            f"Column '{name}': format = \"{pattern}\" has %{strange[0]}; known are {known}."
        )
    whole = {"j"} <= set(parts) or {"d", "m"} <= set(parts)
    if not whole or not {"y", "Y"} & set(parts) or len(set(parts)) < len(parts):
        raise SchemaError(
            f"Column '{name}': expected a format with day, month and year, each once, such as "
            f'"%d.%m.%Y", got {pattern!r}.'
        )
    # Cells that are moments already are read as ISO 8601 where a column mixes them with texts.
    moment = datetime.datetime(2003, 2, 1, 4, 5, 6)
    for text in (str(moment.date()), str(moment), moment.isoformat()):
        if (spelled := spelled_by(text, pattern)) and spelled.date() != moment.date():
            raise SchemaError(
                f"Column '{name}': format = \"{pattern}\" reads {text} as another day than ISO 8601 "
                "does. Convert the column to ISO 8601 and leave `format` out."
            )


def spelled_by(text: str, pattern: str) -> datetime.datetime | None:
    """The moment that a text spells by a pattern; None where it does not fit."""
    text = text.strip()
    if not text.isascii():  # figures of other scripts
        return None
    try:
        return datetime.datetime.strptime(text, pattern)
    except (ValueError, OverflowError):
        return None


def spelled_moment(text: str, pattern: str | None) -> datetime.datetime | None:
    """The moment that a text spells by a pattern, if any, or else by ISO 8601; None where it spells none."""
    if pattern is not None and (spelled := spelled_by(text, pattern)) is not None:
        return spelled
    text = text.strip()
    try:
        return datetime.datetime.fromisoformat(text) if text.isascii() else None
    except ValueError:
        return None
