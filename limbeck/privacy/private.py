"""`Private`: the only holder of rows. Every answer is noised and was charged before it is given.

A run is planned first: questions, their noise calibrated together, booked in the ledger. `Private`
answers each as it was planned and no more often. It knows no kind of question: a question brings the
mechanism that clips, sums and noises, and the charges that pay for it. Methods can only ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..accounting import Charge
from ..data import Dataset
from ..errors import DataError
from ..progress import Progress
from ..schema import Schema
from .estimate import estimated
from .kept import Answers, KeptAnswers
from .map_spec import build_map, map_digest, public_digest
from .measurement import Measurement
from .noise import Noise
from .question import Planned, Question, RowAccess, State, Unit

Step = Callable[[State], tuple[Measurement, ...]]
NOTHING: State = {}
"""The state of a question that no earlier answer has shaped."""


class Private:
    """Holds the rows of one run and answers the questions about them that were planned and paid for.

    Args:
        data: The rows.
        planned: What may be asked, and the charges that pay for it.
        unit: Whose presence is hidden.
        noise: The run's randomness.
        answers: Where noisy answers are kept; None: nowhere.
        progress: Called with a phase and a fraction done.
    """

    def __init__(
        self,
        data: Dataset,
        planned: Sequence[Planned],
        unit: Unit,
        noise: Noise,
        answers: Answers | None = None,
        progress: Progress = lambda phase, done: None,
    ) -> None:
        self._data, self._unit, self._noise = data, unit, noise
        self._answers = KeptAnswers(answers)
        person = data.schema.person
        declared = (False, 1) if person is None else (True, person.rows_at_most)
        if (unit.person, unit.rows_at_most) != declared:
            raise RuntimeError("the unit of the plan is not the one that the schema declares")
        self._key = b"" if person is None else noise.stream("rows of persons").words(8).tobytes()
        self._planned = {p.question.name: p for p in planned}
        names = [charge.name for p in planned for charge in p.charges]
        if len(set(names)) < len(names) or len(self._planned) < len(planned):
            raise RuntimeError("two charges of a plan have the same name")
        for p in planned:
            _check_priced(p, unit)
        self._asked: dict[str, int] = {}
        self._progress = progress
        self.schema = data.schema
        self.float_sums: list[str] = []
        """Measurements so far whose sums were taken in float64, with a proven margin."""

    def __repr__(self) -> str:
        return f"Private({self.schema.dataset!r})"

    # ---- the verbs ----------------------------------------------------------------------------

    def ask(self, name: str, row_map: Any = None, state: State = NOTHING) -> Measurement:
        """The noisy answer to a planned question.

        Args:
            name: Of the question; what is asked, clipped and noised is as it was planned.
            row_map: What is asked about each row: a `MapSpec`; or a map, for this machine alone.
            state: Public values that earlier answers decided; the map is built with them.
        """
        (answer,) = self._stepper(name, row_map, state, stepwise=False)(NOTHING)
        return answer

    @contextmanager
    def steps(self, name: str, row_map: Any, state: State = NOTHING) -> Iterator[Step]:
        """A function that answers one step of a planned question, with that step's public state. It
        is to be called just as often as was planned."""
        yield self._stepper(name, row_map, state, stepwise=True)

    def noise_of(self, name: str) -> float:
        """Scale of the noise that the answer to a planned question will have: public."""
        return self._planned[name].charges[-1].noise

    def step_count(self, name: str) -> int:
        """How often a planned question is to be asked."""
        return self._planned[name].question.steps

    def estimate(self) -> Schema:
        """Settle, with the planned part of the budget, every bound and value the schema asks for: from
        here on rows are encoded with what was found. Returns the settled schema."""
        if self.schema.estimated_names:
            again = self._data.with_schema(self.schema.resolve(estimated(self)))
            if again._content() != self._data._content():
                raise DataError("The data changed while they were being read. Run again.")
            self._data, self.schema = again, again.schema
        return self.schema

    def executed(self) -> list[Charge]:
        """The charges that were carried out; a plan that was not carried out in full is an error."""
        for name, planned in self._planned.items():
            wanted, done = planned.question.steps, self._asked.get(name, 0)
            if done != wanted:
                raise RuntimeError(f"'{name}': {wanted} planned, {done} done")
        return [charge for p in self._planned.values() for charge in p.charges]

    # ---- how a question is answered -------------------------------------------------------------

    def _stepper(self, name: str, spec: Any, state: State, *, stepwise: bool) -> Step:
        planned = self._planned.get(name)
        if planned is None:
            raise RuntimeError(f"'{name}' was not planned, so it cannot be measured")
        question = planned.question
        if question.stepwise != stepwise:
            raise RuntimeError(f"'{name}' was planned as another kind of question")
        row_map, digest = build_map(spec, self.schema, state), map_digest(spec, state)
        mechanism = question.calibrated(planned.charges, self._unit, row_map)
        if not question.exact(row_map):
            self.float_sums += [charge.name for charge in planned.charges]
        progress = self._progress_of(question)
        access = RowAccess(data=self._data, noise=self._noise, progress=progress, key=self._key)
        engine = self._data.engine
        if engine is None:
            session = mechanism.session(access, row_map)
        else:  # the rows are elsewhere: what is asked of them goes there
            session = engine.prepare(planned, self._unit, self.schema, spec, state, access)

        def step(now: State) -> tuple[Measurement, ...]:
            number, asked = self._count(question), public_digest(digest, now)
            answers = self._answers.load(planned, number, asked)
            if answers is None:
                partial = session.partial(number, now)
                if self._noise.law:  # a test of the software: the answer is noise alone
                    partial = mechanism.zero()
                suffix = f"/{number}" if stepwise else ""
                answers = mechanism.finish(partial, lambda c: self._noise.stream(c.name + suffix))
                self._answers.save(planned, number, asked, answers)
            else:
                session.skip(number, now)
            self._progress(name, (number + 1) / question.steps)
            return answers

        return step

    def _progress_of(self, question: Question) -> Callable[[float], None]:
        name = question.name
        return lambda done: self._progress(name, (self._asked[name] - 1 + done) / question.steps)

    def _count(self, question: Question) -> int:
        """The number of the step that is about to be answered."""
        done = self._asked.get(question.name, 0)
        if done >= question.steps:
            raise RuntimeError(f"'{question.name}' was measured {done} times, as planned, already")
        self._asked[question.name] = done + 1
        return done


def _check_priced(planned: Planned, unit: Unit) -> None:
    """A question is answered at the price of its own charges, whatever their noise; no sampling,
    mechanism or number of steps is credited to one that does not use it. And the noise is known."""
    given, wanted = (
        [replace(charge, noise_multiplier=0.0) for charge in charges]
        for charges in (planned.charges, planned.question.charges(unit))
    )
    if given != wanted:
        raise RuntimeError(f"'{planned.question.name}' was planned as another kind of question")
    if not all(charge.noise_multiplier >= 0 for charge in planned.charges):  # NaN: never calibrated
        raise RuntimeError(f"'{planned.question.name}' was planned without noise")
