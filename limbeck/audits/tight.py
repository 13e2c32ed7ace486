"""Is the noise what the price says? Many draws of the real mechanisms at their worst rows.

A trial is a whole run: every question, every step, each moved by one unit as far as it is charged,
or not moved. What an attacker makes of all answers together is their privacy loss. How well it tells the two
worlds apart bounds epsilon from below; if the price is what is really spent, the bound is nearly the claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammainc, ndtri

from ..accounting import Budget, Charge, cost
from ..privacy import (
    Choice,
    Gradients,
    Measurement,
    Noise,
    Planned,
    RowAccess,
    Stream,
    Unit,
)
from ..privacy.questions.choice import FINE
from ..schema import Person
from .bounds import AT_DELTA, CONFIDENCE, Curve, Interval, curve_of, epsilon_at_least, mu_between
from .worst_cases import NOT_BUILT, WorstCase, losses, worst_case

CUTS = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
"""Thresholds of the privacy loss, in parts of the claim: chosen before anything is drawn."""
NUMBERS = 60_000_000
"""Numbers drawn in each world, at most."""
TRIALS = 1_000_000
"""Runs tried in each world, at most."""
SLOW = {"discrete laplace": 200, "permute-and-flip": 64}
"""Mechanisms whose numbers are drawn one by one, and how many others take as long."""
AT_ONCE = 4096
"""Answers that are noised together, where one unit moves a whole answer."""
WATCHED = 10
"""Steps of a question whose noise is compared with that of all others."""


@dataclass
class Tight:
    """What many runs of the mechanisms show."""

    claim: float
    """Epsilon at `AT_DELTA` by the price."""
    bound: float
    """Epsilon that is certainly spent there."""
    mu: Interval
    trials: int
    seconds: float
    moved: dict[str, float] = field(default_factory=dict)
    """By charge: how far a unit moves the answer, in parts of the sensitivity."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Charges whose worst case is not built, and why."""
    noise_wrong: list[str] = field(default_factory=list)
    curve: Curve | None = None

    @property
    def share(self) -> float:
        return self.bound / self.claim if self.claim > 0 else 0.0


def claimed(charges: Sequence[Charge], budget: Budget, delta: float = AT_DELTA) -> float:
    """Epsilon that charges cost at another delta than the budget's, by the same accountants."""
    return cost(tuple(charges), replace(budget, delta=delta)).epsilon


def tight(
    planned: Sequence[Planned],
    unit: Unit,
    budget: Budget,
    *,
    unmade: Sequence[str] = (),
    trials: int = TRIALS,
    numbers: int = NUMBERS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda done: None,
) -> Tight:
    """Run the planned questions' mechanisms many times in both worlds.

    Args:
        planned: Questions with the charges that pay for them.
        unit: Whose presence is hidden.
        budget: Of the run; its delta plays no part.
        unmade: Names of gradients that are known by norms and sums alone.
        trials: Runs in each world, at most.
        numbers: Numbers drawn in each world, at most.
        seed: Of the noise, so that a finding is found again.
        progress: Called with a fraction done.
    """
    start = time.perf_counter()
    asked = [_Tried.of(one, unit, one.question.name in unmade) for one in planned]
    left_out = {
        one.question.name: NOT_BUILT.get(type(one.question).__name__, "of another package")
        for one, tried in zip(planned, asked, strict=True)
        if tried is None
    }
    tried = [one for one in asked if one is not None]
    charges = [charge for one in planned for charge in one.charges]
    claim = claimed(charges, budget)
    effort = sum(one.numbers for one in tried)
    count = min(trials, int(numbers / max(effort, 1)))
    total = {world: np.zeros(count) for world in (True, False)}
    watched: dict[tuple[str, int], np.ndarray] = {}
    for world in (False, True):
        for place, one in enumerate(tried):
            for name, noise, loss in one.drawn(count, with_units=world, seed=seed):
                total[world] += loss
                if noise is None or world:
                    continue
                if sum(n[0] == name[0] for n in watched) < WATCHED:
                    watched[name] = noise
            progress((place + 1 + world * len(tried)) / (2 * len(tried)))
    curve = curve_of(total[True], total[False], [claim * cut for cut in CUTS])
    found = Tight(
        claim=claim,
        bound=epsilon_at_least(curve, AT_DELTA),
        mu=mu_between(curve),
        trials=count,
        seconds=0.0,
        moved={name: part for one in tried for name, part in one.moved.items()},
        left_out=left_out,
        noise_wrong=wrong_noise(watched),
        curve=curve,
    )
    found.seconds = time.perf_counter() - start
    return found


