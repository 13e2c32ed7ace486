"""`Turns`: one teacher after the other learns and answers, so that a record pays for the turns of one alone.

Whose turn it is follows from the number of the step: it is public, and nobody draws it. A record sits in the
shard of one teacher, so in all other turns its presence changes nothing: neither what that teacher has
learned, nor what it is asked, which follows from the noisy answers before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...accounting import Charge
from ..grid import GridSum
from ..question import Charges, Question, RowAccess, Session, State, Unit
from .ballots import SummedDirections, check_priced
from .ensemble import Ensemble, Faculty


@dataclass(frozen=True, kw_only=True)
class Turns(Question):
    """In every step one teacher answers with a vector, clipped to norm 1, to which noise is added.

    The map is a `Faculty`; a step's state is the question that the teacher is asked. In step t it is the
    teacher with number t modulo their number.

    Privacy:
        A record changes what one teacher says, in all of its turns: each answer becomes another, and
        moves by at most 2, in L2. Answers in the turns of other teachers are the same noisy functions of
        what was answered before, whether the record is there or not. So as many steps are charged as one
        teacher has turns, at most (docs/proofs.md).

    Args:
        size: Numbers in a vector.
        count: Number of steps.
        teachers: Who take turns.
    """

    stepwise: ClassVar[bool] = True
    persons: ClassVar[bool] = True

    size: int
    count: int
    teachers: int

    @property
    def steps(self) -> int:
        return self.count

    @property
    def rounds(self) -> int:
        """Turns of one teacher, at most."""
        return -(-self.count // self.teachers)

    def measured(self) -> tuple[Charge, ...]:
        return (Charge(name=self.name, sensitivity=2.0, coordinates=self.size, steps=self.rounds),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> OneByOne:
        check_priced(self, charges, unit)
        if row_map is not None and row_map.teacher.count != self.teachers:
            raise RuntimeError(f"'{self.name}' was planned for {self.teachers} teachers")
        grid = GridSum(bound=1.0, noise=charges[0].noise, groups=1, size=self.size)
        return OneByOne(tuple(charges), grid, self)


@dataclass(frozen=True)
class OneByOne(SummedDirections):
    """The answer of the teacher whose turn it is: a sum of one."""

    turns: Turns

    def session(self, access: RowAccess, row_map: Faculty) -> Session:
        return _TakingTurns(self, access, row_map)


class _TakingTurns(Session):
    """Teachers that are kept as long as they have a turn to come. A step whose answer is known is learned
    from all the same."""

    def __init__(self, mechanism: OneByOne, access: RowAccess, faculty: Faculty) -> None:
        self._mechanism, self._access, self._faculty = mechanism, access, faculty
        self._turns = mechanism.turns
        self._ensemble: Ensemble | None = None
        self._waiting: list[tuple[int, Any]] = []

    def skip(self, step: int, state: State) -> None:
        if step + self._turns.teachers < self._turns.count:
            self._waiting.append((step % self._turns.teachers, state["question"]))

    def partial(self, step: int, state: State) -> np.ndarray:
        self._ensemble = self._ensemble or Ensemble.of_rows(self._faculty, self._access)
        for teacher, question in self._waiting:
            self._ensemble.ask_one(teacher, question, answers=False)
        self._waiting.clear()
        last = step + self._turns.teachers >= self._turns.count
        answer = self._ensemble.ask_one(step % self._turns.teachers, state["question"], last=last)
        return self._mechanism.accumulate(self._mechanism.zero(), None, answer)
