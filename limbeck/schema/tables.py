"""Tables by which one category decides another, and how schemas write them and the rules."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import SchemaError
from .raw import canonical

Pairs = Sequence[tuple[str, str]]
Tables = Mapping[str, Mapping[Any, Any] | Pairs] | Sequence[tuple[str, Pairs]]


def check_rules(rules: object) -> tuple[str, ...]:
    """Rules as texts, blanks made one."""
    if isinstance(rules, list | tuple) and all(isinstance(rule, str) for rule in rules):
        return tuple(" ".join(rule.split()) for rule in rules)
    raise SchemaError(
        f'expected rules = ["discharged >= admitted", ...], a list of texts; got {rules!r}.'
    )


def written_tables(tables: object) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Tables as pairs of texts, by the rule they belong to.

    >>> written_tables({"city -> country": {"Bonn": "Germany"}})
    (('city -> country', (('Bonn', 'Germany'),)),)
    """
    named = dict(tables) if isinstance(tables, Mapping | tuple | list) else None
    if named is None:
        raise _not_tables(tables)
    written = []
    for text, table in named.items():
        pairs = table.items() if isinstance(table, Mapping) else table
        if not isinstance(text, str) or isinstance(pairs, str):
            raise _not_tables(tables)
        spelled = tuple((canonical(given), canonical(value)) for given, value in pairs)
        written.append((" ".join(text.split()), spelled))
    return tuple(written)


def parse_tables(raw: object, folder: Path | None) -> dict[str, Mapping[str, Any] | Pairs]:
    """The section [tables] of a schema file: values in place, or the name of a CSV file beside it.

    Args:
        raw: The section.
        folder: Where the schema lies; None where it is no file.
    """
    if not isinstance(raw, dict):
        raise _not_tables(raw)
    parsed: dict[str, Mapping[str, Any] | Pairs] = {}
    for text, table in raw.items():
        if isinstance(table, str):
            parsed[text] = _read_csv(text, (folder or Path()) / table)
        elif isinstance(table, dict) and all(
            isinstance(v, str | int | float) for v in table.values()
        ):
            parsed[text] = table
        else:
            raise _not_tables(raw)
    return parsed


def _read_csv(text: str, path: Path) -> list[tuple[str, str]]:
    """The two columns that a rule names, from a public file."""
    names = [part.strip().strip("'\"") for part in text.split("->")]
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is no CSV file in UTF-8"
        raise SchemaError(f"rule '{text}': cannot read its table {path}: {reason}.") from None
    if len(names) != 2 or not rows or not set(names) <= set(rows[0]):
        raise SchemaError(
            f"rule '{text}': expected a CSV file with the columns {' and '.join(names)} at {path}."
        )
    return list(dict.fromkeys((row[names[0]] or "", row[names[1]] or "") for row in rows))


def _not_tables(came: object) -> SchemaError:
    return SchemaError(
        'expected [tables] with a line for each rule of the kind "city -> country": the name of a CSV '
        f'file, or {{ Bonn = "Germany" }}; got {came!r}.'
    )
