"""`Measurement`: a noisy answer, which is public."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..accounting import Charge


class Measurement(NamedTuple):
    """A noisy answer, which is free to use from now on."""

    values: Any
    """Numbers, or for estimated categories texts."""
    noise: float
    """Scale of the noise in each number: standard deviation, or Laplace's scale; or of utilities."""
    law: str
    """How it was made private: the name of a mechanism, or none."""

    @classmethod
    def under(cls, charge: Charge, values: Any) -> Measurement:
        """What was measured as a charge says."""
        return cls(values, charge.noise, charge.mechanism if charge.noise else "none")
