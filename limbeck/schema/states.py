"""The four states of a cell: how what it holds stands to what its column declares.

Every kind of column tells the states of its own cells (`states`), row by row, whatever it then does
with those that do not fit. `unusable` says which states mean that a cell could not be read as declared.
"""

from __future__ import annotations

import numpy as np

from ..errors import SchemaError

STATES = ("usable", "missing", "outside", "unknown")
"""As declared; empty; beyond the bounds; holding something that the column does not know."""
USABLE, MISSING, OUTSIDE, UNKNOWN = range(4)

_EMPTY_WORDS = {"", "nan", "na", "n/a", "<na>", "null", "none", "nat", "?"}


def says_nothing(text: str) -> bool:
    """Whether a text is one of those that stand for "no value".

    >>> says_nothing(" NA "), says_nothing("1,5")
    (True, False)
    """
    return text.strip().lower() in _EMPTY_WORDS


def counted(states: np.ndarray) -> np.ndarray:
    """How many cells of each column are in each state, (columns, states); of states (rows, columns)."""
    return np.stack([(states == state).sum(axis=0) for state in range(len(STATES))], axis=1)


def unusable(missing: bool) -> tuple[int, ...]:
    """The states of cells that do not fit; an empty one fits where `missing = true` is declared."""
    return (OUTSIDE, UNKNOWN) if missing else (MISSING, OUTSIDE, UNKNOWN)


def check_outside(name: str, outside: str, allowed: tuple[str, ...], missing: bool) -> None:
    """Refuse a column's `outside` (what becomes of values that are not declared) where it cannot be."""
    if outside not in allowed:
        choices = " or ".join(f'"{a}"' for a in allowed)
        raise SchemaError(f"Column '{name}': outside = \"{outside}\" must be {choices}.")
    if outside == "missing" and not missing:
        raise needs_missing(name)


def needs_missing(name: str) -> SchemaError:
    return SchemaError(
        f"Column '{name}': outside = \"missing\" needs `missing = true` in the same column."
    )
