"""Private choice of settings: a few declared candidates, tried within the budget.

The honest alternative to trying settings and looking at the test rows. Where all candidates are
made from the same measurements, these are paid for once and only the noisy comparison is charged
besides. Otherwise candidates are run in turn, as often as a random number says; the whole of it is
charged beforehand, and the losing runs are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..accounting import STOPPING, Budget, Charge, draw_runs, stopping_cost
from ..data import Dataset
from ..errors import LimbeckError, fraction
from ..evaluation import Linear, LinearNumber, learn, released_data
from ..ledger import Ledger, PaidRun, paid_run, randomness
from ..methods import AbstractMeasureOnce, AbstractMethod, Product
from ..planning import CHOICE, Plan, plan, plan_stopping
from ..privacy import Noise
from ..progress import Progress
from ..release import (
    Drawn,
    Release,
    check_before_publishing,
    check_target,
    drawn,
    make_certificate,
    schema_check_section,
)
from .distilling import check_read, release_size

MOST = 32
"""Candidates, at most: a choice among many is a search, and wants more noise than it gains."""

TENTH = 0.1
"""Part of a target's declared range by which a prediction is wrong altogether."""

CANDIDATES = "candidates"
"""The one phase that is shown while randomly many candidates are run."""


class Right(eqx.Module):
    """Which of several linear classifiers get a row right, (rows, classifiers).

    Several are compared by their differences: each row's mean is taken out, which leaves a norm of
    at most half the root of their number.
    """

    weights: Array
    features: Any = None
    groups: int = eqx.field(static=True, default=1)

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def norm_bound(self) -> float:
        return 1.0 if self.size == 1 else float(np.sqrt(self.size)) / 2

    @property
    def chunk(self) -> int:
        return getattr(self.features, "chunk", 0)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        if self.features is None:
            phi = jnp.concatenate([rows, jnp.ones((len(rows), 1), rows.dtype)], axis=1)
        else:
            phi = self.features(rows)
        said = jnp.einsum("rf,kfc->rkc", phi, self.weights).argmax(axis=2)
        right = (said == labels[:, None]).astype(jnp.float32)
        if self.size > 1:
            right = right - right.mean(axis=1, keepdims=True)
        return right, jnp.zeros_like(labels)


class Near(eqx.Module):
    """How near several predictions of a target come to a row's, (rows, predictions): 1 at no error, 0
    from a tenth of the declared range on, in the declared scale. Compared as `Right`."""

    weights: Array
    at: int = eqx.field(static=True)
    groups: int = eqx.field(static=True, default=1)

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def norm_bound(self) -> float:
        return 1.0 if self.size == 1 else float(np.sqrt(self.size)) / 2

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        said = rows @ self.weights[:, :-1].T + self.weights[:, -1]
        near = jnp.clip(1 - jnp.abs(said - rows[:, self.at : self.at + 1]) / TENTH, 0.0, 1.0)
        if self.size > 1:
            near = near - near.mean(axis=1, keepdims=True)
        return near, jnp.zeros_like(labels)


def _compared(learned: Sequence[Linear | LinearNumber]) -> Right | Near:
    """The map that says of each row which of several predictions are good."""
    first = learned[0]
    weights = jnp.stack([one.weights for one in learned])
    if isinstance(first, LinearNumber):
        return Near(weights, first.at)
    return Right(weights, first.features)


@dataclass(frozen=True, eq=False)
class Try:
    """A candidate that was made: its release, but for the certificate."""

    method: AbstractMethod
    product: Product
    drawn: Drawn
    learned: Linear | LinearNumber
    learner: str


