"""What may ever be spent on a data set."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ..errors import SchemaError


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and no truth value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # not so for NaN


@dataclass(frozen=True, kw_only=True)
class Lifetime:
    """What may ever be spent on a data set, over all runs, and how runs are added up."""

    epsilon: float = 10.0
    delta: float = 1e-4
    filter: str = "gdp"
    """"gdp" adds Gaussian runs as Gaussians, "rdp" at one Renyi order, "sum" epsilons and deltas."""

    def __post_init__(self) -> None:
        numbers = is_number(self.epsilon) and is_number(self.delta)
        if not (numbers and 0 < self.epsilon <= 30 and 0 < self.delta < 1):
            raise SchemaError(
                "[lifetime]: expected 0 < epsilon <= 30 (more protects no one) and 0 < delta < 1, "
                f"got {self.epsilon!r} and {self.delta!r}."
            )
        if self.filter not in ("gdp", "rdp", "sum"):
            raise SchemaError(
                f'[lifetime]: filter = "{self.filter}" must be "gdp", "rdp" or "sum".'
            )
