"""Column names as they come from a file: which are refused, and what is told of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ..errors import DataError
from ..schema import Schema, says_nothing
from .texts import day, number

NAMES_SHOWN = 20

_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d[\d.,'\s]*%?")
_DATE_OR_TIME = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(\D.*)?|\d{1,2}:\d\d(:\d\d.*)?")


def looks_like_value(name: str) -> bool:
    """Whether a column name rather looks like what a cell holds.

    >>> [looks_like_value(n) for n in ("age", "1st", "39", "12,5", "", "03.02.2010", "NA")]
    [False, False, True, True, True, True, True]
    """
    name = name.strip()
    if says_nothing(name) or name.lower() in ("true", "false"):
        return True
    if not math.isnan(number(name)) or not math.isnan(day(name)):
        return True
    return any(form.fullmatch(name) for form in (_NUMBER, _DATE_OR_TIME))


def check_names(names: Sequence[str], where: str, *, names_are_right: bool = False) -> None:
    """Refuse names that may be a person's values, and two columns of one name.

    A file without a line of column names has its first record in their place: the names would go
    into schema, certificate and card. For the same reason none is printed here.
    """
    doubtful = sum(looks_like_value(name) for name in names)
    if doubtful and not names_are_right:
        raise DataError(
            f"{where}: {doubtful} of its {len(names)} column names are empty or look like values "
            "(numbers, dates), as if its first record stood where the column names should. Give it "
            "column names. If these are the names, say names_are_right = true in the schema; for a "
            "draft: `limbeck schema --names-are-right`."
        )
    first: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in first:
            raise DataError(
                f"{where}: its columns {first[name]} and {place} have the same name. Rename one; if "
                "it has no line of column names, add one."
            )
        first[name] = place


def check_columns(names: Sequence[str], schema: Schema, where: str) -> None:
    """Every declared column must be there, and no other unless the schema ignores it."""
    if schema.image:
        raise DataError(f"{where} is a table, but the schema declares an image.")
    check_names(names, where, names_are_right=schema.names_are_right)
    declared = schema.names_read
    if schema.person and schema.person.column not in names:
        raise DataError(
            f"{where} has no column '{schema.person.column}', which the schema's [person] names for "
            "the persons' ids. Rows of which each is another person's are read with "
            "`schema.without_person()` in Python."
        )
    for name in declared:
        if name not in names:
            raise DataError(
                f"{where} has no column '{name}', which the schema declares. {_known_names(names, schema)}"
            )
    left_out = {*schema.ignore, *(a.name for a in schema.unread)}
    extra = [n for n in names if n not in declared and n not in left_out]
    if extra:
        name = shown(extra[0])
        raise DataError(
            f"{where} has a column '{name}' that the schema does not declare. Declare it, or "
            f'leave it out with ignore = ["{name}"].'
        )


def _known_names(names: Sequence[str], schema: Schema) -> str:
    """The names, if at least one of them is known to be a name and no value of someone's."""
    known = {*schema.names_read, *schema.ignore, *(a.name for a in schema.unread)}
    if known.isdisjoint(names):
        return (
            f"None of its {len(names)} column names is known to the schema: does it begin with a line "
            "of column names?"
        )
    listed = [shown(n) for n in names[:NAMES_SHOWN]] + ["..."] * (len(names) > NAMES_SHOWN)
    return f"It has: {', '.join(listed)}."


def shown(text: str) -> str:
    """A name from a file as it can be printed: short, on one line, no control characters."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= 60 else clean[:57] + "..."


def plain_reason(error: BaseException) -> str:
    """Why a file cannot be read: the system's own words; other readers may quote what they read."""
    return getattr(error, "strerror", None) or "it is damaged, cut short, or of another format"
