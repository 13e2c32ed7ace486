"""`Choice`: which of several candidates the rows differ from most, chosen at a pure price.

A candidate is a way to put rows into cells (a pair of columns, say) with counts that are expected of it.
How far the rows' counts are from those is its utility. The choice is by permute-and-flip (McKenna and
Sheldon 2020): in random order, each candidate gets a coin that shows heads with probability
exp(-gap / (2 noise)), gap being how much its utility falls short of the best; the first heads is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np

from ...accounting import Charge
from ...data import Rows
from ...errors import LimbeckError
from ...schema import Schema
from ..laplace import coin_exp
from ..maps import chunk_rows, evaluated
from ..measurement import Measurement
from ..noise import Stream
from ..question import Charges, Mechanism, Question, Streams, Unit

NOISE_STEPS = 10**6
"""Parts of one to which the noise is rounded up: never less than was charged."""
FINE = 1 << 20
"""Parts of one to which expected counts and weights are rounded; utilities are whole numbers of 1 / FINE^2."""
LEAST_EPSILON = 1e-9
"""Smallest price of a pick, which is as good as none."""
MOST_EXPECTED = float(1 << 40)
"""Largest count that may be expected, and largest penalty: then utilities are finite."""


class Candidates(Protocol):
    """A map from rows to their cell in every candidate, with what is expected there: all public."""

    sizes: tuple[int, ...]
    """Number of cells of each candidate."""
    expected: np.ndarray
    """Counts that are expected, those of all candidates one after the other."""
    weights: np.ndarray
    """What a row of difference counts for, in [0, 1], (candidates,)."""
    penalties: np.ndarray
    """What is taken off the utility, (candidates,)."""

    def __call__(self, rows: Any, labels: Any) -> Any:
        """The cell of each row in each candidate, (rows, candidates) whole numbers; -1 for none."""


@dataclass(frozen=True, kw_only=True)
class Choice(Question):
    """The numbers of the chosen candidates, (picks,), no candidate twice.

    A candidate's utility is its weight times the sum of |count - expected count| over its cells, minus
    its penalty. Rows without a declared label count in no cell.

    Privacy:
        A row counts in at most one cell of a candidate, so it changes each utility by at most one,
        whatever the number of rows; a person's rows count for whole parts of one, rounded down, which
        together are no more. Each pick is permute-and-flip among those that are left.

    Args:
        candidates: Number of candidates, at most.
        cells: Number of cells of all candidates together, at most.
        picks: Number of candidates to choose.
        epsilon: The price of one pick, whatever the budget; None: by the question's share of it.
    """

    engines: ClassVar[tuple[str, ...]] = ("local", "spark", "jax")

    persons: ClassVar[bool] = True

    candidates: int
    cells: int
    picks: int = 1
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.picks <= self.candidates:
            raise LimbeckError(
                f"'{self.name}': expected picks from 1 to the {self.candidates} candidates, got "
                f"{self.picks}."
            )
        if self.epsilon is not None and not LEAST_EPSILON <= self.epsilon < math.inf:
            raise LimbeckError(
                f"'{self.name}': expected an epsilon of at least {LEAST_EPSILON:g}, got {self.epsilon}."
            )

    def measured(self) -> tuple[Charge, ...]:
        return (
            Charge(
                name=self.name,
                mechanism="permute-and-flip",
                sensitivity=1.0,
                noise_multiplier=math.nan if self.epsilon is None else 1 / self.epsilon,
                coordinates=self.candidates,
                steps=self.picks,
            ),
        )

    def calibrated(
        self, charges: Charges, unit: Unit, row_map: Candidates | None = None
    ) -> ChosenByCounts:
        (charge,) = charges
        if charge.sensitivity != unit.factor:
            raise RuntimeError(f"'{self.name}' counts rows: its sensitivity is {unit.factor}")
        if row_map is not None and not (
            self.picks <= len(row_map.sizes) <= self.candidates and sum(row_map.sizes) <= self.cells
        ):
            raise RuntimeError(f"'{self.name}' was planned for other candidates")
        return ChosenByCounts((charge,), self, row_map, FINE if unit.person else 1)


@dataclass(frozen=True)
class ChosenByCounts(Mechanism):
    """Counts rows in the cells of every candidate, and chooses by exact coins."""

    charges: tuple[Charge, ...]
    question: Choice
    candidates: Candidates | None
    whole: int
    """What a count grows by: one for a row, FINE for all rows of a person together."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.question.cells,) if self.candidates is None else self.candidates.sizes

    def zero(self) -> np.ndarray:
        return np.zeros(sum(self.sizes), np.int64)

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        return chunk_rows(len(self.sizes), schema.slots)

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> np.ndarray:
        size = self.rows_at_once(schema, row_map)
        cells = evaluated(row_map, size, schema.expand(batch.cells), batch.labels)
        return np.where(batch.labels[:, None] < 0, -1, cells)

    def accumulate(self, partial: np.ndarray, batch: Rows, mapped: np.ndarray) -> np.ndarray:
        sizes = np.asarray(self.sizes)
        cells, starts = len(partial), np.cumsum(sizes) - sizes
        inside, total = (mapped >= 0) & (mapped < sizes), partial.copy()
        if self.whole == 1:
            return total + np.bincount((mapped + starts)[inside], minlength=cells)
        assert batch.sharing is not None
        parts = self.whole // np.maximum(batch.sharing.kept, 1).astype(np.int64)
        parts = np.where(batch.sharing.rank < 0, 0, parts)
        np.add.at(
            total, (mapped + starts)[inside], np.broadcast_to(parts[:, None], inside.shape)[inside]
        )
        return total

    def utilities(self, partial: np.ndarray) -> list[int]:
        """The utility of each candidate by the sum over all rows: not for anyone to see."""
        if self.candidates is None:
            raise RuntimeError(f"'{self.question.name}' was asked without candidates")
        return utilities(partial, self.candidates, self.whole)

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        left = dict(enumerate(self.utilities(partial)))
        coins, chosen = stream(charge), []
        for _ in range(self.question.picks):
            chosen.append(permute_and_flip(coins, left, charge.noise))
            del left[chosen[-1]]
        return (Measurement.under(charge, np.asarray(chosen, np.int64)),)


