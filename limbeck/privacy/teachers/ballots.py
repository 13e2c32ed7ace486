"""What teachers answer with, and how their answers are counted: votes for bins, or directions.

All teachers answer always, those without rows too; so a record more or less *changes* the answer
of one teacher, it never removes one. One teacher that changes its mind moves a count of votes in two
places, and a sum of directions by twice their norm.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...accounting import Charge
from ...data import Rows
from ..grid import GridSum, grid_step
from ..measurement import Measurement
from ..question import (
    Charges,
    Mechanism,
    Question,
    RowAccess,
    Session,
    State,
    Streams,
    Unit,
)
from .ensemble import Ensemble, Faculty


@dataclass(frozen=True, kw_only=True)
class Votes(Question):
    """Every teacher names one bin per coordinate; noisy histograms (coordinates, bins) come out.

    The map is a `Faculty`; a step's state is the question that its teachers are asked.

    Privacy:
        One teacher that changes its mind takes a vote from one bin of a coordinate and gives one to
        another: the histograms move by sqrt(2 coordinates), their largest entries, which are a
        second measurement where wanted, by sqrt(coordinates). Both in L2. Where a teacher votes on
        `most` coordinates at most, the histograms move by sqrt(2 most); and so do their largest
        entries, since it might vote on others. Who votes on more has no vote at all.

    Args:
        coordinates: Histograms in an answer.
        most: Coordinates that one teacher may vote on; 0: all of them.
        bins: Of each of them.
        count: Number of steps.
        largest_share: Part of the question's share for measuring the largest entry of each histogram
            apart, for a threshold; 0: they are not measured.
    """

    stepwise: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    work: ClassVar[str] = "asks teachers who each learn from rows of their own"

    coordinates: int
    bins: int
    count: int
    most: int = 0
    largest_share: float = 0.0

    @property
    def steps(self) -> int:
        return self.count

    @property
    def split(self) -> tuple[float, ...]:
        largest = self.largest_share
        return (largest, 1 - largest) if largest else (1.0,)

    def measured(self) -> tuple[Charge, ...]:
        moved = 2 * (self.most or self.coordinates)
        votes = Charge(
            name=self.name,
            sensitivity=math.sqrt(moved),
            coordinates=self.coordinates * self.bins,
            steps=self.count,
        )
        largest = Charge(
            name=f"{self.name}, the largest",
            sensitivity=math.sqrt(min(moved, self.coordinates)),
            coordinates=self.coordinates,
            steps=self.count,
        )
        return (largest, votes) if self.largest_share else (votes,)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedVotes:
        check_priced(self, charges, unit)
        return CountedVotes(tuple(charges), self.coordinates, self.bins, self.most)


@dataclass(frozen=True, kw_only=True)
class Directions(Question):
    """Every teacher answers with a vector, clipped to norm 1; their noisy sum (1, size) comes out.

    The map is a `Faculty`; a step's state is the question that its teachers are asked.

    Privacy:
        One teacher replaces its vector by another: the sum moves by at most 2, in L2.

    Args:
        size: Numbers in a vector.
        count: Number of steps.
    """

    stepwise: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    work: ClassVar[str] = "asks teachers who each learn from rows of their own"

    size: int
    count: int

    @property
    def steps(self) -> int:
        return self.count

    def measured(self) -> tuple[Charge, ...]:
        return (Charge(name=self.name, sensitivity=2.0, coordinates=self.size, steps=self.count),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> SummedDirections:
        check_priced(self, charges, unit)
        grid = GridSum(bound=1.0, noise=charges[0].noise, groups=1, size=self.size)
        return SummedDirections(tuple(charges), grid)


Ballot = Votes | Directions


def check_priced(question: Question, charges: Sequence[Charge], unit: Unit) -> None:
    """A teacher's mind counts as much whatever the noise: charges may not price less."""
    for charge, wanted in zip(charges, question.charges(unit), strict=True):
        if charge.sensitivity < wanted.sensitivity:
            raise RuntimeError(f"'{charge.name}' was planned for other ballots")


class Tally(Mechanism):
    """Counts teachers' answers, in whole numbers; its batches are of teachers, not of rows."""

    def accumulate(self, partial: Any, batch: Rows | None, answers: Any) -> Any:
        """A tally with the answers of some teachers added."""
        return partial + self.counted(answers)

    @abc.abstractmethod
    def counted(self, answers: np.ndarray) -> np.ndarray:
        """The tally of some teachers' answers."""

    def session(self, access: RowAccess, row_map: Faculty) -> Session:
        return _Questioning(self, access, row_map)


@dataclass(frozen=True)
class CountedVotes(Tally):
    charges: tuple[Charge, ...]
    coordinates: int
    bins: int
    most: int = 0

    def __post_init__(self) -> None:
        for charge in self.charges:
            grid_step(1.0, charge.noise)  # refuses a grid on which votes would overflow

    def zero(self) -> np.ndarray:
        return np.zeros((self.coordinates, self.bins), np.int64)

    def counted(self, answers: np.ndarray) -> np.ndarray:
        """Votes (teachers, coordinates) to counts (coordinates, bins); others than bins are void."""
        if answers.shape[1:] != (self.coordinates,) or answers.dtype.kind != "i":
            raise RuntimeError(f"'{self.charges[-1].name}': votes of shape {answers.shape[1:]}")
        place = np.arange(self.coordinates) * self.bins + answers
        valid = (answers >= 0) & (answers < self.bins)
        if self.most:
            valid &= valid.sum(axis=1, keepdims=True) <= self.most
        counts = np.bincount(place[valid], minlength=self.coordinates * self.bins)
        return counts.reshape(self.coordinates, self.bins)

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        both = len(self.charges) == 2
        parts = [partial.max(axis=1, keepdims=True), partial] if both else [partial]
        histograms = []
        for charge, part in zip(self.charges, parts, strict=True):
            shape = {"groups": len(part), "size": part.shape[1]}
            grid = GridSum(bound=1.0, noise=charge.noise, **shape)
            noisy = grid.finalise(part * grid.unit, stream(charge))
            histograms.append(Measurement.under(charge, noisy))
        return tuple(histograms)


@dataclass(frozen=True)
class SummedDirections(Tally):
    charges: tuple[Charge, ...]
    grid: GridSum

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a contribution

    def zero(self) -> np.ndarray:
        return self.grid.zero()

    def counted(self, answers: np.ndarray) -> np.ndarray:
        """Vectors (teachers, size) to their sum (1, size) in grid steps."""
        return self.grid.accumulate(answers, np.zeros(len(answers), np.int64))

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        return (Measurement.under(charge, self.grid.finalise(partial, stream(charge))),)


class _Questioning(Session):
    """All teachers, step after step. A step whose answer is known is learned from all the same."""

    def __init__(self, tally: Tally, access: RowAccess, faculty: Faculty) -> None:
        self._tally, self._access, self._faculty = tally, access, faculty
        self._ensemble: Ensemble | None = None
        self._waiting: list[Any] = []

    def skip(self, step: int, state: State) -> None:
        self._waiting.append(state["question"])

    def partial(self, step: int, state: State) -> Any:
        self._ensemble = self._ensemble or Ensemble.of_rows(self._faculty, self._access)
        for question in self._waiting:
            for _ in self._ensemble.ask(question, answers=False):
                pass
        self._waiting.clear()
        total = self._tally.zero()
        for done, answers in self._ensemble.ask(state["question"]):
            total = self._tally.accumulate(total, None, answers)
            self._access.progress(done)
        return total
