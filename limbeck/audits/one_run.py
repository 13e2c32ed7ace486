"""One run with many canaries: rows that are there or not by a coin each, and guesses which are.

Whoever guesses sees every noisy answer and knows all but the coins and the noise: the other rows, the
canaries, what each would add. How many guesses can be right is bounded by epsilon, however the
canaries depend on each other (Steinke, Nasr and Jagielski 2023; with trade-off curves Mahloujifar, Melis and
Chaudhuri 2024). A second attacker sees the released rows alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..accounting import gaussian_epsilon
from ..data import Dataset, bare_rows, read
from ..methods import AbstractMethod
from ..planning import Plan
from ..privacy import Measurement, Noise, Private, RowAccess
from ..privacy.map_spec import build_map
from ..progress import Progress
from ..release import Images, draw
from ..schema import Schema
from .bounds import one_run_epsilon, one_run_mu
from .result import Finding
from .rows import generated_rows

CANARIES, QUICK_CANARIES = 80, 20
BASE = 10
"""Rows that are there in any case."""
WRONG = 0.05
"""Chance with which the bound of one run may fail: with delta in it, one run proves no more."""
GUESSED = (0.25, 0.5, 1.0)
"""Shares of the canaries that are guessed at: the surest ones."""
RELEASED = 400
"""Rows that are drawn from a generator for the second attacker."""


class Watched(Private):
    """A run that also notes what each canary adds to every answer, or would add."""

    def __init__(self, worlds: list[Dataset], secret: bytes, *given: Any) -> None:
        super().__init__(*given)
        self._worlds, self._secret = worlds, secret
        count = len(worlds) - 1
        self.gram, self.along = np.zeros((count, count)), np.zeros(count)

    def _stepper(self, name: str, spec: Any, state: Any, *, stepwise: bool) -> Callable[..., Any]:
        ask = super()._stepper(name, spec, state, stepwise=stepwise)
        planned = self._planned[name]
        question, rate = planned.question, getattr(planned.question, "rate", 1.0)
        if rate < 1:  # coins are not known to who guesses: on average a canary adds its part
            question = replace(question, rate=1.0)  # type: ignore[call-arg]
        charges = [replace(c, noise_multiplier=0.0) for c in question.charges(self._unit)]
        row_map = build_map(spec, self.schema, state)
        mechanism = question.calibrated(charges, self._unit, row_map)
        sessions = []
        for world in self._worlds:
            noise = Noise(secret=self._secret, seeded=True)  # the same teachers' shards
            held = RowAccess(data=world, noise=noise, progress=lambda done: None, key=self._key)
            sessions.append(mechanism.session(held, row_map))
        numbers = iter(range(question.steps))

        def step(now: Any) -> tuple[Measurement, ...]:
            found, number = ask(now), next(numbers)
            exact = [
                mechanism.finish(session.partial(number, now), lambda c: None)  # type: ignore[arg-type, return-value]
                for session in sessions
            ]
            for place, (charge, answer) in enumerate(zip(planned.charges, found, strict=True)):
                if charge.mechanism == "permute-and-flip" or answer.values.dtype.kind != "f":
                    continue
                base = exact[0][place].values
                added = [(world[place].values - base).ravel() for world in exact[1:]]
                scaled = np.stack(added) * (rate / charge.noise)
                self.gram += scaled @ scaled.T
                self.along += scaled @ ((answer.values - rate * base).ravel() / charge.noise)
            return found

        return step

    @property
    def beliefs(self) -> np.ndarray:
        """How sure each canary is to be there, near 1, or not, near 0, by all answers together."""
        half = np.full(len(self.along), 0.5)
        prior = 4.0 * np.eye(len(half))  # of a fair coin
        return half + np.linalg.solve(self.gram + prior, self.along - self.gram @ half)


@dataclass
class CanaryRun:
    """A run with canaries, for both attackers."""

    plan: Plan
    coins: np.ndarray
    beliefs: np.ndarray
    product: Any
    canaries: Any
    schema: Schema
    seconds: float = 0.0

    @classmethod
    def of(cls, plan: Plan, *, quick: bool, seed: int, progress: Progress) -> CanaryRun:
        start, method = time.perf_counter(), plan.method
        assert isinstance(method, AbstractMethod)
        count = QUICK_CANARIES if quick else CANARIES
        schema = plan.schema
        base = _of_others(schema, generated_rows(schema, BASE, seed), "base")
        canaries = _of_others(schema, generated_rows(schema, 2 * count, seed + 1), "canary")
        canaries = _taken(canaries, np.arange(count) * 2)  # no two are equal
        coins = np.random.default_rng([seed, 7]).random(count) < 0.5
        worlds = [base, *(_joined(base, _taken(canaries, np.asarray([i]))) for i in range(count))]
        noise = Noise.from_seed(seed)
        data = read(_joined(base, _taken(canaries, np.flatnonzero(coins))), schema)
        given = (data, plan.questions, plan.unit, noise)
        private = Watched([read(world, schema) for world in worlds], noise.secret, *given)
        if plan.check is not None:
            private.ask(plan.check.question.name)
        settled = private.estimate()
        told: Progress = lambda phase, done: progress("one run", 0.99 * done)  # noqa: E731
        product = method.run(private, seed=0, progress=told)
        progress("one run", 1.0)
        seconds = time.perf_counter() - start
        return cls(plan, coins, private.beliefs, product, canaries, settled, seconds)


def one_run(run: CanaryRun) -> Finding:
    """What the noisy answers of one run tell of its canaries."""
    return _finding("one run", run, run.beliefs - 0.5, "the noisy answers", run.seconds)


def attacked_release(run: CanaryRun, *, seed: int = 0) -> Finding:
    """What the released rows alone tell of the canaries: by distance to the nearest, and by how much
    likelier a canary is among them than among other rows. Weak attacks: they prove little."""
    start, schema = time.perf_counter(), run.schema.without_person()
    if run.product.source.kind == "model":
        return _finding("release", run, _sureness(run), "the model's own certainty", 0.0)
    fixed = run.product.source.kind == "distilled"
    rows = len(run.product.source.labels) if fixed else RELEASED
    drawn = draw(schema, run.product.source, rows, seed=seed)
    places = [_places(schema, some) for some in (run.canaries, drawn)]
    other = _places(schema, generated_rows(run.plan.schema, RELEASED, seed + 2))
    nearest = -_distances(places[0], places[1]).min(axis=1)
    ratio = _log_density(places[0], places[1]) - _log_density(places[0], other)
    found = [
        _finding("release", run, score - np.median(score), name, 0.0)
        for name, score in (("nearest released row", nearest), ("density ratio", ratio))
    ]
    best = max(found, key=lambda finding: finding.bound or 0.0)
    facts = {str(f.facts["seen"]): dict(f.facts) for f in found}
    return replace(best, seconds=time.perf_counter() - start, facts=facts)


def _sureness(run: CanaryRun) -> np.ndarray:
    """How sure a released model is of each canary's class, beside half of the others."""
    held = bare_rows(read(run.canaries, run.schema.without_person()))  # made up
    chances = run.product.source.chances(run.schema.expand(np.asarray(held.cells)))
    own = chances[np.arange(len(chances)), np.maximum(held.labels, 0)]
    return own - np.median(own)


