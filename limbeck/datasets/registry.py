"""What the registry says about each named data set, and its schema.

Everything that sets one public data set apart from another (files, checksums, splits, label
groups) stands in `registry.toml`. The code reads that file and knows no data set by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import LimbeckError
from ..schema import Schema

HOUSE = Path(__file__).parent
EMBEDDED = HOUSE / "embedded"


@dataclass(frozen=True, kw_only=True)
class About:
    """What one should know about a data set before using it or passing it on."""

    name: str
    title: str
    kind: str
    """"table" or "images"."""
    licence: str
    home: str
    """Where its makers publish it."""
    citation: str
    obtain: str
    """How to get it onto this machine."""
    changes: str = ""
    """What differs from the files at its home."""
    dropped: tuple[str, ...] = ()
    """Columns of the published table that are left out."""
    embedded: bool = False
    """Whether it comes with this package."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One form in which a data set exists as files."""

    format: str
    files: Mapping[str, str]
    """File name to checksum, as "sha256:..." or "md5:..."; "" where only `unpacked` is known."""
    unpacked: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the content of compressed files: some homes publish only those."""
    embedded: bool = False
    base: str = ""
    """Address of the folder the files can be downloaded from; "" where there is none."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the reader of this format wants to know besides."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set: what it is, where it can be, and how rows are made of its files."""

    about: About
    sources: tuple[Distribution, ...]
    split: Mapping[str, Any] = field(default_factory=dict)
    """A `column` that says "train" or "test", or the training `fraction`, `seed` and `group`."""
    null: str | None = None
    """Text that stands for "no value"."""
    groups: Mapping[str, list[Any]] = field(default_factory=dict)
    """Coarse label to the published labels it stands for; none: labels stay as they are."""
    rest: str | None = None
    """Coarse label of all that `groups` does not name."""
    edges: Mapping[str, list[float]] = field(default_factory=dict)
    """Columns of numbers that are given as bins: 0 below the first edge, 1 from it on, and so on."""


def parse(text: str) -> dict[str, Entry]:
    """Read a registry.

    >>> parse('''
    ... [toy]
    ... title = "A toy"
    ... kind = "table"
    ... licence = "none"
    ... home = "https://example.org"
    ... citation = "A. Nobody, 1999"
    ... obtain = "Write it yourself."
    ... split = { fraction = 0.8, seed = 0 }
    ... source = [{ format = "csv", files = { "toy.csv" = "" } }]
    ... ''')["toy"].about.title
    'A toy'
    """
    return {name: _entry(name, raw) for name, raw in tomllib.loads(text).items()}


def _entry(name: str, raw: dict[str, Any]) -> Entry:
    sources = tuple(_source(s) for s in raw.pop("source"))
    label = raw.pop("label", {})
    rules = {key: raw.pop(key) for key in ("split", "null", "edges") if key in raw}
    about = About(
        name=name,
        dropped=tuple(raw.pop("dropped", ())),
        embedded=any(s.embedded for s in sources),
        **raw,
    )
    return Entry(about=about, sources=sources, **rules, **label)


def _source(raw: dict[str, Any]) -> Distribution:
    known = ("format", "files", "unpacked", "embedded", "base")
    return Distribution(
        **{k: v for k, v in raw.items() if k in known},
        options={k: v for k, v in raw.items() if k not in known},
    )


@cache
def _registry() -> dict[str, Entry]:
    return parse((HOUSE / "registry.toml").read_text(encoding="utf-8"))


def entry(name: str) -> Entry:
    """The registry's entry; a name it does not hold is refused with those it does."""
    try:
        return _registry()[name]
    except KeyError:
        known = ", ".join(names())
        raise LimbeckError(f"No public data set is named '{name}'. Known: {known}.") from None


def names() -> list[str]:
    """Names of all public data sets.

    >>> [name for name in names() if about(name).embedded]
    ['mnist-mini', 'adult', 'adult-bins', 'gaussian-mixture']
    """
    return list(_registry())


def about(name: str) -> About:
    """Title, licence, home and citation of a data set.

    >>> about("adult").licence
    'CC BY 4.0'
    """
    return entry(name).about


def schema(name: str) -> Schema:
    """The schema of a data set: bounds and values from its public documentation.

    >>> schema("adult").classes
    ('<=50K', '>50K')
    """
    return Schema.load(schema_file(name))


def schema_file(name: str) -> Path:
    """The schema as the TOML file that is handed out with the data."""
    return HOUSE / "schemas" / f"{entry(name).about.name}.toml"
