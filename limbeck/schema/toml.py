"""Schemas as TOML files, which owners write and confirm: read, checked line by line, and written."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import SchemaError
from .category import Category
from .columns import Column
from .date import Date
from .date_time import DateTime
from .duration import Duration
from .image import Image
from .lifetime import Lifetime, is_number
from .numeric import Numeric
from .person import parse_person
from .schema import Schema
from .tables import parse_tables
from .unread import Unread

UNFILLED = "?"
"""What a drafted schema holds where the owner has to declare something."""

_KEYS = {
    "integer": {"min", "max", "missing", "outside", "outer", "scale", "step", "target", "bins"},
    "float": {
        "min", "max", "missing", "outside", "outer", "scale", "step", "decimals", "target", "bins",
    },
    "date": {"min", "max", "missing", "outside", "format"},
    "datetime": {"min", "max", "missing", "outside", "format", "step", "zone"},
    "duration": {"min", "max", "missing", "outside", "scale", "step"},
    "category": {"values", "missing", "outside", "most"},
    "boolean": {"missing", "outside", "values"},
    "label": {"values", "outside"},
    "image": {"height", "width", "channels", "min", "max", "fit"},
    "text": set(),
    "id": set(),
}  # fmt: skip
_OPEN = {
    ("image", "min"), ("image", "max"), ("image", "fit"), ("boolean", "values"), ("date", "format"),
    ("datetime", "format"), ("datetime", "zone"),
}  # fmt: skip
"""Keys that may be left out; if they are there, they must be filled in like others."""
_WHOLE = ("most", "bins", "decimals", "height", "width", "channels")
_TOP = {
    "dataset", "rows", "confirmed", "unit", "ignore", "names_are_right", "encoding", "delimiter",
    "decimal", "thousands", "estimate_share", "lifetime", "person", "rules", "tables", "column",
}  # fmt: skip


def load(path: str | Path) -> Schema:
    """Read and check a schema file; unfilled or unconfirmed ones are refused."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SchemaError(f"No schema file at {path}. Draft one with `limbeck schema`.") from None
    except OSError as error:
        raise SchemaError(f"Cannot read the schema {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SchemaError(
            f"Cannot read the schema {path}: expected a TOML file, a text in UTF-8."
        ) from None
    return parse(text, str(path), Path(path).parent)


def parse(text: str, where: str, folder: Path | None = None) -> Schema:
    """Read a schema from TOML text; files that it names lie in the folder."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{where} is not valid TOML: {error}.") from None
    unknown = sorted(set(raw) - _TOP)
    if unknown:
        raise SchemaError(f"{where}: unknown key '{unknown[0]}'. Known: {', '.join(sorted(_TOP))}.")
    if not isinstance(raw.get("dataset"), str) or raw["dataset"] == UNFILLED:
        line = _line_of(text, None, "dataset")
        raise SchemaError(
            f'{where}{line}: name the data set, dataset = "...": the ledger books all spending '
            "on these people under it."
        )
    columns = raw.get("column", [])
    tables = isinstance(columns, list) and all(isinstance(c, dict) for c in columns)
    if not tables or not columns:
        raise SchemaError(f"{where}: declare the columns as [[column]] sections.")
    ignore = _ignore(raw.get("ignore", []), where)
    # What is left out need not be filled in.
    kept = [c for c in columns if c.get("name") not in ignore]
    parsed = [_column(c, place, text, where) for place, c in enumerate(kept)]
    if raw.get("confirmed") is not True:
        line, before = _line_of(text, None, "confirmed"), ""
        if not line and re.search(r"^\s*confirmed\s*=", text, re.MULTILINE):
            before = " before the first [section]"
        raise SchemaError(
            f"{where}{line}: the schema is a draft. Check it, then set confirmed = true{before}."
        )
    rows = _rows(raw.get("rows"), text, where)
    try:
        return Schema(
            dataset=raw["dataset"],
            rows=rows,
            unit=_unit(raw.get("unit", "one row")),
            ignore=ignore,
            names_are_right=raw.get("names_are_right", False),
            encoding=raw.get("encoding", "utf-8"),
            delimiter=raw.get("delimiter"),
            decimal=raw.get("decimal", "."),
            thousands=raw.get("thousands"),
            unread=tuple(c for c in parsed if isinstance(c, Unread)),
            estimate_share=raw.get("estimate_share", 0.1),
            lifetime=_lifetime(raw.get("lifetime", {})),
            columns=tuple(c for c in parsed if not isinstance(c, Unread)),
            person=parse_person(raw.get("person")),
            rules=raw.get("rules", ()),
            tables=parse_tables(raw["tables"], folder) if "tables" in raw else (),
        )
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def written(schema: Schema) -> str:
    """A schema as a confirmed TOML file."""
    facts = schema.facts()
    columns, tables = facts.pop("column"), ("lifetime", "person", "tables")
    sections: dict[str, Any] = {name: facts.pop(name) for name in tables if name in facts}
    assert isinstance(columns, list)
    parts = [_table(facts | {"confirmed": True})]
    parts += [f"[{name}]\n" + _table(section) for name, section in sections.items()]
    parts += ["[[column]]\n" + _table(c) for c in columns]
    return "\n".join(parts)


def _table(values: Mapping[str, object]) -> str:
    return "".join(f"{_key(k)} = {toml_value(v)}\n" for k, v in values.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    """One value in TOML's spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    return repr(value)


