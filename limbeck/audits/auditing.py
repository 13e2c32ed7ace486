"""`audit`: does a method, or a release, keep what it claims? On made-up rows, never on the owner's."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..accounting import Budget
from ..data import read
from ..errors import LimbeckError, ReleaseError
from ..methods import METHODS, AbstractMeasureOnce, AbstractMethod
from ..planning import Plan, choice_of, plan
from ..privacy import Gradients, Noise, Planned
from ..progress import Progress
from ..release import certificate_digest, load, verify
from ..schema import Category, Column, Numeric, Schema
from ..version import __version__
from .bounds import AT_DELTA, CONFIDENCE
from .noise_checks import checked_noise
from .one_run import CanaryRun, attacked_release, one_run
from .replay import Replay, Replayed
from .result import Audit, Finding
from .rows import generated_rows, made_for, neighbours
from .small import small_method
from .tight import tight

BUDGET = Budget(4.0, 1e-5)
"""Of audits of a method: neither so small that many more draws were needed, nor so large that hardly any
answer says 'absent'."""
ROWS = 12
"""Made-up rows whose neighbours are tried."""
QUICK_NEIGHBOURS = 4
QUICK_TRIALS = 60_000
QUICK_NUMBERS = 6_000_000


@dataclass(frozen=True)
class _Subject:
    """What is audited: a plan, and where it came from."""

    plan: Plan
    also: tuple[Planned, ...] = ()
    """Questions that are asked after the method's own: the choice among candidates."""
    release: str | None = None
    note: str = ""


def audit(
    subject: AbstractMethod | str | Path,
    *,
    schema: Schema | None = None,
    budget: Budget | float | None = None,
    quick: bool = False,
    parts: Sequence[str] = ("replay", "noise", "draws", "one run", "release"),
    seed: int = 0,
    progress: Progress = lambda phase, done: None,
) -> Audit:
    """Try to show that a method spends more than it claims, on rows that are made up for it.

    Args:
        subject: A method; the name of one, which is run with few steps; or the folder of a release,
            of which method, settings, schema and budget are taken from the certificate.
        schema: Of the rows that are made up; by default a table of usual columns, or small images.
        budget: What a run of the method claims; by default epsilon 4 at delta 1e-5.
        quick: Fewer neighbours and draws.
        parts: Which parts: replay, noise, draws, one run, release.
        seed: Of rows, coins and noise: the same audit finds the same.
        progress: Called with a phase and a fraction done.

    Returns:
        The findings, part by part; `holds` says whether any contradicts the claim.
    """
    of = _subject(subject, schema, budget)
    canaries = functools.cache(
        lambda: CanaryRun.of(of.plan, quick=quick, seed=seed, progress=progress)
    )
    made: dict[str, Callable[[], Finding]] = {
        "replay": lambda: _replay(of, quick, seed, progress),
        "noise": lambda: _noise(of, seed, progress),
        "draws": lambda: _draws(of, quick, seed, progress),
        "one run": lambda: one_run(canaries()),
        "release": lambda: attacked_release(canaries(), seed=seed),
    }
    if unknown := set(parts) - set(made):
        raise LimbeckError(f"An audit has no part '{min(unknown)}'. It has: {', '.join(made)}.")
    findings = tuple(find() for part, find in made.items() if part in parts)
    planned = of.plan
    return Audit(
        method=planned.method.name,
        settings=planned.method.settings(),
        epsilon=planned.budget.epsilon,
        delta=planned.budget.delta,
        adjacency=planned.budget.adjacency,
        unit="person" if planned.unit.person else "row",
        dataset=planned.schema.dataset,
        findings=findings,
        release=of.release,
        software=__version__,
    )


def _subject(
    subject: AbstractMethod | str | Path, schema: Schema | None, budget: Budget | float | None
) -> _Subject:
    if isinstance(subject, str) and subject not in METHODS:
        if not Path(subject).is_dir():
            raise LimbeckError(
                f"Expected a method ({', '.join(METHODS)}) or the folder of a release, got '{subject}'."
            )
        subject = Path(subject)
    if isinstance(subject, Path):
        if schema is not None or budget is not None:
            raise LimbeckError("A release names its own schema and budget: leave yours out.")
        return _of_release(subject)
    method = small_method(subject) if isinstance(subject, str) else subject
    if method.needs_bare_rows:
        raise LimbeckError(f"{method.name} promises nothing, so there is nothing to audit.")
    declared = schema or made_for(method.data_kinds[0])
    asked = Budget.of(BUDGET if budget is None else budget, declared.units)
    if not asked.private:
        raise LimbeckError(
            "At epsilon = infinity nothing is promised, so there is nothing to audit."
        )
    return _Subject(plan(method, declared, asked, check=True))


def _of_release(folder: Path) -> _Subject:
    """What a certificate claims: its method, settings, schema and noise."""
    from ..release.arithmetic import budget_of
    from ..release.questions import known_method

    verify(folder)
    release = load(folder)
    certificate = release.certificate
    method = known_method(certificate)
    if isinstance(method, str):
        raise ReleaseError(f"{folder} cannot be audited: {method}.")
    made, budget = method.from_settings(certificate["method"]["settings"]), budget_of(certificate)
    if not budget.private:
        raise LimbeckError(f"{folder} was made without noise: there is no claim to audit.")
    names = certificate["data"]["estimated_columns"]
    opened = replace(
        release.schema,
        columns=tuple(_opened(c) if c.name in names else c for c in release.schema.columns),
    )
    checked = bool(certificate.get("check", {}).get("charges"))
    stated = {c["name"]: c["noise_multiplier"] for c in certificate["charges"]}
    planned = plan(made, opened, budget, check=checked)
    questions = [_at_noise(one, stated) for one in planned.questions]
    charges = tuple(charge for one in questions for charge in one.charges)
    chosen = certificate["method"].get("chosen_among")
    also: tuple[Planned, ...] = ()
    if chosen:
        question = choice_of(1 if chosen["mean_runs"] else len(chosen["candidates"]))
        priced = Planned(question=question, charges=question.charges(planned.unit))
        also = (_at_noise(priced, stated),)
    note = "random stopping is not tried: a single run is" if chosen and chosen["mean_runs"] else ""
    planned = replace(planned, questions=tuple(questions), charges=charges)
    return _Subject(planned, also, certificate_digest(certificate), note)


