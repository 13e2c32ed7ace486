"""One form of error for everything a user can get wrong: what it was, what came, what to do."""

from __future__ import annotations

import math


class LimbeckError(ValueError):
    """Bad input or settings. The command line prints the message and exits with code 2."""


class LimbeckWarning(UserWarning):
    """Something that is allowed and may not be wanted. The command line prints it as one line."""


class SchemaError(LimbeckError):
    """The schema is incomplete, contradicts itself, or does not fit the data's structure."""


class DataError(LimbeckError):
    """A data source is missing or unreadable, or its columns are not those the schema names."""


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


def choice(**values: tuple[object, tuple[str, ...]]) -> None:
    """Refuse a named value that is none of those known for it.

    >>> choice(labels=("many", ("balanced", "uniform")))
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected labels to be one of balanced, uniform, got 'many'.
    """
    for name, (value, known) in values.items():
        if value not in known:
            raise LimbeckError(f"Expected {name} to be one of {', '.join(known)}, got {value!r}.")
