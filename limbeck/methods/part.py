"""Settings that have settings of their own: a kernel, say, which is chosen by its name.

In Python such a part is an object, `DPKIP(kernel=ScatteringKernel(normalisation="position"))`. As plain
data, in recipes and certificates, it is a table that says under `name` which part it is; where only
defaults are wanted, the name alone will do.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, Literal

from ..errors import LimbeckError

Auto = Literal["auto"]
"""What a setting says that is to be found from the schema or from other settings."""
_CHOICES = "choices"


@dataclass(frozen=True, kw_only=True)
class AbstractPart(abc.ABC):
    """A part of a method that is chosen by name; its settings are its fields."""

    name: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """Its name and its fields as plain data."""
        return {"name": self.name} | {f.name: plain(getattr(self, f.name)) for f in fields(self)}


def part_field(choices: Mapping[str, type[AbstractPart]], default: AbstractPart) -> Any:
    """The field of a method that holds a part.

    Args:
        choices: The parts that plain data can name.
        default: The one that is taken where none is named.
    """
    return field(default=default, metadata={_CHOICES: choices})


def choices_of(setting: Field[Any]) -> Mapping[str, type[AbstractPart]]:
    """The parts that a field can hold, by name; none for a field that holds a plain value."""
    return setting.metadata.get(_CHOICES, {})


def check_part(setting: str, kind: type[AbstractPart], value: object) -> None:
    """Refuse a value that a constructor was given in place of a part."""
    if not isinstance(value, kind):
        raise LimbeckError(
            f"Expected {setting} to be an object such as those in limbeck.methods, got {value!r}. "
            "Names and tables are for recipes, the command line and `from_settings`."
        )


def part_from(owner: str, setting: Field[Any], value: object) -> AbstractPart:
    """The part that plain data name: by a word, or by a table with that word under `name`.

    Args:
        owner: Name of the method.
        setting: A field that `part_field` made.
        value: The plain data; a part itself is taken as it is.
    """
    if isinstance(value, AbstractPart):
        return value
    choices, default = choices_of(setting), setting.default
    table = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = table.pop("name", default.name)
    if not isinstance(name, str) or name not in choices:
        raise LimbeckError(
            f"Expected {setting.name} to be one of {', '.join(choices)}, got {name!r}."
        )
    known = sorted(f.name for f in fields(choices[name]))
    for key in table:
        if key not in known:
            raise LimbeckError(
                f"{owner}: the {setting.name} {name} has no setting '{key}'. It has: "
                f"{', '.join(known) or 'none'}."
            )
    return choices[name](**{k: tuple(v) if isinstance(v, list) else v for k, v in table.items()})


def overlaid(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as plain data with some of them changed.

    A name with a dot, or a table that does not say `name`, changes single settings of a part.

    >>> overlaid({"kernel": "scattering", "ridge": 1e-6}, {"kernel.normalisation": "position"})
    {'kernel': {'name': 'scattering', 'normalisation': 'position'}, 'ridge': 1e-06}
    >>> overlaid({"kernel": {"name": "scattering", "normalisation": "position"}}, {"kernel": "fc-ntk"})
    {'kernel': 'fc-ntk'}
    """
    overlay = dict(settings)
    for name in sorted(changes, key=lambda name: "." in name):  # a part before its own settings
        value = changes[name]
        outer, _, inner = name.partition(".")
        if inner:
            value = {inner: value}
        if isinstance(value, Mapping) and "name" not in value:
            before = overlay.get(outer, {})
            before = {"name": before} if isinstance(before, str) else before
            value = {**before, **value} if isinstance(before, Mapping) else value
        overlay[outer] = value
    return overlay


def plain(value: Any) -> Any:
    """A setting as JSON and TOML have it."""
    if isinstance(value, AbstractPart):
        return value.settings()
    return list(value) if isinstance(value, tuple) else value
