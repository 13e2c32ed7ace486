"""`LaplaceHistogram`: counts at a pure price of their own, whatever the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...accounting import Charge
from ...errors import LimbeckError
from ..laplace import discrete_laplace
from ..measurement import Measurement
from ..question import Charges, Streams, Unit
from .histogram import CountedRows, Histogram

LAPLACE_STEPS = 10**6
"""Parts of one to which Laplace's scale is rounded up: the noise is never less than was charged."""
PARTS = 2**20
"""Parts of a person that are counted: each row is a whole number of them, so counts are exact."""
MOST_NOISE = 2.0**40
"""Scale above which Laplace noise is refused: whole numbers of 64 bits hold 2^22 times that."""


@dataclass(frozen=True, kw_only=True)
class LaplaceHistogram(Histogram):
    """As `Histogram`. Rows without a declared label count in none.

    Privacy:
        A row counts in at most one bin, so it changes one count by one; a person changes several, by
        one in all (L1). Discrete Laplace noise.

    Args:
        epsilon: The price, whatever the budget.
    """

    epsilon: float

    def measured(self) -> tuple[Charge, ...]:
        return (
            Charge(
                name=self.name,
                mechanism="discrete laplace",
                sensitivity=1.0,
                noise_multiplier=1 / self.epsilon,
                coordinates=self.bins,
            ),
        )

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> LaplaceCounts:
        return LaplaceCounts(*self.fitting(charges, unit, row_map))


@dataclass(frozen=True)
class LaplaceCounts(CountedRows):
    """Counts rows, or parts of persons, and adds whole numbers of Laplace's distribution."""

    @property
    def whole(self) -> int:
        return PARTS if self.person else 1

    def __post_init__(self) -> None:
        if self.charges[0].noise > MOST_NOISE / self.whole:
            raise LimbeckError(
                f"'{self.charges[0].name}': so much noise (scale {self.charges[0].noise:g}) is more "
                "than whole numbers of 64 bits hold. Use a larger epsilon for the counts."
            )

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        if charge.noise == 0:
            return super().finish(partial, stream)
        scale = Fraction(math.ceil(charge.noise * LAPLACE_STEPS), LAPLACE_STEPS) * self.whole
        noisy = partial + discrete_laplace(stream(charge), scale, self.bins)
        return (Measurement.under(charge, noisy / self.whole),)
