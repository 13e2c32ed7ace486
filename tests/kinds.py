"""The kinds of questions, each with a map that misbehaves. A new kind joins by a row in `KINDS`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from helpers import ask, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge
from limbeck.features import Fourier
from limbeck.methods import AbstractInquiry
from limbeck.privacy import (
    Asked,
    BatchGradient,
    Choice,
    Directions,
    Faculty,
    FrequentValues,
    Gradients,
    Head,
    Histogram,
    LaplaceHistogram,
    Measurement,
    Noise,
    OneBlock,
    OuterSum,
    Planned,
    Question,
    RowAccess,
    RowSums,
    StateCounts,
    Sum,
    Turns,
    Unit,
    Votes,
)
from limbeck.privacy.estimate.quantiles import ColumnHistogram, Edges

BOUND = 0.7
SCHEMA = table_schema()


# ---- maps that misbehave ---------------------------------------------------------------------


class Wild:
    """A feature map that lies about its norm."""

    size, norm_bound = 5, 0.1

    def __call__(self, rows: jax.Array) -> jax.Array:
        return 50.0 * rows[:, :5] - 7.0


class Scaled(Wild):
    """The same times a number, and shifted."""

    def __init__(self, by: float, shift: Any = 0.0) -> None:
        self.by, self.shift = by, shift

    def __call__(self, rows: jax.Array) -> jax.Array:
        return self.by * super().__call__(rows) + self.shift


def scaled(schema: lk.Schema, seed: int, by: float, shift: Any = 0.0) -> Scaled:
    """For maps that are built from a spec."""
    return Scaled(by, shift)


def scaled_too(schema: lk.Schema, seed: int, by: float, shift: Any = 0.0) -> Scaled:
    return Scaled(by, shift)


class Pairs:
    """Factors far beyond the bound, for some rows not finite."""

    left, right, norm_bound = 4, 3, BOUND

    def __call__(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 30 * rows[:, :4], jnp.where(rows[:, :1] > 0.9, jnp.nan, 5 * rows[:, 2:5] + 1)


class Blocks:
    """Two outer products side by side, beyond the bound together; for some rows not finite."""

    blocks, norm_bound = ((3, 2), (1, 4)), BOUND

    def __call__(self, rows: jax.Array) -> tuple[tuple[jax.Array, jax.Array], ...]:
        odd = jnp.where(rows[:, :1] > 0.9, jnp.nan, rows[:, :4])
        return (30 * rows[:, :3], rows[:, 2:4]), (1 + rows[:, :1], odd)


class LabelledBlocks:
    """Blocks that know the label, in one sum, worked on a few rows at a time."""

    blocks, norm_bound, chunk = Blocks.blocks, BOUND, 7

    def __call__(
        self, rows: jax.Array, labels: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], ...]:
        return tuple((left, right * (1 + labels[:, None])) for left, right in Blocks()(rows))


class Clusters:
    """Groups that features choose, some of which are not there."""

    groups, size, norm_bound = 5, 4, BOUND

    def __call__(self, rows: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 9 * rows[:, :4] - labels[:, None], (10 * rows[:, 1]).astype(int) % 6


class Bins:
    """Bins that a map chooses, some of which are not there."""

    bins = 6

    def __call__(self, rows: jax.Array, labels: jax.Array) -> jax.Array:
        return ((10 * rows[:, 2]).astype(int) + 2 * (labels + 1)) % 7  # for any label


class Guesses:
    """Candidates of which some rows have no cell, some one that is not there; what is said of them is wild."""

    sizes = (3, 2, 6, 1) * 3
    expected = np.resize([4.0, np.inf, -3.25, np.nan, 1e300, 1 / 3, 7.0], 36)
    weights = np.resize([1.0, 50.0, 0.1, -1.0, np.nan], 12)
    penalties = np.resize([0.0, 1 / 3, np.inf, -np.inf, 5.0], 12)

    def __call__(self, rows: jax.Array, labels: jax.Array) -> jax.Array:
        seen = 10 * jnp.tile(rows[:, :4], 3) + labels[:, None] - 1
        return seen.astype(int) * jnp.array([1, -1, 1000] * 4)


def loss(parameters: jax.Array, slots: jax.Array, label: jax.Array) -> jax.Array:
    return (jnp.dot(parameters, slots[:10]) - label) ** 2


class Moody:
    """A whole batch's vector, far beyond the clip, that a single row may turn round; not finite for some."""

    def whole(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> np.ndarray:
        seen = slots[labels >= 0].astype(np.float64)
        side = 1 - 2 * (int(997 * seen.sum()) % 2)
        wild = np.inf if len(seen) % 5 == 1 else 1.0
        return wild * side * (1 + np.arange(10.0)) * 50


class Ghost:
    """Gradients label x slots, told by norms and sums alone; what it says of row 0 can be set."""

    def __init__(self, told: float | None = None, size: int = 10) -> None:
        self.told, self.size = told, size

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        made = (1.0 + labels[:, None]) * slots[:, : self.size].astype(np.float64) * 40
        norms = np.linalg.norm(made, axis=1) * (1 + 1e-9)
        if self.told is not None:
            norms[0] = self.told
        return RowSums(norms, norms, len(made) + 2, lambda factors: factors @ made)


@dataclass(frozen=True)
class Swayed:
    """A teacher that changes its whole mind with every row that it sees."""

    size: int
    bins: int = 0
    count: int = 5
    batch: int = 8
    turns: int = 1
    seed: int = 0

    def start(self, seed: Any, number: Any) -> Any:
        return jnp.zeros(1)

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return state + (rows.sum(axis=1) * present).sum() + present.sum()

    def answer(self, state: Any, question: Any) -> Any:
        side = jnp.floor(997 * state).astype(jnp.int32) % 2
        if self.bins:
            return jnp.full(self.size, side, jnp.int32)
        return jnp.full(self.size, 100.0 * (1 - 2 * side))


# ---- the table -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A question, what it is asked with, and one that plans less than the map measures."""

    name: str
    question: Question
    row_map: Any = None
    state: Any = None
    smaller: Question | None = None
    adds_up: bool = True
    """Whether the sums of parts of the rows, merged, are the sum of all."""
    rounds: bool = True
    """Whether contributions are rounded to a grid, which too much noise makes too coarse for them."""

    @property
    def paid(self) -> int:
        """Steps that one record pays for: of teachers who take turns those of one."""
        question = self.question
        if isinstance(question, Choice):
            return question.picks
        return question.rounds if isinstance(question, Turns) else question.steps

    @property
    def coordinates(self) -> list[int]:
        """Numbers of each measurement."""
        return [answer.values.size for answer in answers(self, data(table_rows(3)))[0]]


FOURIER = Fourier(slots=SCHEMA.slots, size=8, length_scales=(1.0,), key=jax.random.key(0))
_SUM = Sum(name="sum", bound=BOUND, size=5, groups=3)
_CLUSTERS = Sum.of_groups("sum", Clusters())
_PAIRS = OuterSum(name="products", bound=BOUND, blocks=((4, 3),), groups=3)
_BLOCKS = OuterSum(name="products", bound=BOUND, blocks=Blocks.blocks, groups=3)
_LABELLED = OuterSum(name="products", bound=BOUND, blocks=Blocks.blocks, labelled=True)
_BINS = Histogram(name="counts", bins=6)
_COLUMN = ColumnHistogram(name="counts", bins=20, column=1)
_HEAD = Head(name="head", bound=BOUND, size=8, outputs=3, count=2)
_GRADIENTS = Gradients(name="gradients", clip=BOUND, size=10, rate=1.0, rows=20, count=2)
_WHOLE = BatchGradient(name="gradients", clip=BOUND, size=10, rate=1.0, rows=20, count=2)
_VOTES = Votes(name="votes", coordinates=12, bins=3, count=2)
_DIRECTIONS = Directions(name="directions", size=20, count=2)
_TURNS = Turns(name="turns", size=20, count=7, teachers=5)
_WEIGHTS = {"weights": np.eye(8, 3)}
_PARAMETERS = {"parameters": np.full(10, 9.0, np.float32)}
_ASKED = {"question": jnp.zeros(2)}

KINDS = [
    Kind("sum by label", _SUM, Wild(), smaller=replace(_SUM, size=4)),
    Kind("sum of all", replace(_SUM, groups=1, by="all"), Wild()),
    Kind("sum by map", _CLUSTERS, Clusters(), smaller=replace(_CLUSTERS, groups=4)),
    Kind("products", _PAIRS, OneBlock(Pairs()), smaller=replace(_PAIRS, blocks=((4, 2),))),
    Kind("blocks", _BLOCKS, Blocks(), smaller=replace(_BLOCKS, blocks=((6, 3),))),
    Kind("labelled blocks", _LABELLED, LabelledBlocks()),
    Kind("states of columns", StateCounts.of_schema("states", SCHEMA)),
    Kind("histogram of classes", Histogram(name="counts", bins=3)),
    Kind("histogram by map", _BINS, Bins(), smaller=replace(_BINS, bins=5)),
    Kind("histogram, Laplace", LaplaceHistogram(name="counts", bins=3, epsilon=0.2)),
    Kind(
        "histogram of a column", _COLUMN, Edges(np.linspace(0, 1, 21)),
        smaller=replace(_COLUMN, bins=19),
    ),
    Kind("head", _HEAD, FOURIER, _WEIGHTS, smaller=replace(_HEAD, size=7)),
    Kind("gradients", _GRADIENTS, loss, _PARAMETERS, smaller=replace(_GRADIENTS, size=9)),
    Kind(
        "batch gradients", _WHOLE, Moody(), _PARAMETERS, smaller=replace(_WHOLE, size=9), adds_up=False,
    ),
    Kind("ghost gradients", _GRADIENTS, Ghost(), _PARAMETERS, adds_up=False),
    Kind(
        "votes", _VOTES, Faculty(Swayed(12, bins=3)), _ASKED,
        smaller=replace(_VOTES, coordinates=11), adds_up=False,
    ),
    Kind(
        "votes and the largest", replace(_VOTES, largest_share=0.3), Faculty(Swayed(12, bins=3)),
        _ASKED, adds_up=False,
    ),
    Kind(
        "directions", _DIRECTIONS, Faculty(Swayed(20)), _ASKED,
        smaller=replace(_DIRECTIONS, size=19), adds_up=False,
    ),
    Kind("turns", _TURNS, Faculty(Swayed(20)), _ASKED, smaller=replace(_TURNS, size=19), adds_up=False),
]  # fmt: skip
"""Questions that are answered in numbers. `FrequentValues` answers in texts, `BareRows` in rows,
`Choice` in places."""

_CHOICE = Choice(name="choice", candidates=12, cells=36, picks=5)
CHOICE = Kind("choice", _CHOICE, Guesses(), smaller=replace(_CHOICE, cells=35), rounds=False)
"""A question answered by a choice: what is nearly the same in two data sets is its probability."""

VALUES = FrequentValues(name="values", column="town", most=None, threshold_delta=1e-6)


# ---- rows, and rows that are strange ---------------------------------------------------------


def data(rows: pd.DataFrame) -> lk.Dataset:
    return lk.read(rows, SCHEMA)


def strange_rows(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of one that may join some others."""
    nothing = {"age": np.nan, "income": np.nan, "town": None, "smoker": None, "seen": None}
    changes: dict[str, dict[str, object]] = {
        "a duplicate": {},
        "extremely large": {"age": 1e300, "income": 1e300, "seen": "9999-12-31"},
        "extremely small": {"age": -1e300, "income": -np.inf, "seen": "1000-01-01"},
        "not a number": nothing,
        "not a number, lone in its class": nothing | {"ill": "unsure"},
        "an undeclared label": {"ill": "who knows"},
        "no label": {"ill": None},
        "lone in its class": {"ill": "unsure"},
        "an unknown value": {"town": "nowhere", "smoker": "perhaps"},
        "another value": {"income": 137.0, "ill": "yes"},
        "another label": {"age": 3.0, "ill": "no"},
    }
    one = rows.iloc[[3]].astype(object)
    return {name: one.assign(**change) for name, change in changes.items()}


def inserted(rows: pd.DataFrame, one: pd.DataFrame, place: int) -> pd.DataFrame:
    whole = rows.astype(object)
    return pd.concat([whole.iloc[:place], one, whole.iloc[place:]], ignore_index=True)


# ---- asking ----------------------------------------------------------------------------------


def answers(
    kind: Kind, given: lk.Dataset, *, maps: Any = None, **asking: Any
) -> list[tuple[Measurement, ...]]:
    """The answers to all steps of a kind's question."""
    private, question = ask(given, kind.question, **asking), kind.question
    row_map = kind.row_map if maps is None else maps
    if not question.stepwise:
        return [(private.ask(question.name, row_map),)]
    with private.steps(question.name, row_map) as step:
        return [step(kind.state) for _ in range(question.steps)]


def partial(kind: Kind, given: lk.Dataset, planned: Planned, unit: Unit, step: int = 0) -> Any:
    """What a mechanism adds up, before noise, which nobody outside `limbeck.privacy` ever sees."""
    mechanism = planned.question.calibrated(planned.charges, unit, kind.row_map)
    held = RowAccess(data=given, noise=Noise.from_seed(0), progress=lambda done: None)
    return mechanism.session(held, kind.row_map).partial(step, kind.state or {})


class Kept:
    """Answers by name; one that was given to another question is no answer to this one."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[np.ndarray, str]] = {}

    def load(self, name: str, *, digest: str) -> np.ndarray | None:
        if name not in self.files:
            return None
        answer, asked = self.files[name]
        if asked != digest:
            raise lk.LimbeckError("asked with other public values")
        return answer

    def save(self, name: str, answer: np.ndarray, *, digest: str) -> None:
        assert name not in self.files
        self.files[name] = answer, digest


def moved(charge: Charge, one: Measurement, two: Measurement) -> float:
    """By how much two answers differ, in the norm of the charge's mechanism: Laplace's is L1."""
    change = np.ravel(one.values - two.values)
    return float(np.linalg.norm(change, 1 if charge.mechanism == "discrete laplace" else 2))


def distance(one: Counter[str], two: Counter[str]) -> float:
    names = one.keys() | two.keys()
    return float(np.linalg.norm([one[name] - two[name] for name in names]))


@dataclass(frozen=True, kw_only=True)
class Inquiry(AbstractInquiry):
    """Asks one question, so that a real plan prices it."""

    name: ClassVar[str] = "one question"
    papers: ClassVar[tuple[str, ...]] = ()

    question: Question

    def questions(self, schema: lk.Schema) -> list[Asked]:
        return [Asked(question=self.question, share=1.0)]
