"""For each kind of question the rows at which one unit more moves its answer as far as is charged.

Many such units stand side by side, each in coordinates of its own, so that one answer of the real
mechanism is many independent trials: K units that are there, or are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ..accounting import Charge
from ..data import Dataset, read
from ..privacy import (
    Choice,
    Directions,
    Faculty,
    Gradients,
    Head,
    Histogram,
    LaplaceHistogram,
    OuterSum,
    Question,
    RowSums,
    StateCounts,
    Sum,
    Turns,
    Votes,
)
from ..privacy.estimate.quantiles import ColumnHistogram, Edges
from ..schema import Category, Numeric, Person, Schema

WIDE = 2048
"""Units side by side."""
BOUND = 0.7
"""Norm to which contributions are clipped: not 1, at which mistakes could cancel."""


@dataclass(frozen=True)
class WorstCase:
    """A question, what it is asked with, and the rows of both worlds."""

    question: Question
    row_map: Any = None
    state: Any = None
    units: int = WIDE
    """Rows that are there in the one world and not in the other; each a trial."""
    stacked: bool = False
    """Whether one unit moves the whole answer: then many answers are noised together."""

    def data(self, person: Person | None, *, with_units: bool) -> Dataset:
        """The rows of a world; where persons are protected each is a person's only one."""
        count = self.units if with_units else 0
        schema = Schema(dataset="audit", rows=self.units, columns=COLUMNS, person=person)
        place = (np.arange(count) + 0.5) / self.units
        frame = pd.DataFrame({"x": place, "class": ["a"] * count})
        if person is not None:
            frame[person.column] = [f"person {i}" for i in range(count)]
        return read(frame, schema)

    def trials(self, values: np.ndarray) -> np.ndarray:
        """An answer as (trials, numbers that one unit moves)."""
        if self.stacked:
            return values.reshape(-1, values.shape[-1])
        return values.reshape(self.units, -1)


COLUMNS = (
    Numeric(name="x", min=0.0, max=1.0),
    Category(name="class", values=("a", "b"), label=True),
)


def _place(rows: Any, units: int) -> Any:
    return jnp.floor(rows[:, 0] * units).astype(jnp.int32)


class OneHot:
    """Each row has a slot of its own, far beyond the bound."""

    norm_bound = BOUND

    def __init__(self, units: int) -> None:
        self.size = units

    def __call__(self, rows: Any) -> Any:
        return 9.0 * jax.nn.one_hot(_place(rows, self.size), self.size)


class OwnBin:
    """Each row in a bin of its own."""

    def __init__(self, units: int) -> None:
        self.bins = units

    def __call__(self, rows: Any, labels: Any) -> Any:
        return _place(rows, self.bins)


class OwnProducts:
    """Each row has products of its own."""

    norm_bound = BOUND

    def __init__(self, units: int) -> None:
        self.blocks, self._left = ((units, 2),), OneHot(units)

    def __call__(self, rows: Any) -> Any:
        right = jnp.tile(jnp.array([[30.0, -40.0]]), (len(rows), 1))
        return ((self._left(rows), right),)


