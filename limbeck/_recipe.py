"""Recipes: a method with its settings in a TOML file, and where those settings came from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from ._check import LimbeckError
from .methods import METHODS, AbstractMethod

_KEYS = {"method", "settings", "settings_source", "rows", "adjacency"}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to run, apart from data and budget."""

    method: AbstractMethod
    settings_source: str = "defaults"
    rows: int | None = None
    """How many rows to release."""
    adjacency: str = "add-remove"

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe file.

        method = "dp-merf"
        settings_source = "chosen on the training part of a public data set"

        [settings]
        features = 10000
        """
        try:
            raw = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise LimbeckError(f"Cannot read the recipe {path}: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LimbeckError(f"The recipe {path} is not valid TOML: {error}.") from None
        unknown = sorted(set(raw) - _KEYS)
        if unknown:
            raise LimbeckError(
                f"The recipe {path}: unknown key '{unknown[0]}'. Known: {', '.join(sorted(_KEYS))}."
            )
        if "method" not in raw:
            raise LimbeckError(f'The recipe {path} names no method: method = "...".')
        rows = raw.get("rows")
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise LimbeckError(f"The recipe {path}: expected rows > 0, got {rows!r}.")
        return cls(
            method=make_method(raw["method"], raw.get("settings", {})),
            settings_source=raw.get("settings_source", f"recipe {Path(path).name}"),
            rows=rows,
            adjacency=raw.get("adjacency", "add-remove"),
        )


def make_method(name: str, settings: dict[str, object] | None = None) -> AbstractMethod:
    """A method by its name on the command line.

    >>> make_method("dp-merf").features
    4000
    """
    if name not in METHODS:
        raise LimbeckError(f"Unknown method '{name}'. Known: {', '.join(METHODS)}.")
    return METHODS[name].from_settings(settings or {})