def tune(
    data: Dataset,
    candidates: Sequence[AbstractMethod],
    budget: Budget | float,
    *,
    out: str | Path | None = None,
    rows: int | None = None,
    share: float = 0.1,
    seed: int | None = None,
    force: bool = False,
    ledger: Ledger | None = None,
    settings_source: str = "declared candidates, chosen privately",
    progress: Progress = lambda phase, done: None,
    noise: Noise | None = None,
    pay_again: bool = False,
    check: bool = True,
) -> Release:
    """Make a release with the best of a few declared settings, all of it within one budget.

    A candidate's score is how many of the data set's rows a fixed learner, trained on what the
    candidate released, gets right: counted with noise, never shown without it.

    Args:
        data: The rows with their schema.
        candidates: One method with different settings, two or more.
        budget: Pays for everything: what is released, and the choice. Epsilon alone will do.
        out: Folder for the release of the candidate that won; the others are never written.
        rows: How many rows to release; by default as many as the schema declares.
        share: Part of the budget for comparing.
        seed: Reproducible noise, for tests and benchmarks. Stamped "not for release".
        force: Replace an existing release at `out`.
        ledger: Where spending is booked; by default the user's own ledger.
        settings_source: Where the candidates came from, for the certificate.
        progress: Called with a phase and a fraction done.
        noise: Instead of a seed: the randomness that a test of the software brings.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and pay anew.
        check: Whether to hold the file against its schema first, with noise, as `distill` does. Not done
            where candidates measure different things and randomly many are run: the certificate says so.
    """
    fraction(share=share)
    budget = _checked(data, candidates, budget)
    if out is not None:
        check_target(Path(out), force=force)
    facts = {"candidates": [{"settings": m.settings()} for m in candidates], "share": share}
    task = _Task(
        data=data,
        candidates=candidates,
        budget=budget,
        share=share,
        rows=rows,
        source=settings_source,
        check=check,
        paying={
            "ledger": ledger,
            "noise": randomness(seed, noise),
            "pay_again": pay_again,
            "progress": progress,
            "also": facts,
        },
        store=lambda release: release.save(out, force=force) if out is not None else None,
    )
    return _from_measurements(task) if _free(candidates) else _by_stopping(task)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """A choice that was asked for."""

    data: Dataset
    candidates: Sequence[AbstractMethod]
    budget: Budget
    share: float
    rows: int | None
    source: str
    paying: Mapping[str, Any]
    """How the run is paid for, as `paid_run` takes it."""
    check: bool
    """Whether to hold the file against its schema first; not where randomly many candidates are run."""
    store: Callable[[Release], object]
    """Write the winner where it was wanted; called before the run's state is erased."""


def _checked(data: Dataset, candidates: Sequence[AbstractMethod], given: Budget | float) -> Budget:
    """The budget that is meant; refuses what cannot be chosen from."""
    check_read(data)
    if data.engine is not None:
        raise LimbeckError(
            f"Candidates are compared on this machine, and the rows are elsewhere (engine "
            f"'{data.engine_name}'). Choose the settings yourself, or tune on a part of the rows."
        )
    budget = Budget.of(given, data.schema.units)
    if not 2 <= len(candidates) <= MOST:
        raise LimbeckError(
            f"Expected 2 to {MOST} candidates to choose from, got {len(candidates)}."
        )
    if len({m.name for m in candidates}) > 1:
        raise LimbeckError("Candidates are settings of one method; got several methods.")
    if candidates[0].makes != "rows":
        raise LimbeckError(
            f"Candidates are compared by the rows they release, and {candidates[0].name} makes a model."
        )
    if any(m == n for i, m in enumerate(candidates) for n in candidates[:i]):
        raise LimbeckError("Two candidates are the same.")
    if not budget.private:
        raise LimbeckError("Choosing settings is for runs with a finite epsilon.")
    if data.schema.target is None and (data.schema.label is None or len(data.schema.classes) < 2):
        raise LimbeckError(
            "Candidates are compared by what they predict; the schema declares no label and no target."
        )
    return budget


def _free(candidates: Sequence[AbstractMethod]) -> bool:
    """Whether one set of measurements serves all candidates."""
    first = candidates[0]
    if not isinstance(first, AbstractMeasureOnce):
        return False
    fixed = [{k: v for k, v in m.settings().items() if k not in first.free} for m in candidates]
    return all(f == fixed[0] for f in fixed)


def _from_measurements(task: _Task) -> Release:
    candidates = task.candidates
    choice = len(candidates), task.share
    planned = plan(candidates[0], task.data.schema, task.budget, choice=choice, check=task.check)
    with paid_run(planned, task.data, **task.paying) as paid:
        private, progress = paid.private, task.paying["progress"]
        schema, seed = private.estimate(), paid.noise.public_seed("method")
        first = candidates[0]
        assert isinstance(first, AbstractMeasureOnce)
        measured = first.measure(private, seed=seed, progress=progress)
        tries = []
        for number, method in enumerate(candidates):
            assert isinstance(method, AbstractMeasureOnce)
            its_progress = _named(progress, number, len(candidates))
            product = method.distill(schema, measured, seed=seed, progress=its_progress)
            tries.append(_tried(paid, method, product, task.rows))
        right = private.ask(CHOICE, _compared([t.learned for t in tries])).values[0]
        best = tries[int(np.argmax(right))]
        chosen = {
            "way": "one set of measurements",
            "learner": best.learner,
            "share": task.share,
            "mean_runs": None,
            "candidates": [{"settings": m.settings(), "charges": []} for m in candidates],
        }
        release = _release(
            paid, replace(planned, method=best.method), best, task.source, chosen, seed
        )
        task.store(release)
    return release


