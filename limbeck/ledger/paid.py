"""A paid run: the plan's whole charge is booked before any noise is drawn, and a killed run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..accounting import Budget, Charge
from ..data import Dataset
from ..errors import LimbeckError
from ..methods import origin
from ..planning import Plan
from ..privacy import Noise, Private
from ..progress import Progress
from .job import Job
from .ledger import Ledger, new_run


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
    more and gets the same answers.

    Args:
        planned: What will be asked.
        data: The rows.
        ledger: Where spending is booked; by default the user's own ledger.
        noise: The run's randomness; by default a fresh secret. See `randomness`.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and begin anew.
        progress: Called with a phase and a fraction done.
        also: Whatever else sets this run apart from others with the same plan.
        parts: The charges of every run that may take place within this one.

    Raises:
        LimbeckError: Another plan, or another version of limbeck, began this run.
    """
    ledger, noise = ledger or Ledger(), noise or Noise()
    if noise.law and not noise.seeded:
        raise LimbeckError("law mode is a test of the software and needs a seed.")
    with Job(ledger.jobs, _identity(planned, noise) | dict(also or {})) as job:
        booking = _Booking(job, ledger, planned, _kept_plan(planned, parts), pay_again)
        run, resumed = booking.admit(data, noise, progress)
        if resumed is not None:
            noise = Noise(secret=resumed, seeded=noise.seeded, law=noise.law)
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
        job, ledger, schema = self.job, self.ledger, self.planned.schema
        run = new_run(
            schema.dataset,
            self.planned.method.name,
            self.planned.charges,
            self.planned.cost,
            self.planned.budget.adjacency,
        )
        paid = job.run is not None and ledger.has(job.run)
        same = job.plan == self.plan
        if paid and not same and not self.pay_again:
            raise LimbeckError(_another_plan(job.plan, self.plan))
        secret = job.secret() if same and not self.pay_again else None
        if secret is None:
            ledger.check(schema.dataset, schema.lifetime, run)  # before a row is read
        data._encoded(lambda count: progress("reading", 0.0))
        progress("reading", 1.0)
        if secret is not None and job.run is not None and job.matches(data._digest(secret)):
            if not paid:  # killed between writing the state and booking the charge
                ledger.charge(schema.lifetime, replace(run, id=job.run))
            return job.run, secret
        left = job.run
        if left is not None:  # never lose the old state for a run that cannot be paid
            ledger.check(schema.dataset, schema.lifetime, run)
        job.clear()
        job.begin(run.id, noise.secret, data._digest(noise.secret), self.plan)
        try:
            ledger.charge(schema.lifetime, run, instead_of=left)
        except LimbeckError:
            job.erase()
            raise
        return run.id, None


def _identity(planned: Plan, noise: Noise) -> dict[str, object]:
    """What the user asked for: by it an unfinished run is found again."""
    seed = hashlib.sha256(noise.secret).hexdigest() if noise.seeded else None
    return {
        "schema": planned.schema.digest,
        "method": planned.method.name,
        "settings": planned.method.settings(),
        "budget": vars(planned.budget),
        "seed": seed,
        "law": noise.law,
    }


def _kept_plan(planned: Plan, parts: Sequence[Sequence[Charge]]) -> dict[str, Any]:
    """What an unfinished run must have in common with the one that resumes it."""
    charges = [[c.facts() for c in several] for several in (planned.charges, *parts)]
    text = json.dumps(charges, sort_keys=True)
    return {
        "charges": hashlib.sha256(text.encode()).hexdigest(),
        "measurements": sorted({c["name"] for several in charges for c in several}),
        "software": _software(planned),
    }


def _software(planned: Plan) -> str:
    """Every package, with its version, whose code asks or answers."""
    kinds: list[type] = [Plan, type(planned.method), *(type(p.question) for p in planned.questions)]
    made_by = [origin(kind) for kind in kinds]
    return ", ".join(sorted({f"{package['name']} {package['version']}" for package in made_by}))


def _another_plan(kept: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    def told(plan: Mapping[str, Any]) -> str:
        if not plan:
            return "a plan that an older version of limbeck did not keep"
        names = ", ".join(plan["measurements"])
        return f"plan {plan['charges'][:12]} ({names}) of {plan['software']}"

    return (
        f"An unfinished run of the same settings was paid for with {told(kept)}; this is {told(now)}. "
        "Answers of two plans cannot be mixed. Finish it with what began it, or give it up and pay "
        "for a new one: pass pay_again=True."
    )
