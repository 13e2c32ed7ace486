"""A paid run: what is asked is booked before its noise is drawn, and a killed run resumes.

First the noisy check of the schema, if one is planned, is booked alone and asked. Where it finds a column
that is mostly unusable or has gaps nobody declared, or hardly any rows, the run ends there. Else all charges are booked before anything else is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..accounting import Budget, Charge
from ..data import Dataset
from ..errors import LimbeckError
from ..planning import Plan, check_carried
from ..privacy import Noise, Private
from ..progress import Progress
from ..schema import Fit, fits_of
from .booked import Run, planned_run
from .identity import another_plan, identity, kept_plan
from .job import Job
from .ledger import Ledger
from .schema_check import STOPPED, misfit, misfits, warn_of_misfits


@dataclass(frozen=True, eq=False)
class PaidRun:
    """What has been paid for: rows that answer the planned questions, and the run's randomness."""

    private: Private
    noise: Noise
    data: Dataset
    budget: Budget
    job: Job
    progress: Progress
    looks: tuple[str, ...]
    """When the owner looked at the rows without noise."""
    fits: tuple[Fit, ...] = ()
    """What the noisy check found of each column."""

    def part(self, name: str, planned: Plan) -> PaidRun:
        """A run within this one, with noise and kept answers of its own; this one pays for it."""
        noise, answers = self.noise.part(name), self.job.part(name)
        private = Private(self.data, planned.questions, planned.unit, noise, answers, self.progress)
        return replace(self, private=private, noise=noise)


@contextmanager
def paid_run(
    planned: Plan,
    data: Dataset,
    *,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
    pay_again: bool = False,
    progress: Progress = lambda phase, done: None,
    also: Mapping[str, object] | None = None,
    parts: Sequence[Sequence[Charge]] = (),
) -> Iterator[PaidRun]:
    """Pay for a plan and hold its rows; what the body stores is safe when its state is erased.

    A body that fails leaves the state of the run behind: the same call resumes it, pays nothing
    more and gets the same answers. Another plan or version of limbeck than began it is refused.

    Args:
        planned, data: What will be asked, of which rows.
        ledger: Where spending is booked; by default the user's own ledger.
        noise: The run's randomness; by default a fresh secret. See `randomness`.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and begin anew.
        progress: Called with a phase and a fraction done.
        also: Whatever else sets this run apart from others with the same plan.
        parts: The charges of every run that may take place within this one.
    """
    check_carried([p.question for p in planned.questions], planned.method, data.engine_name)
    ledger, noise = ledger or Ledger(), noise or Noise()
    if noise.law and not noise.seeded:
        raise LimbeckError("law mode is a test of the software and needs a seed.")
    with Job(ledger.jobs, identity(planned, noise) | dict(also or {})) as job:
        booking = _Booking(job, ledger, planned, kept_plan(planned, parts), pay_again)
        run, secret = booking.admit(data, noise, progress)
        if secret is not None:
            noise = Noise(secret=secret, seeded=noise.seeded, law=noise.law)
        private = Private(data, planned.questions, planned.unit, noise, job, progress)
        fits = booking.settle(run, private)
        looks = tuple(ledger.looks().get(planned.schema.dataset, ()))
        yield PaidRun(private, noise, data, planned.budget, job, progress, looks, fits)
        ledger.finish(run)
        job.erase()


def randomness(seed: int | None, noise: Noise | None) -> Noise:
    """What a run draws from: a fresh secret, or a seed, or what a test of the software brings."""
    if noise is not None and seed is not None:
        raise LimbeckError("Give a seed or a noise, not both.")
    return noise or (Noise() if seed is None else Noise.from_seed(seed))


@dataclass(frozen=True)
class _Booking:
    """The order of payment: plan compared, budget asked, rows read, charge on disk, then noise; the
    check's first, alone."""

    job: Job
    ledger: Ledger
    planned: Plan
    plan: Mapping[str, Any]
    pay_again: bool

    def admit(self, data: Dataset, noise: Noise, progress: Progress) -> tuple[str, bytes | None]:
        """Pay for the run, unless it is a killed one that was paid for and sees the same rows. Returns
        the ledger's name of the run, and the secret it is resumed with, if it is."""
        job, ledger, plan = self.job, self.ledger, self.planned
        dataset, lifetime = plan.schema.dataset, plan.schema.lifetime
        run, left, same = planned_run(self.planned), job.run, job.plan == self.plan
        paid = left is not None and bool(ledger.booked(left))
        if paid and not same and not self.pay_again:
            raise another_plan(job.plan, self.plan)
        secret = job.secret() if same and not self.pay_again else None
        if secret is None:
            ledger.check(dataset, lifetime, run)  # before a row is read
        data._encoded(lambda count: progress("reading", 0.0))
        progress("reading", 1.0)
        if secret is not None and left is not None and job.matches(data._digest(secret)):
            if not paid:  # killed between writing the state and booking the charge
                ledger.charge(lifetime, self._first(replace(run, id=left)))
            return left, secret
        if left is not None:  # never lose the old state for a run that cannot be paid
            ledger.check(dataset, lifetime, run)
        job.clear()
        job.begin(run.id, noise.secret, data._digest(noise.secret), self.plan)
        try:
            ledger.charge(lifetime, self._first(run), instead_of=left)
        except LimbeckError:
            job.erase()
            raise
        return run.id, None

    def settle(self, run: str, private: Private) -> tuple[Fit, ...]:
        """Ask the check, and pay for the rest if no column stops the run."""
        check, plan = self.planned.check, self.planned
        if check is None:
            return ()
        answer = private.ask(check.question.name)
        columns = plan.schema.columns
        fits = fits_of(columns, answer.values.reshape(len(columns), -1), answer.noise)
        if self.ledger.booked(run) == plan.charges:  # resumed: it was decided before
            return fits
        try:
            if reasons := misfits(fits, plan.schema):
                self.ledger.finish(run, STOPPED)
                raise misfit(reasons, plan.check_cost)
            self.ledger.charge(plan.schema.lifetime, replace(planned_run(plan), id=run))
        except LimbeckError:
            self.job.erase()
            raise
        warn_of_misfits(fits)
        return fits

    def _first(self, run: Run) -> Run:
        """What is booked first: the check alone, if there is one."""
        check, price = self.planned.check, self.planned.check_cost
        return run if check is None else replace(run, charges=check.charges, epsilon=price.epsilon)
