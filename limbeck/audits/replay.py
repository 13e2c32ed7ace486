"""A run on rows and on neighbouring rows: the same coins and noise, and the same earlier answers.

Then two runs ask the very same questions, and each answer differs by what the strange unit does to
it alone: at most the charged sensitivity, in the norm of the charge. All that is made of the answers must
be the same in every byte. Nothing is drawn at random, so a finding is a finding.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import jax
import numpy as np

from ..accounting import Charge
from ..data import Dataset
from ..methods import AbstractMeasureOnce, AbstractMethod
from ..planning import Plan
from ..privacy import Measurement, Mechanism, Noise, Planned, Private, Question, Turns
from ..privacy.questions.choice import FINE

ROUNDING = 1e-9
"""Relative room for float64 where two answers are subtracted."""


class Replayed(Private):
    """Notes every answer, and lets the run go on as if another had been given.

    Args:
        told: Answers of another run by name, which this one goes on with instead of its own.
        given: As for `Private`.
    """

    def __init__(self, told: Mapping[str, Any], *given: Any) -> None:
        super().__init__(*given)
        self.seen: dict[str, np.ndarray] = {}
        self.partials: dict[str, Any] = {}
        """What was summed before noise, of questions that are answered by a choice or in texts."""
        self._told = told
        self._planned = {name: self._overheard(one) for name, one in self._planned.items()}

    def _overheard(self, planned: Planned) -> Planned:
        question = _Overheard(planned.question, self._overhear)
        return dataclasses.replace(planned, question=cast(Question, question))

    def _stepper(self, name: str, *given: Any, **kind: Any) -> Callable[..., Any]:
        if name not in self._planned:
            return super()._stepper(name, *given, **kind)
        planned, numbers = self._planned[name], count()
        ask = super()._stepper(name, *given, **kind)

        def step(now: Any) -> tuple[Measurement, ...]:
            suffix = f"-{next(numbers)}" if planned.question.stepwise else ""
            names = [f"{charge.name}{suffix}" for charge in planned.charges]
            return tuple(map(self._noted, names, ask(now)))

        return step

    def _noted(self, name: str, answer: Measurement) -> Measurement:
        self.seen[name] = answer.values
        return answer._replace(values=self._told.get(name, answer.values))

    def _overhear(self, mechanism: Mechanism, partial: Any) -> None:
        charge = mechanism.charges[0]
        if charge.mechanism == "permute-and-flip":
            self.partials[charge.name] = mechanism.utilities(partial)  # type: ignore[attr-defined]
        elif isinstance(partial, Counter):
            self.partials[charge.name] = partial


class _Overheard:
    """A question whose mechanism tells what it is about to add noise to."""

    def __init__(self, question: Question, hear: Callable[[Mechanism, Any], None]) -> None:
        self._question, self._hear = question, hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._question, name)

    def calibrated(self, *given: Any, **more: Any) -> Any:
        return _OverheardMechanism(self._question.calibrated(*given, **more), self._hear)


class _OverheardMechanism:
    def __init__(self, mechanism: Mechanism, hear: Callable[[Mechanism, Any], None]) -> None:
        self._mechanism, self._hear = mechanism, hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def finish(self, partial: Any, stream: Any) -> tuple[Measurement, ...]:
        self._hear(self._mechanism, partial)
        return self._mechanism.finish(partial, stream)


@dataclass(frozen=True)
class Heard:
    """What one run was told, and what it made of it."""

    seen: Mapping[str, np.ndarray]
    partials: Mapping[str, Any]
    settled: bool
    """Whether the schema had all its bounds and values before, or was told the same as before."""
    made: str = ""
    """Digest of all that was made of the answers."""


def replayed(
    plan: Plan,
    data: Dataset,
    told: Mapping[str, Any],
    *,
    noise_seed: int = 0,
    noise: Noise | None = None,
) -> Heard:
    """Every answer that a run gets, with frozen noise, and a digest of what it makes of them."""
    assert isinstance(plan.method, AbstractMethod)
    frozen = noise or Noise.from_seed(noise_seed)
    private = Replayed(told, data, plan.questions, plan.unit, frozen)
    if plan.check is not None:
        private.ask(plan.check.question.name)
    settled = private.estimate()
    quiet = lambda phase, done: None  # noqa: E731
    if isinstance(plan.method, AbstractMeasureOnce):  # the rest sees no rows, by its signature
        made = digest_of([settled.digest, plan.method.measure(private, seed=0, progress=quiet)])
    else:
        product = plan.method.run(private, seed=0, progress=quiet)
        made = digest_of([settled.digest, product.source, product.rows, product.measurements])
    private.executed()
    return Heard(private.seen, private.partials, settled == plan.schema, made)


def digest_of(values: Any) -> str:
    """SHA-256 of all arrays and plain values in a tree."""
    found = hashlib.sha256()
    for leaf in _leaves(values):
        if isinstance(leaf, np.ndarray | jax.Array | np.generic):
            array = np.ascontiguousarray(leaf)
            found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        elif isinstance(leaf, str | bytes | int | float | bool | type(None)):
            found.update(repr(leaf).encode())
    return found.hexdigest()


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, Mapping):
        for key in sorted(values, key=str):
            yield str(key)
            yield from _leaves(values[key])
    elif dataclasses.is_dataclass(values) and not isinstance(values, type):
        for part in dataclasses.fields(values):
            yield from _leaves(getattr(values, part.name))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


@dataclass
class Replay:
    """How far the answers of a run move from some rows to neighbouring ones."""

    plan: Plan
    moved: dict[str, float] = field(default_factory=dict)
    """By charge: the farthest that any neighbour moved it, in parts of the charged sensitivity."""
    broken: list[str] = field(default_factory=list)
    """What was not as charged, in words."""
    neighbours: int = 0
    answers: int = 0
    _whole: Heard | None = None

    def __post_init__(self) -> None:
        self.charges = {charge.name: charge for charge in self.plan.charges}

    def begin(self, data: Dataset) -> Heard:
        """The run on the rows themselves: as many answers as were charged."""
        whole = self._whole = replayed(self.plan, data, {})
        counted = Counter(self.charge_of(name).name for name in whole.seen)
        for charge in self.plan.charges:
            question = planned_question(self.plan, charge.name).question
            steps = 1 if charge.mechanism == "permute-and-flip" else charge.steps
            if isinstance(question, Turns):  # a record pays for the turns of one teacher: see below
                steps = question.steps
            if counted[charge.name] != steps:
                self.broken.append(
                    f"'{charge.name}' was answered {counted[charge.name]} times and charged "
                    f"{charge.steps} times"
                )
        self.answers = len(whole.seen)
        return whole

    def compare(self, neighbour: str, data: Dataset) -> None:
        """The same on a neighbour."""
        assert self._whole is not None
        whole, other = self._whole, replayed(self.plan, data, self._whole.seen)
        self.neighbours += 1
        if other.seen.keys() != whole.seen.keys():
            self.broken.append(f"{neighbour}: other questions were asked")
        if other.made != whole.made:
            self.broken.append(f"{neighbour}: what is made of the same answers is not the same")
        squares: dict[str, float] = dict.fromkeys(self.charges, 0.0)
        for name in whole.seen.keys() & other.seen.keys():
            charge = self.charge_of(name)
            if charge.mechanism == "permute-and-flip" or whole.seen[name].dtype.kind not in "f":
                continue
            if whole.seen[name].shape != other.seen[name].shape:
                self.broken.append(f"{neighbour}: '{name}' has another shape")
                continue
            part = moved_by(charge, whole.seen[name], other.seen[name])
            self._note(neighbour, charge, name, part)
            squares[charge.name] += part**2
        for name in whole.partials.keys() & other.partials.keys():
            part = _partial_moved(whole.partials[name], other.partials[name])
            self._note(neighbour, self.charges[name], name, part / self.charges[name].sensitivity)
        for name, square in squares.items():  # more steps than were charged cost more
            if square > self.charges[name].steps * (1 + ROUNDING) ** 2:
                self.broken.append(f"{neighbour}: the steps of '{name}' move more than is charged")

    def _note(self, neighbour: str, charge: Charge, name: str, part: float) -> None:
        self.moved[charge.name] = max(self.moved.get(charge.name, 0.0), part)
        if not part <= 1 + ROUNDING:
            self.broken.append(f"{neighbour}: '{name}' moves by {part:.6g} of its sensitivity")

    def charge_of(self, answer: str) -> Charge:
        """The charge of an answer: that of step 3 of x is called x-3."""
        return self.charges.get(answer) or self.charges[answer.rsplit("-", 1)[0]]


def moved_by(charge: Charge, one: np.ndarray, two: np.ndarray) -> float:
    """How far two answers are apart in the norm of the charge (of Laplace noise L1), in parts of its
    sensitivity; not a number counts as infinitely far."""
    order = 1 if charge.mechanism == "discrete laplace" else 2
    apart = float(np.linalg.norm(np.ravel(np.asarray(one, np.float64) - two), order))
    return apart / charge.sensitivity if np.isfinite(apart) else float("inf")


def _partial_moved(one: Any, two: Any) -> float:
    """How far counts by value are apart in L2, or the farthest that a utility moved."""
    if isinstance(one, Counter):
        return float(np.linalg.norm([one[name] - two[name] for name in one.keys() | two.keys()]))
    return max(abs(a - b) for a, b in zip(one, two, strict=True)) / FINE**2


def planned_question(plan: Plan, name: str) -> Planned:
    """The question that a charge pays for."""
    return next(p for p in plan.questions if name in [c.name for c in p.charges])