def _column(raw: Mapping[str, Any], place: int, text: str, where: str) -> Column | Unread:
    name, kind = raw.get("name"), raw.get("kind")
    if not isinstance(name, str) or not name:
        raise SchemaError(f'{where}: every [[column]] needs name = "...".')

    def refuse(key: str, what: str) -> SchemaError:
        return SchemaError(f"{where}{_line_of(text, name, key)}: column '{name}': {what}")

    if kind == "target":
        raise refuse(
            "kind", 'a target is a number: kind = "integer" or "float", and target = true.'
        )
    if not isinstance(kind, str) or kind not in _KEYS:
        what = "it has no kind." if kind is None else f"unknown kind {kind!r}."
        raise refuse("kind", f"{what} Use kind = one of {', '.join(_KEYS)}.")
    unknown = sorted(set(raw) - _KEYS[kind] - {"name", "kind"})
    if unknown:
        known = ", ".join(["name", "kind", *sorted(_KEYS[kind])])
        raise refuse(
            unknown[0], f"a column of kind {kind} has no key '{unknown[0]}'. Known: {known}."
        )
    for key in ("min", "max", "values", "height", "width", "format", "zone"):
        wanted = key in _KEYS[kind] and (kind, key) not in _OPEN
        if raw.get(key) == UNFILLED or (wanted and key not in raw):
            raise refuse(key, f"fill in `{key}` from what you know, not from looking at the rows.")
    _check_values(kind, raw, refuse)
    try:
        if kind in ("text", "id"):
            return Unread(name=name, kind=kind, place=place)
        return _build(kind, raw)
    except (SchemaError, TypeError, ValueError) as error:
        # The column is named already.
        reason = re.sub(rf"^(Column|Label|Image) '{re.escape(name)}': ", "", str(error))
        raise refuse("name", reason) from None


def _check_values(
    kind: str, raw: Mapping[str, Any], refuse: Callable[[str, str], SchemaError]
) -> None:
    """Refuse values of a column's settings that are of another type than they should be."""
    if "values" in raw and (kind == "boolean" or raw["values"] != "estimate"):
        values = raw["values"]
        plain = isinstance(values, list) and all(isinstance(v, str | int | float) for v in values)
        if not plain or not values:
            raise refuse(
                "values", 'expected values = [...] with at least one value, or "estimate".'
            )
    for key in ("min", "max"):
        value = raw.get(key)
        if kind in ("integer", "float") and value != "estimate" and not is_number(value):
            raise refuse(key, f"expected a number, got {value!r}.")
        if kind == "date" and not isinstance(value, datetime.date) and not _is_date(value):
            raise refuse(key, f"expected a date such as 1990-01-31, got {value!r}.")
        if kind == "datetime" and _moment(value) is None:
            raise refuse(key, f"expected a moment such as 1990-01-31T08:00:00, got {value!r}.")
        if kind == "image" and key in raw and not is_number(value):
            raise refuse(key, f"expected a number, got {value!r}.")
    if kind == "label" and raw["values"] == "estimate":
        raise refuse("values", "the label's values must be declared.")
    for key in ("missing", "target"):
        if not isinstance(raw.get(key, False), bool):
            raise refuse(key, f"expected {key} = true or false, got {raw[key]!r}.")
    for key in _WHOLE:
        value = raw.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(key, f"expected {key} to be a whole number, got {value!r}.")
    for key in ("step", "decimals"):
        if kind in ("integer", "float") and not is_number(raw.get(key, 1)):
            raise refuse(key, f"expected a number, got {raw[key]!r}.")
    for key in ("format", "zone", "scale"):
        if not isinstance(raw.get(key, ""), str):
            raise refuse(key, f"expected a text, got {raw[key]!r}.")
    outer = raw.get("outer", [0, 0])
    if not (isinstance(outer, list) and len(outer) == 2 and all(map(is_number, outer))):
        raise refuse("outer", f"expected outer = [lowest, highest], two numbers; got {outer!r}.")


