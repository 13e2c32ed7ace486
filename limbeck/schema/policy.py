"""What becomes of a value outside the declaration: checks of a column's `outside`."""

from __future__ import annotations

from ..errors import SchemaError


def check_policy(name: str, outside: str, allowed: tuple[str, ...], missing: bool) -> None:
    if outside not in allowed:
        choices = " or ".join(f'"{a}"' for a in allowed)
        raise SchemaError(f"Column '{name}': outside = \"{outside}\" must be {choices}.")
    if outside == "missing" and not missing:
        raise needs_missing(name)


def needs_missing(name: str) -> SchemaError:
    return SchemaError(
        f"Column '{name}': outside = \"missing\" needs `missing = true` in the same column."
    )
