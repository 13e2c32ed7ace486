"""A paid run: the plan's whole charge is booked before any noise is drawn, and a killed run resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ._check import LimbeckError
from ._data import Dataset
from ._plan import Plan
from .privacy import Budget, Job, Ledger, Noise, Private, new_run

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
    seed: int | None = None,
    law: bool = False,
    progress: Progress = lambda phase, done: None,
    also: Mapping[str, object] | None = None,
) -> Iterator[PaidRun]:
    """Pay for a plan and hold its rows; what the body stores is safe when its state is erased.

    A body that fails leaves the state of the run behind: the same call resumes it, pays nothing
    more and gets the same answers.

    Args:
        planned: What will be asked.
        data: The rows.
        ledger: Where spending is booked; by default the user's own ledger.
        seed: Reproducible noise, for tests and benchmarks.
        law: For tests of the software, with a seed: `Private` answers with its noise alone.
        progress: Called with a phase and a fraction done.
        also: Whatever else sets this run apart from others with the same plan.
    """
    ledger = ledger or Ledger()
    if law and seed is None:
        raise LimbeckError("law mode is a test of the software and needs a seed.")
    noise = Noise() if seed is None else Noise.from_seed(seed, law=law)
    with Job(ledger.jobs, _identity(planned, seed, noise) | dict(also or {})) as job:
        run, resumed = _admit(job, ledger, planned, data, noise, progress)
        if resumed is not None:
            noise = Noise(secret=resumed, seeded=noise.seeded, law=noise.law)
        private = Private(data, planned.questions, planned.unit, noise, job, progress)
        yield PaidRun(private, noise, data, planned.budget, job, progress)
        ledger.finish(run)
        job.erase()


def _admit(
    job: Job, ledger: Ledger, planned: Plan, data: Dataset, noise: Noise, progress: Progress
) -> tuple[str, bytes | None]:
    """Pay for the run, unless it is a killed one that was paid for and sees the same rows."""
    schema, budget = planned.schema, planned.budget
    run = new_run(
        schema.dataset, planned.method.name, planned.charges, planned.cost, budget.adjacency
    )
    secret = job.secret()
    if secret is None:
        ledger.check(schema.dataset, schema.lifetime, run)  # before a row is read
    data._encoded(lambda count: progress("reading", 0.0))
    progress("reading", 1.0)
    if secret is not None and job.run is not None and job.matches(data._digest(secret)):
        if not ledger.has(job.run):  # killed between writing the state and booking the charge
            ledger.charge(schema.lifetime, replace(run, id=job.run))
        return job.run, secret
    job.clear()
    job.begin(run.id, noise.secret, data._digest(noise.secret))
    try:
        ledger.charge(schema.lifetime, run)
    except LimbeckError:
        job.erase()
        raise
    return run.id, None


def _identity(planned: Plan, seed: int | None, noise: Noise) -> dict[str, object]:
    return {
        "schema": planned.schema.digest,
        "method": planned.method.name,
        "settings": planned.method.settings(),
        "budget": vars(planned.budget),
        "seed": seed,
        "law": noise.law,
    }
