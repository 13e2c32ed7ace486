"""A paid run: the plan's whole charge is booked before any noise is drawn, and a killed run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from ..accounting import Budget, Charge
from ..data import Dataset
from ..errors import LimbeckError
from ..planning import Plan
from ..privacy import Noise, Private
from .booked import new_run
from .job import Job
from .ledger import Ledger

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class PaidRun:
    """What has been paid for: rows that answer the planned questions, and the run's randomness."""

    private: Private
    noise: Noise
    data: Dataset
    budget: Budget
    job: Job
    progress: Progress

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
        planned: What will be asked.
        data: The rows.
        ledger: Where spending is booked; by default the user's own ledger.
        noise: The run's randomness; by default a fresh secret. See `randomness`.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and begin anew.
        progress: Called with a phase and a fraction done.
        also: Whatever else sets this run apart from others with the same plan.
        parts: The charges of every run that may take place within this one.
    """
    ledger, noise = ledger or Ledger(), noise or Noise()
    if noise.law and not noise.seeded:
        raise LimbeckError("law mode is a test of the software and needs a seed.")
    with Job(ledger.jobs, _identity(planned, noise) | dict(also or {})) as job:
        booking = _Booking(job, ledger, planned, _kept_plan(planned, parts), pay_again)
        run, secret = booking.admit(data, noise, progress)
        if secret is not None:
            noise = Noise(secret=secret, seeded=noise.seeded, law=noise.law)
        private = Private(data, planned.questions, planned.unit, noise, job, progress)
        yield PaidRun(private, noise, data, planned.budget, job, progress)
        ledger.finish(run)
        job.erase()


def randomness(seed: int | None, noise: Noise | None) -> Noise:
    """What a run draws from: a fresh secret, or a seed, or what a test of the software brings."""
    if noise is not None and seed is not None:
        raise LimbeckError("Give a seed or a noise, not both.")
    return noise or (Noise() if seed is None else Noise.from_seed(seed))


@dataclass(frozen=True)
class _Booking:
    """The order of payment: plan compared, budget asked, rows read, charge on disk, then noise."""

    job: Job
    ledger: Ledger
    planned: Plan
    plan: Mapping[str, Any]
    pay_again: bool

    def admit(self, data: Dataset, noise: Noise, progress: Progress) -> tuple[str, bytes | None]:
        """Pay for the run, unless it is a killed one that was paid for and sees the same rows.

        Returns:
            The ledger's name of the run, and the secret it is resumed with, if it is.
        """
        job, ledger, plan = self.job, self.ledger, self.planned
        dataset, lifetime = plan.schema.dataset, plan.schema.lifetime
        run = new_run(dataset, plan.method.name, plan.charges, plan.cost, plan.budget.adjacency)
        left, same = job.run, job.plan == self.plan
        paid = left is not None and ledger.has(left)
        if paid and not same and not self.pay_again:
            raise LimbeckError(_another_plan(job.plan, self.plan))
        secret = job.secret() if same and not self.pay_again else None
        if secret is None:
            ledger.check(dataset, lifetime, run)  # before a row is read
        data._encoded(lambda count: progress("reading", 0.0))
        progress("reading", 1.0)
        if secret is not None and left is not None and job.matches(data._digest(secret)):
            if not paid:  # killed between writing the state and booking the charge
                ledger.charge(lifetime, replace(run, id=left))
            return left, secret
        if left is not None:  # never lose the old state for a run that cannot be paid
            ledger.check(dataset, lifetime, run)
        job.clear()
        job.begin(run.id, noise.secret, data._digest(noise.secret), self.plan)
        try:
            ledger.charge(lifetime, run, instead_of=left)
        except LimbeckError:
            job.erase()
            raise
        return run.id, None


def _identity(planned: Plan, noise: Noise) -> dict[str, object]:
    """What the user asked for: by it an unfinished run is found again."""
    return {
        "schema": planned.schema.digest,
        "method": planned.method.name,
        "settings": planned.method.settings(),
        "budget": vars(planned.budget),
        "seed": hashlib.sha256(noise.secret).hexdigest() if noise.seeded else None,
        "law": noise.law,
    }


def _kept_plan(planned: Plan, parts: Sequence[Sequence[Charge]]) -> dict[str, Any]:
    """What an unfinished run must have in common with the one that resumes it."""
    charges = [[c.facts() for c in several] for several in (planned.charges, *parts)]
    return {
        "charges": hashlib.sha256(json.dumps(charges, sort_keys=True).encode()).hexdigest(),
        "measurements": sorted({c["name"] for several in charges for c in several}),
        "software": f"limbeck {version('limbeck')}",
    }


def _another_plan(kept: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    before, this = (
        f"plan {plan['charges'][:12]} ({', '.join(plan['measurements'])}) of {plan['software']}"
        if plan
        else "a plan that an older version of limbeck did not keep"
        for plan in (kept, now)
    )
    return (
        f"An unfinished run of the same settings was paid for with {before}; this is {this}. Answers "
        "of two plans cannot be mixed. Finish it with what began it, or give it up and pay for a new "
        "one: --pay-again (pay_again=True)."
    )