def _finding(part: str, run: CanaryRun, scores: np.ndarray, seen: str, seconds: float) -> Finding:
    """A bound from guesses at the surest canaries."""
    budget, count = run.plan.budget, len(scores)
    order = np.argsort(-np.abs(scores), kind="stable")
    right = (scores > 0) == run.coins
    tried, best = [], 0.0
    wrong = WRONG / (2 * len(GUESSED))
    for share in GUESSED:
        guesses = max(1, int(share * count))
        hits = int(right[order[:guesses]].sum())
        plain = one_run_epsilon(budget.delta, count, guesses, hits, wrong)
        mu = one_run_mu(count, guesses, hits, wrong)
        curved = gaussian_epsilon(mu, budget.delta) if mu > 0 else 0.0
        best = max(best, plain, curved)
        tried.append({"guesses": guesses, "right": hits, "epsilon": plain, "epsilon_by_mu": curved})
    claim, hits = budget.epsilon, int(right.sum())
    broken = () if best <= claim else (f"epsilon is at least {best:.3g}, and {claim:g} is claimed",)
    says = f"by {seen}, {hits} of {count} canaries are told right: epsilon is at least {best:.3g}"
    return Finding(
        part=part,
        holds=not broken,
        says=broken[0] if broken else says,
        claim=claim,
        bound=best,
        delta=budget.delta,
        confidence=1 - WRONG,
        runs=1,
        seconds=seconds,
        broken=broken,
        facts={"seen": seen, "canaries": count, "guessed": tried},
    )


# ---- made-up rows -----------------------------------------------------------------------------


def _of_others(schema: Schema, rows: Any, whose: str) -> Any:
    """Rows of persons of their own, where persons are protected: one each."""
    if schema.person is not None:
        rows[schema.person.column] = [f"{whose} {i}" for i in range(len(rows))]
    return rows


def _taken(rows: Any, places: np.ndarray) -> Any:
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[places].reset_index(drop=True)
    return rows[0][places], rows[1][places]


def _joined(one: Any, two: Any) -> Any:
    if isinstance(one, pd.DataFrame):
        return pd.concat([one, two], ignore_index=True)
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])


def _places(schema: Schema, rows: Any) -> np.ndarray:
    """Rows as points: their slots, and the class as corners of a cube."""
    given = (rows.images, rows.labels) if isinstance(rows, Images) else rows
    held = bare_rows(read(given, schema))  # made up, or released
    slots = schema.expand(np.asarray(held.cells)).astype(np.float64)
    return np.concatenate([slots, np.eye(len(schema.classes) + 1)[held.labels]], axis=1)


def _distances(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    square = (one**2).sum(1)[:, None] + (two**2).sum(1)[None] - 2 * one @ two.T
    return np.sqrt(np.maximum(square, 0.0))


def _log_density(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of a sum of bells around the rows, as wide as neighbours are usually apart."""
    square = _distances(points, rows) ** 2
    width = np.median(square) / max(points.shape[1], 1) + 1e-9
    return np.logaddexp.reduce(-square / (2 * width), axis=1) - np.log(len(rows))