def wrong_noise(noises: dict[tuple[str, int], np.ndarray]) -> list[str]:
    """What is wrong with noise that should be of standard deviation 1, and independent from one step,
    one question and one part to another, in words. All checks together fail by chance with 1e-6."""
    pairs = list(combinations(noises.items(), 2))
    chance = (1 - CONFIDENCE) / (4 * (len(noises) + len(pairs) + 1))
    allowed, found = -float(ndtri(chance)), []
    for (name, step), noise in noises.items():
        spread = float(np.sqrt(np.mean(noise**2)))
        if spread**2 - 1 > allowed * np.sqrt(2 / noise.size) * 1.2 or too_little(noise, chance):
            found.append(f"'{name}', step {step}: the noise is {spread:.4f} of what is charged")
    together = np.concatenate([np.zeros(0), *map(np.ravel, noises.values())])
    if not found and too_little(together, chance):
        spread = float(np.sqrt(np.mean(together**2)))
        found.append(f"all answers together: the noise is {spread:.4f} of what is charged")
    for (one, first), (two, second) in pairs:
        size = min(first.size, second.size)
        if size < 30:
            continue
        alike = float(np.corrcoef(first.ravel()[:size], second.ravel()[:size])[0, 1])
        if not abs(alike) <= allowed / np.sqrt(size) * 1.2:
            found.append(f"{one} and {two}: their noise is the same in {alike:.3f} parts")
    return found


def too_little(noise: np.ndarray, chance: float) -> bool:
    """Whether numbers are nearer to zero than those of standard deviation 1 are but by a chance; few
    numbers can tell, too. Laplace's squares spread more than a Gaussian's: as those of 0.4 as many."""
    freedom = 0.4 * noise.size
    return noise.size > 0 and float(gammainc(freedom / 2, freedom / 2 * np.mean(noise**2))) < chance


