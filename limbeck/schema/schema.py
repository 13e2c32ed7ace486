"""The schema: everything about a data set that is public before a row is read.

It names the data set (the ledger's key), says about how many rows there are, and declares every
column with its bounds or values. It is a TOML file that the owner edits and confirms.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .columns import Category, Column, Date, Image, Numeric, Scalar

UNFILLED = "?"
"""What a drafted schema holds where the owner has to declare something."""

_KEYS = {
    "integer": {"min", "max", "missing", "outside", "outer"},
    "float": {"min", "max", "missing", "outside", "outer"},
    "date": {"min", "max", "missing", "outside"},
    "category": {"values", "missing", "outside", "most"},
    "boolean": {"missing", "outside"},
    "label": {"values", "outside"},
    "image": {"height", "width", "channels", "min", "max"},
}
_WHOLE = ("most", "height", "width", "channels")
_TOP = {
    "dataset", "rows", "confirmed", "unit", "ignore", "names_are_right", "encoding",
    "estimate_share", "lifetime", "column",
}  # fmt: skip


def dataset_name(written: str) -> str:
    """The one name of a data set, however it is written: the ledger adds up spending under it.

    Capitals, blanks (around it, and how many within) and equal-looking characters make no other.

    >>> dataset_name(" Town  Survey"), dataset_name("town survey")
    ('town survey', 'town survey')
    """
    # Folding can undo the normal form, and the normal form can bring capitals: once more.
    name = unicodedata.normalize("NFKC", written).casefold()
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    )


@dataclass(frozen=True, kw_only=True)
class Lifetime:
    """What may ever be spent on a data set, over all runs, and how runs are added up."""

    epsilon: float = 10.0
    delta: float = 1e-4
    filter: str = "gdp"
    """"gdp" adds Gaussian runs as Gaussians, "rdp" at one Renyi order, "sum" epsilons and deltas."""

    def __post_init__(self) -> None:
        numbers = _is_number(self.epsilon) and _is_number(self.delta)
        if not (numbers and 0 < self.epsilon <= 30 and 0 < self.delta < 1):
            raise SchemaError(
                "[lifetime]: expected 0 < epsilon <= 30 (more protects no one) and 0 < delta < 1, "
                f"got {self.epsilon!r} and {self.delta!r}."
            )
        if self.filter not in ("gdp", "rdp", "sum"):
            raise SchemaError(
                f'[lifetime]: filter = "{self.filter}" must be "gdp", "rdp" or "sum".'
            )


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Public description of a data set.

    >>> schema = Schema(
    ...     dataset="heights",
    ...     rows=1000,
    ...     columns=(
    ...         Numeric(name="height", integer=True, min=50, max=250),
    ...         Category(name="smoker", values=("no", "yes"), label=True),
    ...     ),
    ... )
    >>> schema.slots, schema.classes
    (1, ('no', 'yes'))
    """

    dataset: str
    """Name under which everything ever spent on these people is booked in the ledger; kept as
    `dataset_name` writes it, so that "People " and "people" are one data set."""
    columns: tuple[Column, ...]
    """In the order of the file."""
    rows: int | None = None
    """Public, approximate number of rows; None: a noisy count is bought."""
    unit: str = "one row"
    """What one row stands for: the unit that the guarantee protects."""
    ignore: tuple[str, ...] = ()
    """Columns of the file that are left out."""
    names_are_right: bool = False
    """Whether column names that look like values (numbers, dates) were seen to be names."""
    encoding: str = "utf-8"
    """How texts of a CSV file are written: UTF-8, or an encoding of one byte per character."""
    estimate_share: float = 0.1
    """Share of the budget that goes to estimating bounds and values, where that is asked for."""
    lifetime: Lifetime = Lifetime()

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise SchemaError(f"Column '{sorted(twice)[0]}' is declared twice.")
        object.__setattr__(self, "dataset", dataset_name(self.dataset))
        if not self.dataset:
            raise SchemaError('The schema must name the data set: dataset = "...".')
        check_encoding(self.encoding)
        if not isinstance(self.names_are_right, bool):
            raise SchemaError(
                f"expected names_are_right = true or false, got {self.names_are_right!r}."
            )
        if self.rows is not None and self.rows < 1:
            raise SchemaError(f"Expected rows >= 1 (a public, approximate count), got {self.rows}.")
        if not (_is_number(self.estimate_share) and 0 < self.estimate_share < 1):
            raise SchemaError(f"Expected 0 < estimate_share < 1, got {self.estimate_share!r}.")
        labels = [c.name for c in self.columns if c.kind == "label"]
        if len(labels) > 1:
            raise SchemaError(
                f"Only one column can be the label, but '{labels[0]}' and '{labels[1]}' both are. "
                'Make the other one kind = "category".'
            )
        if self.label and self.label.estimated:
            raise SchemaError(f"Label '{self.label.name}': the label's values must be declared.")
        if not self.inputs:
            raise SchemaError("The schema declares no column besides the label.")
        if self.image and len(self.inputs) > 1:
            raise SchemaError("An image schema holds one image column and at most a label.")

    # ---- what methods ask -------------------------------------------------------------------

    @property
    def label(self) -> Category | None:
        return next((c for c in self.columns if isinstance(c, Category) and c.label), None)

    @property
    def classes(self) -> tuple[Scalar, ...]:
        """The label's declared values; one nameless class where there is no label."""
        return self.label.values if self.label else ("",)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """All columns but the label."""
        return tuple(c for c in self.columns if c.kind != "label")

    @property
    def image(self) -> Image | None:
        return next((c for c in self.columns if isinstance(c, Image)), None)

    @property
    def slots(self) -> int:
        """Width of an expanded row."""
        return sum(c.slots for c in self.inputs)

    def blocks(self) -> list[tuple[Column, slice]]:
        """Each input column with its place in an expanded row."""
        ends = np.cumsum([c.slots for c in self.inputs])
        return [
            (c, slice(int(e) - c.slots, int(e))) for c, e in zip(self.inputs, ends, strict=True)
        ]

    @property
    def estimated(self) -> tuple[Column, ...]:
        """Columns whose bounds or values are to be bought with some of the budget."""
        return tuple(c for c in self.columns if c.estimated)

    # ---- cells, slots and values ------------------------------------------------------------

    def expand(self, cells: np.ndarray) -> np.ndarray:
        """Compact cells (rows, columns) to slots (rows, slots), all within [0, 1]."""
        if self.image:
            return self.image.expand(cells)
        parts = [c.expand(cells[:, i]) for i, c in enumerate(self.inputs)]
        return np.concatenate(parts, axis=1)

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Slots made by a generator to cells; categories and gaps are drawn from their weights."""
        parts = [
            c.collapse(slots[:, at], rng) for c, at in self.blocks() if not isinstance(c, Image)
        ]
        return np.stack(parts, axis=1)

    def decode(self, cells: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
        """Cells and label codes to a table with the owner's columns, order, kinds and ranges."""
        place = {c.name: i for i, c in enumerate(self.inputs)}
        series = []
        for column in self.columns:
            if isinstance(column, Image):
                raise SchemaError("Images are not decoded to a table.")
            at = (
                labels.astype(np.float32)
                if column.kind == "label"
                else cells[:, place[column.name]]
            )
            series.append(column.decode(at))
        return pd.concat(series, axis=1)

    def resolve(self, found: Mapping[str, tuple[Any, ...]]) -> Schema:
        """The schema with estimated bounds (low, high) and values filled in."""

        def settle(column: Column) -> Column:
            if not column.estimated:
                return column
            got = found[column.name]
            if isinstance(column, Numeric):
                low = got[0] if column.min is None else column.min
                high = got[1] if column.max is None else column.max
                return replace(column, min=min(low, high), max=max(low, high))
            assert isinstance(column, Category)
            # The last value found is the catch-all, to which every other value is mapped.
            return replace(column, values=tuple(got), outside=str(got[-1]))

        return replace(self, columns=tuple(settle(c) for c in self.columns))

    # ---- TOML -------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read and check a schema file; unfilled or unconfirmed ones are refused."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SchemaError(
                f"No schema file at {path}. Draft one with `limbeck schema`."
            ) from None
        except OSError as error:
            raise SchemaError(f"Cannot read the schema {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise SchemaError(
                f"Cannot read the schema {path}: expected a TOML file, a text in UTF-8."
            ) from None
        return cls.parse(text, where=str(path))

    @classmethod
    def parse(cls, text: str, *, where: str = "the schema") -> Schema:
        """Read a schema from TOML text."""
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{where} is not valid TOML: {error}.") from None
        unknown = sorted(set(raw) - _TOP)
        if unknown:
            raise SchemaError(
                f"{where}: unknown key '{unknown[0]}'. Known: {', '.join(sorted(_TOP))}."
            )
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
        parsed = tuple(_column(c, text, where) for c in columns if c.get("name") not in ignore)
        if raw.get("confirmed") is not True:
            line = _line_of(text, None, "confirmed")
            raise SchemaError(
                f"{where}{line}: the schema is a draft. Check it, then set confirmed = true."
            )
        rows = _rows(raw.get("rows"), text, where)
        try:
            return cls(
                dataset=raw["dataset"],
                rows=rows,
                unit=_unit(raw.get("unit", "one row")),
                ignore=ignore,
                names_are_right=raw.get("names_are_right", False),
                encoding=raw.get("encoding", "utf-8"),
                estimate_share=raw.get("estimate_share", 0.1),
                lifetime=_lifetime(raw.get("lifetime", {})),
                columns=parsed,
            )
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None

    def facts(self) -> dict[str, object]:
        """Plain data, as written into certificates and hashed."""
        unusual: dict[str, object] = {}  # left out where it says nothing
        if self.names_are_right:
            unusual["names_are_right"] = True
        if self.encoding != "utf-8":
            unusual["encoding"] = self.encoding
        return {
            "dataset": self.dataset,
            "rows": "measure" if self.rows is None else self.rows,
            "unit": self.unit,
            "ignore": list(self.ignore),
            **unusual,
            "estimate_share": self.estimate_share,
            "lifetime": vars(self.lifetime),
            "column": [{"name": c.name, "kind": c.kind} | c.facts() for c in self.columns],
        }

    def toml(self) -> str:
        """The schema as a confirmed TOML file.

        >>> schema = Schema(dataset="d", columns=(Numeric(name="x", min=0, max=1),))
        >>> Schema.parse(schema.toml()) == schema
        True
        """
        facts = self.facts()
        columns, lifetime = facts.pop("column"), facts.pop("lifetime")
        assert isinstance(columns, list) and isinstance(lifetime, dict)
        parts = [_table(facts | {"confirmed": True})]
        parts += ["[lifetime]\n" + _table(lifetime)]
        parts += ["[[column]]\n" + _table(c) for c in columns]
        return "\n".join(parts)

    def save(self, path: str | Path) -> None:
        """Write the schema as a confirmed TOML file, which `Schema.load` reads."""
        try:
            Path(path).write_text(self.toml(), encoding="utf-8")
        except OSError as error:
            raise SchemaError(f"Cannot write {path}: {error.strerror}.") from None

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's facts."""
        text = json.dumps(self.facts(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _table(values: Mapping[str, object]) -> str:
    return "".join(f"{k} = {toml_value(v)}\n" for k, v in values.items())


def toml_value(value: object) -> str:
    """One value in TOML's spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    return repr(value)


def _column(raw: Mapping[str, Any], text: str, where: str) -> Column:
    name, kind = raw.get("name"), raw.get("kind")
    if not isinstance(name, str) or not name:
        raise SchemaError(f'{where}: every [[column]] needs name = "...".')

    def refuse(key: str, what: str) -> SchemaError:
        return SchemaError(f"{where}{_line_of(text, name, key)}: column '{name}': {what}")

    if not isinstance(kind, str) or kind not in _KEYS:
        what = "it has no kind." if kind is None else f"unknown kind {kind!r}."
        raise refuse("kind", f"{what} Use kind = one of {', '.join(_KEYS)}.")
    unknown = sorted(set(raw) - _KEYS[kind] - {"name", "kind"})
    if unknown:
        known = ", ".join(["name", "kind", *sorted(_KEYS[kind])])
        raise refuse(
            unknown[0], f"a column of kind {kind} has no key '{unknown[0]}'. Known: {known}."
        )
    for key in ("min", "max", "values", "height", "width"):
        wanted = key in _KEYS[kind]
        if kind == "image" and key in ("min", "max"):
            wanted = False
        if raw.get(key) == UNFILLED or (wanted and key not in raw):
            raise refuse(key, f"fill in `{key}` from what you know, not from looking at the rows.")
    if kind in ("category", "label") and raw["values"] != "estimate":
        values = raw["values"]
        plain = isinstance(values, list) and all(isinstance(v, str | int | float) for v in values)
        if not plain or not values:
            raise refuse(
                "values", 'expected values = [...] with at least one value, or "estimate".'
            )
    for key in ("min", "max"):
        value = raw.get(key)
        if kind in ("integer", "float") and value != "estimate" and not _is_number(value):
            raise refuse(key, f"expected a number, got {value!r}.")
        if kind == "date" and not isinstance(value, datetime.date) and not _is_date(value):
            raise refuse(key, f"expected a date such as 1990-01-31, got {value!r}.")
        if kind == "image" and key in raw and not _is_number(value):
            raise refuse(key, f"expected a number, got {value!r}.")
    if kind == "label" and raw["values"] == "estimate":
        raise refuse("values", "the label's values must be declared.")
    if not isinstance(raw.get("missing", False), bool):
        raise refuse("missing", f"expected missing = true or false, got {raw['missing']!r}.")
    for key in _WHOLE:
        value = raw.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(key, f"expected {key} to be a whole number, got {value!r}.")
    outer = raw.get("outer", [0, 0])
    if not (isinstance(outer, list) and len(outer) == 2 and all(map(_is_number, outer))):
        raise refuse("outer", f"expected outer = [lowest, highest], two numbers; got {outer!r}.")
    try:
        return _build(kind, raw)
    except (SchemaError, TypeError, ValueError) as error:
        # The column is named already.
        told = re.sub(rf"^(Column|Label|Image) '{re.escape(name)}': ", "", str(error))
        raise refuse("name", told) from None


def _build(kind: str, raw: Mapping[str, Any]) -> Column:
    rest = {k: v for k, v in raw.items() if k != "kind"}
    if kind in ("integer", "float"):
        for key in ("min", "max"):
            rest[key] = None if rest[key] == "estimate" else rest[key]
        if "outer" in rest:
            low, high = rest["outer"]
            rest["outer"] = (float(low), float(high))
        return Numeric(integer=kind == "integer", **rest)
    if kind == "date":
        day = datetime.date.fromisoformat
        bounds = {
            k: rest[k] if _is_day(rest[k]) else day(str(rest[k])[:10]) for k in ("min", "max")
        }
        return Date(**(rest | bounds))
    if kind == "boolean":
        return Category(values=(False, True), boolean=True, **rest)
    if kind == "image":
        return Image(**rest)
    if rest["values"] == "estimate":
        most = rest.get("most", 100)
        return Category(**(rest | {"values": (), "most": most}))
    return Category(label=kind == "label", **(rest | {"values": tuple(rest["values"])}))


def _is_day(value: object) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


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


def check_encoding(encoding: object) -> None:
    """Refuse an encoding in which a byte does not stand for one character, whatever is beside it.

    Only then can no record change how the next one is read. UTF-8 is as good: none of its longer
    characters holds the byte of a line's end.
    """
    if encoding == "utf-8":
        return
    ascii_bytes = bytes(range(128))
    try:
        assert isinstance(encoding, str)
        one_to_one = len(bytes(range(256)).decode(encoding, "replace")) == 256
        if one_to_one and ascii_bytes.decode(encoding) == ascii_bytes.decode("ascii"):
            return
    except (AssertionError, LookupError, ValueError, TypeError):
        pass
    raise SchemaError(
        f'expected encoding = "utf-8" or one with one byte per character, such as "cp1252" or '
        f'"latin-1", got {encoding!r}.'
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