def _opened(column: Column) -> Column:
    """A column as it was before its bounds or values were estimated."""
    if isinstance(column, Category):
        return replace(column, values=(), outside=None)
    assert isinstance(column, Numeric)
    return replace(column, min=None, max=None)


def _at_noise(planned: Planned, stated: dict[str, float]) -> Planned:
    """A question at the noise that a certificate states."""
    charges = tuple(replace(c, noise_multiplier=stated[c.name]) for c in planned.charges)
    return replace(planned, charges=charges)


# ---- the parts --------------------------------------------------------------------------------


def _replay(of: _Subject, quick: bool, seed: int, progress: Progress) -> Finding:
    start, schema = time.perf_counter(), of.plan.schema
    rows, found = generated_rows(schema, ROWS, seed), Replay(of.plan)
    replaced = of.plan.budget.adjacency == "replace-one"
    found.begin(read(rows, schema))
    tried = list(neighbours(schema, rows, replaced=replaced))
    if quick:
        tried = tried[:: max(1, len(tried) // QUICK_NEIGHBOURS)]
    for number, (name, other) in enumerate(tried):
        found.compare(name, read(other, schema))
        progress("replay", (number + 1) / len(tried))
    most = max(found.moved.values(), default=0.0)
    unmoved = sorted(c.name for c in of.plan.charges if not found.moved.get(c.name))
    says = (
        f"{found.answers} answers, {found.neighbours} neighbours: none moves an answer by more than "
        f"{most:.4f} of its sensitivity"
    )
    return Finding(
        part="replay",
        holds=not found.broken,
        says=found.broken[0] if found.broken else says,
        runs=found.neighbours + 1,
        seconds=time.perf_counter() - start,
        broken=tuple(found.broken),
        facts={"moved": found.moved, "unmoved": unmoved},
    )


def _noise(of: _Subject, seed: int, progress: Progress) -> Finding:
    start, schema = time.perf_counter(), of.plan.schema
    broken, numbers = checked_noise(of.plan, read(generated_rows(schema, ROWS, seed), schema))
    progress("noise", 1.0)
    says = f"{numbers:,} numbers: as large as charged, on their grid, and none used twice"
    return Finding(
        part="noise",
        holds=not broken,
        says=broken[0] if broken else says,
        confidence=CONFIDENCE,
        runs=3,
        seconds=time.perf_counter() - start,
        broken=tuple(broken),
        facts={"numbers": numbers},
    )


def _draws(of: _Subject, quick: bool, seed: int, progress: Progress) -> Finding:
    more = {"trials": QUICK_TRIALS, "numbers": QUICK_NUMBERS} if quick else {}
    asked = [*of.plan.questions, *of.also]
    told: Callable[[float], None] = lambda done: progress("draws", done)  # noqa: E731
    found = tight(
        asked,
        of.plan.unit,
        of.plan.budget,
        unmade=_unmade(of.plan),
        seed=seed,
        progress=told,
        **more,
    )
    built = not found.left_out and min(found.moved.values(), default=0.0) > 0.99
    broken = list(found.noise_wrong)
    if found.bound > found.claim:
        broken.insert(0, f"epsilon is at least {found.bound:.4g}, and {found.claim:.4g} is claimed")
    says = f"epsilon at delta {AT_DELTA:g} is at least {found.bound:.4g} of the claimed {found.claim:.4g}"
    why = dict.fromkeys(found.left_out.values())
    rest = "".join(
        f"; left out: {', '.join(n for n, w in found.left_out.items() if w == reason)} ({reason})"
        for reason in why
    )
    return Finding(
        part="draws",
        holds=not broken,
        says=broken[0] if broken else says + rest + (f"; {of.note}" if of.note else ""),
        claim=found.claim,
        bound=found.bound,
        delta=AT_DELTA,
        confidence=CONFIDENCE,
        tight=built,
        runs=2 * found.trials,
        seconds=found.seconds,
        broken=tuple(broken),
        facts={
            "mu": list(found.mu),
            "moved": found.moved,
            "left_out": found.left_out,
            "curve": found.curve and {
                "thresholds": found.curve.thresholds.tolist(),
                "with": found.curve.hits.tolist(),
                "without": found.curve.false.tolist(),
                "tries": found.curve.tries,
            },
        },
    )  # fmt: skip


def _unmade(planned: Plan) -> list[str]:
    """Names of gradients whose sums the method takes in float64, without making them one by one."""
    if not any(isinstance(one.question, Gradients) for one in planned.questions):
        return []
    schema, method = planned.schema, planned.method
    assert isinstance(method, AbstractMethod)
    rows = read(generated_rows(schema, 2), schema)
    private = Replayed({}, rows, planned.questions, planned.unit, Noise.from_seed(0))
    if planned.check is not None:
        private.ask(planned.check.question.name)
    private.estimate()
    quiet: Progress = lambda phase, done: None  # noqa: E731
    if isinstance(method, AbstractMeasureOnce):
        method.measure(private, seed=0, progress=quiet)
    else:
        method.run(private, seed=0, progress=quiet)
    return list(private.float_sums)