def _build(kind: str, raw: Mapping[str, Any]) -> Column:
    rest = {k: v for k, v in raw.items() if k != "kind"}
    if kind in ("integer", "float"):
        for key in ("min", "max"):
            rest[key] = None if rest[key] == "estimate" else rest[key]
        if "outer" in rest:
            low, high = rest["outer"]
            rest["outer"] = (float(low), float(high))
        if "decimals" in rest:
            if "step" in rest or not 0 <= rest["decimals"] <= 12:
                raise SchemaError("expected decimals from 0 to 12, and no `step` beside them.")
            rest["step"] = 10.0 ** -rest.pop("decimals")
        return Numeric(integer=kind == "integer", **rest)
    if kind == "date":
        day = datetime.date.fromisoformat
        bounds = {
            k: rest[k] if _is_day(rest[k]) else day(str(rest[k])[:10]) for k in ("min", "max")
        }
        return Date(**(rest | bounds))
    if kind == "datetime":
        return DateTime(**(rest | {key: _moment(rest[key]) for key in ("min", "max")}))
    if kind == "duration":
        return Duration(**(rest | {key: str(rest[key]) for key in ("min", "max")}))
    if kind == "boolean":
        return Category(
            boolean=True, **(rest | {"values": tuple(rest.get("values", (False, True)))})
        )
    if kind == "image":
        return Image(**rest)
    if rest["values"] == "estimate":
        most = rest.get("most", 100)
        return Category(**(rest | {"values": (), "most": most}))
    return Category(label=kind == "label", **(rest | {"values": tuple(rest["values"])}))


def _is_day(value: object) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _moment(value: object) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _is_date(value: object) -> bool:
    try:
        datetime.date.fromisoformat(str(value)[:10])
        return True
    except ValueError:
        return False


def _rows(value: object, text: str, where: str) -> int | None:
    if value == "measure":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise SchemaError(
        f"{where}{_line_of(text, None, 'rows')}: give a public, approximate number of rows, "
        'rows = 10000, or rows = "measure" to buy a noisy count.'
    )


def _unit(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise SchemaError(f'expected unit = "..." such as "one patient", got {value!r}.')


def _ignore(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise SchemaError(
        f'{where}: expected ignore = ["...", ...], a list of column names; got {value!r}.'
    )


def _lifetime(value: object) -> Lifetime:
    if not isinstance(value, dict):
        raise SchemaError(f"expected a section [lifetime] with epsilon and delta, got {value!r}.")
    known = ("epsilon", "delta", "filter")
    for key in value:
        if key not in known:
            raise SchemaError(f"[lifetime]: unknown key '{key}'. Known: {', '.join(known)}.")
    return Lifetime(**value)


def _line_of(text: str, column: str | None, key: str) -> str:
    """', line N' of a key, at the top or within a column's section; '' where it is not written."""
    inside = column is None
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*\[", line):
            inside = False
        if column is not None and re.match(rf"\s*name\s*=\s*[\"']{re.escape(column)}[\"']", line):
            inside, start = True, number
            if key == "name":
                return f", line {start}"
        if inside and re.match(rf"\s*{re.escape(key)}\s*=", line):
            return f", line {number}"
    return "" if column is None or key == "name" else _line_of(text, column, "name")
