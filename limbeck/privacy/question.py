"""A question about the rows, the mechanism that answers it, and the measurement that comes out.

A question is public and frozen: its name, its largest shape, its clip. From these alone follow the
charges that pay for it, and with the calibrated noise the mechanism that answers it. So clip, sum,
noise and charge have one owner and cannot disagree. Each kind of question has a file of its own.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from threading import Event, Lock
from typing import Any, ClassVar

import numpy as np

from ..accounting import Budget, Charge
from ..data import THREADS, Dataset, Rows
from ..errors import LimbeckError
from ..schema import Schema
from .measurement import Measurement
from .noise import Noise, Stream
from .partials import from_bytes, to_bytes

State = Mapping[str, Any]
"""Public arrays by name: what earlier answers decided about a later question."""
Charges = Sequence[Charge]
Streams = Callable[[Charge], Stream]
"""Where the noise of each charge comes from."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Whose presence is hidden, and by how much neighbouring data sets differ.

    A person's rows count for one row together: each for one part in as many as are kept. So what a
    kind of question promises for a row, it promises for a person, with room for more roundings.
    """

    adjacency: str = "add-remove"
    person: bool = False
    """Whether a person with all their rows is hidden, not a row."""
    rows_at_most: int = 1
    """Rows of a person that are kept."""

    @classmethod
    def of(cls, budget: Budget, schema: Schema) -> Unit:
        person = schema.person
        most = 1 if person is None else person.rows_at_most
        return cls(adjacency=budget.adjacency, person=person is not None, rows_at_most=most)

    @property
    def factor(self) -> int:
        """Records by which neighbouring data sets differ: a replaced one is removed and added."""
        return 2 if self.adjacency == "replace-one" else 1

    def charge(self, charge: Charge) -> Charge:
        """A charge stated for one record more or less, priced for these neighbours."""
        return replace(
            charge,
            sensitivity=self.factor * charge.sensitivity,
            coordinates=self.factor * charge.coordinates,
            threshold_delta=self.factor * charge.threshold_delta,
        )


@dataclass(frozen=True, kw_only=True)
class RowAccess:
    """The rows that a mechanism works on, and what else it needs for that; never leaves `limbeck.privacy`."""

    data: Dataset
    noise: Noise
    progress: Callable[[float], None]
    key: bytes = b""
    """Decides which rows of a person are kept, where there are too many."""

    @property
    def schema(self) -> Schema:
        return self.data.schema

    @property
    def rows(self) -> Rows:
        return self.data._bounded(self.key)

    def batches(self, size: int) -> Iterator[Rows]:
        """All rows, so many at a time, with progress."""
        rows = self.rows
        for number, batch in enumerate(rows.chunks(size)):
            yield batch
            self.progress(min(1.0, (number + 1) * size / len(rows)))

    def stream(self, purpose: str) -> Stream:
        """Secret randomness other than noise: coins, keys of hashes."""
        return self.noise.stream(purpose)


class Mechanism(abc.ABC):
    """Answers one question at a known noise: clips, rounds and adds up rows, then adds noise once.
    Partial sums are whole numbers, so they merge to the same total in any order, and one record
    changes the total by at most the charge's sensitivity."""

    charges: tuple[Charge, ...]
    to_bytes, from_bytes = staticmethod(to_bytes), staticmethod(from_bytes)

    @abc.abstractmethod
    def zero(self) -> Any:
        """The partial sum of no rows."""

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        """Rows of a batch: of one shape, whatever the number of rows (see `maps.chunk_rows`)."""
        return 1 << 16

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> Any:
        """What the map makes of each row of a batch."""
        return None

    @abc.abstractmethod
    def accumulate(self, partial: Any, batch: Rows, mapped: Any) -> Any:
        """A partial sum with a batch added, of whose rows the map made `mapped` (see `evaluate`)."""

    def session(self, access: RowAccess, row_map: Any) -> Session:
        """The mechanism at work on the rows; what is made once for all steps waits for the first."""
        return OnePass(self, access, row_map)

    def at(self, state: State) -> Mechanism:
        """The mechanism at one step, for engines that keep nothing between steps."""
        return self

    @abc.abstractmethod
    def finish(self, partial: Any, stream: Streams) -> tuple[Measurement, ...]:
        """Add noise, once: a measurement for each charge."""

    @staticmethod
    def merge(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The partial sum of the rows of two partial sums."""
        if left.shape != right.shape:
            raise RuntimeError("partial sums of different shapes do not merge")
        return left + right


class Session(abc.ABC):
    """A mechanism at work on the rows, from its first step to its last."""

    @abc.abstractmethod
    def partial(self, step: int, state: State) -> Any:
        """The sum over all rows at a step, not noised yet."""

    def skip(self, step: int, state: State) -> None:
        """A step whose answer is known from before: a run is being resumed."""
        return None


@dataclass(frozen=True)
class OnePass(Session):
    """One look at all rows, a batch at a time: how a question is answered that is asked once."""

    mechanism: Mechanism
    access: RowAccess
    row_map: Any

    def partial(self, step: int, state: State) -> Any:
        mechanism, schema = self.mechanism, self.access.schema
        batches = self.access.batches(mechanism.rows_at_once(schema, self.row_map))
        return summed(mechanism, self.row_map, schema, batches, side_by_side=THREADS)


def summed(
    mechanism: Mechanism,
    row_map: Any,
    schema: Schema,
    batches: Iterable[Rows],
    side_by_side: int = 1,
) -> Any:
    """The partial sum of batches, some worked on at once: in whole numbers their order is all one."""
    left, turn, stopped = iter(batches), Lock(), Event()

    def share(number: int) -> Any:
        total = None
        while not stopped.is_set():
            with turn:
                batch = next(left, None)
            if batch is None:
                break
            mapped = mechanism.evaluate(row_map, batch, schema)
            total = mechanism.accumulate(
                mechanism.zero() if total is None else total, batch, mapped
            )
        return total

    with ThreadPoolExecutor(side_by_side) as pool:
        try:
            shares = [s for s in pool.map(share, range(side_by_side)) if s is not None]
        finally:
            stopped.set()  # one that failed, or was interrupted, ends the others
    return reduce(mechanism.merge, shares) if shares else mechanism.zero()


@dataclass(frozen=True, kw_only=True)
class Question(abc.ABC):
    """What will be asked of the rows, from public knowledge alone.

    Shapes are the largest that a map chosen after earlier answers may have. A row without a declared
    label enters no question but the check of the schema (`StateCounts`).
    """

    engines: ClassVar[tuple[str, ...]] = ("local",)
    """Where its sums can be computed."""
    stepwise: ClassVar[bool] = False
    """Whether it is asked step after step, each with a public state, instead of once."""
    kept: ClassVar[bool] = True
    """Whether answers are kept so that a killed run can be resumed."""
    persons: ClassVar[bool] = False
    """Whether one person, with all kept rows, moves the answer by no more than is charged for a row."""

    name: str

    @property
    def steps(self) -> int:
        """How often it is asked: fixed beforehand."""
        return 1

    @abc.abstractmethod
    def measured(self) -> tuple[Charge, ...]:
        """What is measured, stated for one record more or less."""

    @abc.abstractmethod
    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> Mechanism:
        """The mechanism at the noise of the charges, for a map that fits the planned shape, or for that
        shape. Refuses noise whose grid is too coarse for a contribution, or so fine that sums overflow."""

    def charges(self, unit: Unit) -> tuple[Charge, ...]:
        """What pays for the question, under the neighbours at hand. Refuses those it cannot have."""
        if unit.person and not self.persons:
            raise LimbeckError(
                f"'{self.name}' is bounded for rows, not for persons with several rows. Choose another "
                "method, or take [person] out of the schema and protect rows."
            )
        return tuple(unit.charge(charge) for charge in self.measured())

    def runs_on(self, engine: str) -> bool:
        """Whether an engine can compute its sums."""
        return engine in self.engines

    def exact(self, row_map: Any) -> bool:
        """Whether sums are of whole numbers all the way; else of float64 ones, with a proven margin."""
        return True

    @property
    def split(self) -> tuple[float, ...]:
        """How the charges divide the question's share of the budget: evenly."""
        return (1 / len(self.measured()),) * len(self.measured())


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A question with the charges that pay for it, noise calibrated."""

    question: Question
    charges: tuple[Charge, ...]
