"""One form of error for everything a user can get wrong: what it was, what came, what to do."""

from __future__ import annotations

import math

AUTO = "auto"
"""Value of a setting that is to be chosen from schema and budget."""


class LimbeckError(ValueError):
    """Bad input or settings. The command line prints the message and exits with code 2.

    A message is one line, whatever the names and values that it repeats.

    >>> print(LimbeckError("No column 'two\\nlines'."))
    No column 'two\\nlines'.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__("".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message)))


class LimbeckWarning(UserWarning):
    """Something that is allowed and may not be wanted. The command line prints it as one line."""


class SchemaError(LimbeckError):
    """The schema is incomplete, contradicts itself, or does not fit the data's structure."""


class DataError(LimbeckError):
    """A data source is missing or unreadable, or its columns are not those the schema names."""


class FileMissing(LimbeckError):
    """A file that settings name, such as a network's weights, is not at hand."""


class BudgetExceeded(LimbeckError):
    """The run would spend more than what remains of the data set's lifetime budget."""


class ReleaseError(LimbeckError):
    """A folder is not a release, was changed after it was written, or cannot be written."""


def positive(**values: float) -> None:
    """Refuse a named value that is not a finite number above zero.

    >>> positive(steps=0)
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected steps > 0, got 0.
    """
    for name, value in values.items():
        if not (value > 0 and math.isfinite(value)):
            raise LimbeckError(f"Expected {name} > 0, got {value}.")


def not_negative(**values: float) -> None:
    """Refuse a named value that is not a finite number of at least zero.

    >>> not_negative(weight=-1)
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected weight >= 0, got -1.
    """
    for name, value in values.items():
        if not (value >= 0 and math.isfinite(value)):
            raise LimbeckError(f"Expected {name} >= 0, got {value}.")


def fraction(**values: float) -> None:
    """Refuse a named value outside the open interval (0, 1)."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise LimbeckError(f"Expected 0 < {name} < 1, got {value}.")


def choice(**values: tuple[str, tuple[str, ...]]) -> None:
    """Refuse a named setting that is none of its known values, given beside it.

    >>> choice(goal=("all", ("any", "ridge")))
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected goal to be one of any, ridge, got 'all'.
    """
    for name, (value, known) in values.items():
        if value not in known:
            raise LimbeckError(f"Expected {name} to be one of {', '.join(known)}, got {value!r}.")


def unless_auto(**setting: float | str) -> float | None:
    """The number of one named setting, or None where it is "auto"; anything else is refused.

    >>> unless_auto(grid=32), unless_auto(grid="auto")
    (32, None)
    >>> unless_auto(grid="fine")
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected grid to be a number or 'auto', got 'fine'.
    """
    ((name, value),) = setting.items()
    if value == AUTO:
        return None
    if not isinstance(value, int | float):
        raise LimbeckError(f"Expected {name} to be a number or '{AUTO}', got {value!r}.")
    return value
