"""Recipes: a method with its settings in a TOML file, and where those settings came from."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import LimbeckError
from ..methods import METHODS, AbstractMethod, choices_of, method_class, overlaid

PACKAGE = Path(__file__).parent.parent
PLACES = (PACKAGE / "recipes", PACKAGE.parent / "recipes")
"""Where the packaged recipes lie: in an installed package, and in the source tree."""
_KEYS = {"method", "settings", "settings_source", "unpaid", "rows", "adjacency", "variants"}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to run, apart from data and budget."""

    method: AbstractMethod
    given: Mapping[str, Any] = field(default_factory=dict)
    """The settings that the file sets; the others are the method's defaults."""
    settings_source: str = "defaults"
    unpaid: str = ""
    """What in the settings was read off the rows and never paid for: such a release is for
    benchmarks only, and its certificate says so."""
    rows: int | None = None
    """How many rows to release."""
    adjacency: str = "add-remove"

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe by its file or packaged name, or one of its variants, named after a '#'.

        method = "dp-merf"
        settings_source = "chosen on the training part of a public data set"

        [settings]
        features = 10000

        [variants.small]
        features = 500
        """
        path, _, variant = str(path).partition("#")
        try:
            raw = tomllib.loads(recipe_file(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise LimbeckError(f"Cannot read the recipe {path}: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LimbeckError(f"The recipe {path} is not valid TOML: {error}.") from None
        unknown = sorted(set(raw) - _KEYS)
        if unknown:
            raise LimbeckError(
                f"The recipe {path}: unknown key '{unknown[0]}'. Known: {', '.join(sorted(_KEYS))}."
            )
        if not isinstance(raw.get("method"), str):
            raise LimbeckError(
                f'The recipe {path} names no method: method = "..." with one of '
                f"{', '.join(METHODS)}."
            )
        rows = raw.get("rows")
        if rows is not None and not (_is_whole(rows) and rows > 0):
            raise LimbeckError(f"The recipe {path}: expected rows > 0, got {rows!r}.")
        settings = raw.get("settings", {})
        if not isinstance(settings, dict):
            raise LimbeckError(
                f"The recipe {path}: expected a section [settings], got {settings!r}."
            )
        for name in ("settings_source", "adjacency"):
            if not isinstance(raw.get(name, ""), str):
                raise LimbeckError(
                    f"The recipe {path}: expected {name} to be a text, got {raw[name]!r}."
                )
        wording = f" ({variant})" if variant else ""
        settings = overlaid(settings, _variant(path, raw.get("variants", {}), variant))
        unpaid = settings.pop("unpaid", raw.get("unpaid", ""))
        if not isinstance(unpaid, str):
            raise LimbeckError(f"The recipe {path}: expected unpaid to be a text, got {unpaid!r}.")
        return cls(
            unpaid=unpaid,
            method=make_method(raw["method"], settings),
            given=settings,
            settings_source=raw.get("settings_source", f"recipe {Path(path).name}") + wording,
            rows=rows,
            adjacency=raw.get("adjacency", "add-remove"),
        )


def packaged_recipes() -> dict[str, Path]:
    """The recipes that come with limbeck, by name."""
    paths = (path for place in PLACES for path in sorted(place.glob("*.toml")))
    return {path.stem: path for path in paths}


def recipe_file(name: str) -> Path:
    """The file of a recipe, given by its path or by its packaged name."""
    path, packaged = Path(name), packaged_recipes()
    if path.exists() or path.suffix or path.parent != Path("."):
        return path
    if name not in packaged:
        raise LimbeckError(
            f"There is no recipe '{name}', neither as a file nor among the packaged ones: "
            f"{', '.join(packaged)}."
        )
    return packaged[name]


def _variant(path: str, variants: object, name: str) -> dict[str, Any]:
    """The settings that a named variant changes; a recipe of variants needs one to be named."""
    if not isinstance(variants, dict) or not all(isinstance(v, dict) for v in variants.values()):
        raise LimbeckError(f"The recipe {path}: expected sections [variants.NAME].")
    if not variants and not name:
        return {}
    if name not in variants:
        raise LimbeckError(
            f"The recipe {path} has no variant '{name}'. Name one as {Path(path).name}#NAME; it has: "
            f"{', '.join(variants) or 'none'}."
        )
    return dict(variants[name])


def make_method(name: str, settings: Mapping[str, Any] | None = None) -> AbstractMethod:
    """A method by its name on the command line.

    >>> make_method("dp-merf").features
    4000
    >>> make_method("dp-kip", {"kernel": "scattering", "kernel.unit_norm": True}).kernel
    ScatteringKernel(normalisation='none', unit_norm=True)
    """
    method = method_class(name)
    settings = overlaid({}, settings or {})
    _check_kinds(name, method, settings)
    return method.from_settings(settings)


def _check_kinds(owner: str, kind: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings that are not of the kind of their defaults: TOML has kinds, and says which came."""
    for setting in fields(kind):
        if setting.name not in settings:
            continue
        value, choices = settings[setting.name], choices_of(setting)
        if not choices:
            _check_kind(owner, setting, value)
        elif isinstance(value, Mapping):
            part = choices.get(str(value.get("name", setting.default.name)))
            if (
                part is not None
            ):  # an unknown name is refused by the method, which says which it knows
                _check_kinds(f"{owner}: {setting.name}", part, value)


def _check_kind(owner: str, setting: Field[Any], value: Any) -> None:
    default, expected = setting.default, None
    kind, automatic = str(setting.type), ""
    if default == "auto" and "|" in kind:  # annotated as, say, float | Auto
        if value == "auto":
            return
        automatic = ' or "auto"'
        default = () if "tuple" in kind else 0 if "int" in kind else 0.0
    if isinstance(default, tuple):
        whole = bool(default) and all(map(_is_whole, default))
        fits = isinstance(value, list | tuple) and all(
            _is_whole(v) if whole else _is_number(v) for v in value
        )
        example = f", such as {list(default)}" if default else ""
        expected = None if fits else f"a list of {'whole ' if whole else ''}numbers{example}"
    elif isinstance(default, bool):
        expected = None if isinstance(value, bool) else "true or false"
    elif isinstance(default, str):
        expected = None if isinstance(value, str) else "a text"
    elif _is_whole(default):
        expected = None if _is_whole(value) else "a whole number"
    elif _is_number(default):
        expected = None if _is_number(value) else "a number"
    if expected:
        raise LimbeckError(
            f"{owner}: expected {setting.name} to be {expected}{automatic}; got {value!r}."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