def utilities(counts: np.ndarray, candidates: Candidates, whole: int = 1) -> list[int]:
    """The utility of each candidate, in whole numbers of 1 / FINE^2, exactly: a row that counts in one
    cell more or less changes it by at most FINE^2.

    Args:
        counts: Of all candidates' cells, one after the other.
        candidates: What is expected.
        whole: What one row, or person, adds to a count.
    """
    expected = np.rint(_public(candidates.expected, -MOST_EXPECTED) * FINE).astype(np.int64)
    weights = np.floor(np.minimum(_public(candidates.weights, 0.0), 1.0) * FINE).astype(np.int64)
    penalties = _public(candidates.penalties, -MOST_EXPECTED)
    apart = np.abs(counts * (FINE // whole) - expected)
    ends, each = np.cumsum(candidates.sizes), []
    for number, (end, size) in enumerate(zip(ends, candidates.sizes, strict=True)):
        distance = sum(apart[end - size : end].tolist())  # unlimited integers
        penalty = round(Fraction(float(penalties[number])) * FINE * FINE)
        each.append(int(weights[number]) * distance - penalty)
    return each


def _public(values: np.ndarray, least: float) -> np.ndarray:
    """Numbers of a public map, made finite."""
    finite = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(finite, least, MOST_EXPECTED)


def permute_and_flip(stream: Stream, offered: dict[int, int], noise: float) -> int:
    """The key of one of the utilities that are offered, in whole numbers of 1 / FINE^2.

    Args:
        stream: Random bits.
        offered: Utility by key.
        noise: Sensitivity over epsilon; 0: the best is chosen, the first of equal ones.
    """
    best = max(offered.values())
    left = list(offered)
    if noise == 0:
        return next(key for key in left if offered[key] == best)
    scale = Fraction(math.ceil(Fraction(noise) * NOISE_STEPS), NOISE_STEPS) * 2 * FINE * FINE
    while True:  # the best one's coin always shows heads
        key = left.pop(stream.below(len(left)))
        gap = (best - offered[key]) / scale
        whole, rest = divmod(gap, 1)
        if all(coin_exp(stream, 1, 1) for _ in range(whole)) and coin_exp(
            stream, rest.numerator, rest.denominator
        ):
            return key