def _by_stopping(task: _Task) -> Release:
    mean, budget = float(len(task.candidates)), task.budget
    plans = plan_stopping(task.candidates, task.data.schema, budget, share=task.share, mean=mean)
    alternatives = [p.charges for p in plans]
    whole = Charge(name=STOPPING, mechanism=STOPPING, sensitivity=1.0, coordinates=1)
    planned = replace(
        plans[0],
        questions=(),
        charges=(whole,),
        shares=(1.0,),
        cost=stopping_cost(alternatives, budget, mean),
    )
    with paid_run(planned, task.data, **task.paying, parts=alternatives) as paid:
        coins = paid.noise.stream(STOPPING)
        count = draw_runs(coins, mean)
        # The price holds for the winner alone: how many were run is never told, neither by phases
        # nor by how often a bar fills.
        silent = replace(paid, progress=_silent)
        task.paying["progress"](CANDIDATES, 0.0)
        best: tuple[float, Plan, PaidRun, Try, int] | None = None
        for number in range(count):
            this = plans[coins.below(len(plans))]
            part = silent.part(f"run {number}", this)
            private, seed = part.private, part.noise.public_seed("method")
            private.estimate()
            method = this.method
            assert isinstance(method, AbstractMethod)
            product = method.run(private, seed=seed, progress=_silent)
            candidate = _tried(part, method, product, task.rows)
            score = float(private.ask(CHOICE, _compared([candidate.learned])).values[0, 0])
            private.executed()
            if best is None or score > best[0]:
                best = score, this, part, candidate, seed
        task.paying["progress"](CANDIDATES, 1.0)
        assert best is not None
        _, this, part, candidate, seed = best
        chosen = {
            "way": STOPPING,
            "learner": candidate.learner,
            "share": task.share,
            "mean_runs": mean,
            "candidates": [
                {"settings": p.method.settings(), "charges": [c.facts() for c in p.charges]}
                for p in plans
            ],
        }
        release = _release(
            part, replace(this, cost=planned.cost), candidate, task.source, chosen, seed
        )
        task.store(release)
    return release


def _tried(paid: PaidRun, method: AbstractMethod, product: Product, rows: int | None) -> Try:
    """What the candidate would release, and what the learner makes of it."""
    schema = paid.private.schema
    count = rows or release_size(product, schema)
    came = drawn(schema, product.row_source, count, seed=paid.noise.public_seed("rows"))
    bare = Release(schema=schema, certificate={}, data=came.data, source=product.row_source)
    learned, name = learn(released_data(bare, rules=True))  # encoded as the rows in `Private` are
    return Try(method, product, came, learned, name)


def _release(
    paid: PaidRun, planned: Plan, best: Try, source: str, chosen: Mapping[str, Any], seed: int
) -> Release:
    schema = paid.private.schema
    certificate = make_certificate(
        planned,
        paid.private.executed(),
        schema,
        float_sums=paid.private.float_sums,
        seeded=paid.noise.seeded,
        law=paid.noise.law,
        source=source,
        public_seed=seed,
        rows_seed=paid.noise.public_seed("rows"),
        chosen_among=chosen,
        check=schema_check_section(planned, paid.looks, paid.fits),
    )
    check_before_publishing(certificate, schema, type(best.method), best.product.measurements)
    return Release(
        schema=schema,
        certificate=best.drawn.told_in(certificate, schema),
        data=best.drawn.data,
        source=best.product.row_source,
        measurements=best.product.measurements,
    )


def _named(progress: Progress, number: int, total: int) -> Progress:
    prefix = f"candidate {number + 1} of {total}"
    return lambda phase, done: progress(f"{prefix}, {phase}", done)


def _silent(phase: str, done: float) -> None:
    """Progress that nobody sees."""