@dataclass(frozen=True)
class OwnGradient:
    """Each row has an entry of the gradient of its own; made one by one."""

    units: int

    def blocks(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        place = np.floor(slots[:, 0] * self.units).astype(int).clip(0, self.units - 1)
        made = np.zeros((len(slots), self.units))
        made[np.arange(len(slots)), place] = 30.0
        yield 0, made


@dataclass(frozen=True)
class OwnGradientUnmade:
    """The same, known by norms and sums alone."""

    units: int

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        place = np.floor(slots[:, 0] * self.units).astype(int).clip(0, self.units - 1)
        norms = np.full(len(slots), 30.0)

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            return np.bincount(place, weights=30.0 * factors, minlength=self.units)

        return RowSums(norms, norms, len(slots) + 2, weighted_sum)


@dataclass(frozen=True)
class Turncoat:
    """A teacher that changes its mind when it has seen a row."""

    size: int
    votes: bool
    count: int = 3
    batch: int = 4
    turns: int = 1
    seed: int = 0

    def start(self, seed: Any, number: Any) -> Any:
        return jnp.zeros(())

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return jnp.maximum(state, present.any().astype(jnp.float32))

    def answer(self, state: Any, question: Any) -> Any:
        if self.votes:
            return jnp.full(self.size, state, jnp.int32)
        return jnp.full(self.size, 100.0 * (1 - 2 * state))


class Rivals:
    """Two candidates that are equally good without a unit, which is for the one and against the other."""

    sizes = (1, 1)
    expected = np.array([0.0, 4.0])
    weights = np.ones(2)
    penalties = np.array([-4.0, 0.0])

    def __call__(self, rows: Any, labels: Any) -> Any:
        return jnp.zeros((len(rows), 2), jnp.int32)

    @staticmethod
    def chance(apart: float, noise: float) -> float:
        """Of the first one by permute-and-flip, where its utility is so much greater."""
        ahead = 1 - math.exp(-abs(apart) / (2 * noise)) / 2
        return ahead if apart >= 0 else 1 - ahead


def worst_case(question: Question, *, unmade: bool = False) -> WorstCase | None:
    """The worst rows for a question of this kind; None where none are known.

    Args:
        question: As it was planned: its steps, its sampling, its shares are kept.
        unmade: Whether gradients are known by norms and sums alone.
    """
    make = _MAKERS.get(type(question))
    if make is None:
        return None
    case = make(question)
    if case is not None and unmade and isinstance(case.question, Gradients):
        return replace(case, row_map=OwnGradientUnmade(case.units))
    return case


def _sum(question: Any) -> WorstCase:
    asked = Sum(name=question.name, bound=BOUND, size=WIDE, groups=1, by="all")
    return WorstCase(asked, OneHot(WIDE))


def _products(question: Any) -> WorstCase:
    asked = OuterSum(name=question.name, bound=BOUND, blocks=((WIDE, 2),))
    return WorstCase(asked, OwnProducts(WIDE))


def _histogram(question: Any) -> WorstCase:
    return WorstCase(Histogram(name=question.name, bins=WIDE), OwnBin(WIDE))


def _laplace(question: Any) -> WorstCase:
    asked = LaplaceHistogram(name=question.name, bins=WIDE, epsilon=question.epsilon)
    return WorstCase(asked, OwnBin(WIDE))


def _column(question: Any) -> WorstCase:
    asked = ColumnHistogram(name=question.name, bins=WIDE, column=0)
    return WorstCase(asked, Edges(np.linspace(0, 1, WIDE + 1)))


def _states(question: Any) -> WorstCase:
    schema = Schema(dataset="audit", rows=1, columns=COLUMNS)
    asked = StateCounts.of_schema(question.name, schema)
    return WorstCase(asked, units=1, stacked=True)


def _head(question: Any) -> WorstCase:
    asked = Head(name=question.name, bound=0.3, size=WIDE, outputs=2, count=question.count)
    return WorstCase(asked, OneHot(WIDE), {"weights": np.zeros((WIDE, 2))})


def _gradients(question: Any) -> WorstCase:
    units = WIDE // 4  # a batch's gradients are made one by one, each as long as there are units
    sizes = {"size": units, "rows": units, "parameters": 1, "clip": BOUND}
    return WorstCase(
        replace(question, **sizes), OwnGradient(units), {"parameters": np.zeros(1)}, units
    )


def _votes(question: Any) -> WorstCase:
    asked = replace(question, coordinates=1, bins=2)
    faculty = Faculty(Turncoat(1, votes=True))
    return WorstCase(asked, faculty, {"question": jnp.zeros(1)}, 1, stacked=True)


def _directions(question: Any) -> WorstCase:
    faculty = Faculty(Turncoat(1, votes=False))
    return WorstCase(
        replace(question, size=1), faculty, {"question": jnp.zeros(1)}, 1, stacked=True
    )


def _turns(question: Any) -> WorstCase:
    """All turns of the one teacher whose shard holds the unit."""
    asked = replace(question, size=1, count=question.rounds, teachers=1)
    faculty = Faculty(Turncoat(1, votes=False, count=1))
    return WorstCase(asked, faculty, {"question": jnp.zeros(1)}, 1, stacked=True)


def _choice(question: Any) -> WorstCase | None:
    if question.picks > 1:
        return None
    asked = Choice(name=question.name, candidates=2, cells=2, epsilon=question.epsilon)
    return WorstCase(asked, Rivals(), units=1)


_MAKERS: dict[type[Question], Callable[[Any], WorstCase | None]] = {
    Choice: _choice,
    Sum: _sum,
    OuterSum: _products,
    Histogram: _histogram,
    LaplaceHistogram: _laplace,
    ColumnHistogram: _column,
    StateCounts: _states,
    Head: _head,
    Gradients: _gradients,
    Votes: _votes,
    Directions: _directions,
    Turns: _turns,
}
NOT_BUILT = {
    "FrequentValues": "its answer is a list of texts, drawn from counts that a threshold hides",
    "BatchGradient": "one unit moves the whole answer, so that every trial takes a batch of its own",
    "Choice": "of several picks without putting back, only every other one tells of a unit",
}
"""Kinds of limbeck's own whose worst case is not composed into a whole run, and why."""


def losses(charge: Charge, apart: np.ndarray, scaled: np.ndarray) -> np.ndarray:
    """The privacy loss of each trial: how much more likely its answer is with the unit than without.

    Args:
        charge: With mechanism, noise and sampling.
        apart: Between both worlds, in standard deviations (of Laplace noise in scales), (trials,).
        scaled: Answers along the line between both worlds, in the same measure, 0 without the unit.
    """
    if charge.mechanism == "discrete laplace":
        return np.abs(scaled) - np.abs(scaled - apart)
    found = apart * scaled - apart**2 / 2
    if charge.sampling is None:
        return found
    absent = math.log1p(-charge.sampling) if charge.sampling < 1 else -math.inf
    return np.logaddexp(absent, math.log(charge.sampling) + found)