@dataclass
class _Tried:
    """A question's worst case at the planned noise."""

    case: WorstCase
    charges: tuple[Charge, ...]
    unit: Unit
    moved: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, planned: Planned, unit: Unit, unmade: bool) -> _Tried | None:
        case = worst_case(planned.question, unmade=unmade)
        if case is None:
            return None
        own = case.question.charges(unit)
        noises = [charge.noise_multiplier for charge in planned.charges]
        charges = tuple(
            replace(charge, noise_multiplier=noise)
            for charge, noise in zip(own, noises, strict=True)
        )
        return cls(case, charges, unit)

    @property
    def numbers(self) -> int:
        """Numbers that a run draws in a trial."""
        width = self.charges[-1].coordinates / (1 if self.case.stacked else self.case.units)
        slow = SLOW.get(self.charges[0].mechanism, 1)
        return int(sum(c.steps for c in self.charges) * max(1.0, width) * slow)

    @property
    def person(self) -> Person | None:
        most = self.unit.rows_at_most
        return Person(column="id", rows_at_most=most, persons=1000) if self.unit.person else None

    def drawn(
        self, count: int, *, with_units: bool, seed: int
    ) -> Iterator[tuple[tuple[str, int], np.ndarray | None, np.ndarray]]:
        """For each measurement and step the noise, scaled to standard deviation 1, and the privacy loss
        of all trials; a choice has no noise to look at."""
        case = self.case
        if isinstance(case.question, Choice):
            yield (case.question.name, 0), None, self._chosen(count, with_units, seed)
            return
        exact = [self._exact(with_units=world) for world in (False, True)]
        lines = []
        for charge, without, held in zip(self.charges, *exact, strict=True):
            line = case.trials(held) - case.trials(without)
            norm = np.linalg.norm(line, axis=1)
            self.moved[charge.name] = float(norm.max() / charge.sensitivity)
            lines.append((line / norm[:, None], norm / charge.noise, case.trials(without)))
        pieces: dict[tuple[str, int], list[np.ndarray]] = {}
        for step, answers in self._answers(count, with_units, seed):
            for charge, answer, (line, _, base) in zip(self.charges, answers, lines, strict=True):
                along = ((case.trials(answer.values) - base) * line).sum(axis=1)
                pieces.setdefault((charge.name, step), []).append(along / charge.noise)
        for charge, (_, apart, _) in zip(self.charges, lines, strict=True):
            for step in range(case.question.steps):
                scaled = np.concatenate(pieces.pop((charge.name, step)))[:count]
                lost = losses(charge, np.resize(apart, count), scaled)
                yield (charge.name, step), scaled / noise_deviation(charge), lost

    def _chosen(self, count: int, with_units: bool, seed: int) -> np.ndarray:
        """The privacy loss of picks between two that a unit sets apart as far as it may."""
        (charge,), row_map = self.charges, self.case.row_map
        mechanism: Any = self.case.question.calibrated(self.charges, self.unit, row_map)
        noise = Noise.from_seed(seed).part(f"{charge.name} {with_units}")
        sums = []
        for world in (False, True):
            data = self.case.data(self.person, with_units=world)
            held = RowAccess(data=data, noise=Noise.from_seed(0), progress=lambda done: None)
            sums.append(mechanism.session(held, row_map).partial(0, {}))
        gaps = [float(Fraction(a - b, FINE**2)) for a, b in map(mechanism.utilities, sums)]
        self.moved[charge.name] = abs(gaps[1] - gaps[0]) / (2 * charge.sensitivity)
        chances = [row_map.chance(gap, charge.noise) for gap in gaps]
        lost = np.log([chances[1] / chances[0], (1 - chances[1]) / (1 - chances[0])])
        stream, whole = noise.stream("picks"), sums[int(with_units)]
        picked = (mechanism.finish(whole, lambda c: stream)[0].values[0] for _ in range(count))
        return lost[np.fromiter(picked, np.int64, count)]

    def _answers(
        self, count: int, with_units: bool, seed: int
    ) -> Iterator[tuple[int, tuple[Measurement, ...]]]:
        """Noisy answers to all steps, as often as gives so many trials. Rows are added up anew only
        where batches are drawn."""
        case, steps = self.case, self.case.question.steps
        mechanism = case.question.calibrated(self.charges, self.unit, case.row_map)
        data = case.data(self.person, with_units=with_units)
        sampled = self.charges[0].sampling is not None
        at_once = AT_ONCE if case.stacked else case.units
        summed: Any = None
        for repeat in range(-(-count // at_once)):
            noise = Noise.from_seed(seed).part(f"{with_units} {repeat}")
            held = RowAccess(data=data, noise=noise, progress=lambda done: None)
            session = mechanism.session(held, case.row_map) if sampled or summed is None else None
            for step in range(steps):
                if session is not None and (sampled or summed is None):
                    summed = session.partial(step, case.state or {})
                many = np.tile(summed, (at_once, 1)) if case.stacked else summed
                yield step, mechanism.finish(many, _streams(noise, step))

    def _exact(self, *, with_units: bool) -> list[np.ndarray]:
        """The answers of a world without noise, every coin showing heads."""
        question = self.case.question
        if isinstance(question, Gradients):
            question = replace(question, rate=1.0)
        charges = [replace(c, noise_multiplier=0.0) for c in question.charges(self.unit)]
        mechanism = question.calibrated(charges, self.unit, self.case.row_map)
        data = self.case.data(self.person, with_units=with_units)
        held = RowAccess(data=data, noise=Noise.from_seed(0), progress=lambda done: None)
        partial = mechanism.session(held, self.case.row_map).partial(0, self.case.state or {})
        return [
            a.values for a in mechanism.finish(partial, lambda c: Noise.from_seed(0).stream(c.name))
        ]


def _streams(noise: Noise, step: int) -> Callable[[Charge], Stream]:
    return lambda charge: noise.stream(f"{charge.name}/{step}")


def noise_deviation(charge: Charge) -> float:
    """Standard deviation of the noise in parts of its scale."""
    if charge.mechanism != "discrete laplace":
        return 1.0
    ratio = np.exp(-1 / charge.noise)
    return float(np.sqrt(2 * ratio) / (1 - ratio) / charge.noise)
