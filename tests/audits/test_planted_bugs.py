"""Bugs that are planted: each part of an audit that should catch one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers import TINY

import limbeck as lk
from limbeck.accounting import Charge
from limbeck.audits import tight
from limbeck.audits.noise_checks import off_grid, traces_of_box_muller
from limbeck.audits.rows import made_for
from limbeck.audits.small import SMALL
from limbeck.methods import AbstractMethod, Distilled, Product
from limbeck.privacy import Asked, GridSum, Noise, Private, Sum, Unit
from limbeck.privacy.discrete import discrete_gaussian
from limbeck.privacy.questions import choice
from limbeck.privacy.questions.sum import SummedFeatures

# ---- planted bugs -------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["noise", "draws", "one run"])
def test_every_part_of_an_audit_finds_noise_that_is_left_out(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all of it: what a part cannot find it cannot vouch for."""

    def quiet(self: GridSum, total: np.ndarray, stream: Any) -> np.ndarray:
        if self.noise > 0:
            total = total + discrete_gaussian(stream, total.size).reshape(total.shape) // 64
        return total * self.grid

    monkeypatch.setattr(GridSum, "finalise", quiet)
    method = lk.DPMERF(**TINY)
    found = lk.audit(method, budget=lk.Budget(0.5, 1e-5), quick=True, parts=(part, "replay"))
    broken = found.finding(part)
    assert broken is not None and not broken.holds and not found.holds
    assert broken.bound is None or broken.bound > 0.5


def test_every_part_of_an_audit_finds_rows_that_count_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accumulate = GridSum.accumulate
    monkeypatch.setattr(GridSum, "accumulate", lambda *given: 2 * accumulate(*given))
    found = lk.audit(lk.DPMERF(**TINY), quick=True, parts=("replay",))
    assert not found.holds and "of its sensitivity" in found.findings[0].says


def test_a_utility_that_a_row_moves_by_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of choices are places: what is compared are the utilities behind them."""
    utilities = choice.utilities
    monkeypatch.setattr(choice, "utilities", lambda *given: [2 * u for u in utilities(*given)])
    schema = replace(made_for("tables"), columns=made_for("tables").columns[-3:])
    method = lk.MST(**SMALL["mst"])
    found = lk.audit(method, schema=schema, quick=True, parts=("replay",))
    assert not found.holds and " moves by 2 of its sensitivity" in found.findings[0].says


@dataclass(frozen=True, kw_only=True)
class Renoised(Sum):
    """A planted bug: clean sums are kept and noised anew at each use, but charged once."""

    stepwise: ClassVar[bool] = True
    uses: int = 5

    @property
    def steps(self) -> int:
        return self.uses

    def calibrated(self, charges: Any, unit: Unit, row_map: Any = None) -> SummedFeatures:
        return super().calibrated(charges, unit, None)


@dataclass(frozen=True, kw_only=True)
class Dosser(AbstractMethod):
    """Uses the same sums again and again.

    Privacy:
        Claims to measure sums once, and measures them five times.
    """

    name: ClassVar[str] = "dosser"
    papers: ClassVar[tuple[str, ...]] = ()
    fixed_size: ClassVar[bool] = True

    def questions(self, schema: lk.Schema) -> list[Asked]:
        question = Renoised(name="sums", bound=1.0, size=schema.slots, groups=len(schema.classes))
        return [Asked(question=question, share=1.0)]

    def features(self, schema: lk.Schema, seed: int) -> Any:
        return lambda slots: 9.0 * slots

    def run(self, private: Private, *, seed: int, progress: Any) -> Product:
        with private.steps("sums", self.map_spec("features", seed)) as step:
            sums = np.mean([step({})[0].values for _ in range(5)], axis=0)
        source = Distilled(slots=sums.astype(np.float32), labels=np.arange(len(sums)))
        return Product(source=source, rows=len(sums))


def test_clean_sums_that_are_noised_at_each_use_are_caught() -> None:
    found = lk.audit(Dosser(), quick=True, parts=("replay",))
    assert not found.holds
    broken = found.findings[0].broken
    assert any("answered 5 times and charged 1 times" in words for words in broken)
    assert any("steps of 'sums' move more than is charged" in words for words in broken)


@contextmanager
def _box_muller(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[np.ndarray]]:
    """Noise in floating point, as it once was."""
    drawn: list[np.ndarray] = []

    def finalise(self: GridSum, total: np.ndarray, stream: Any) -> np.ndarray:
        words = stream.words(2 * ((total.size + 1) // 2)) >> np.uint64(11)
        uniform = (words + np.uint64(1)).reshape(2, -1) * 2.0**-53
        radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
        drawn.append(np.concatenate([radius * np.cos(angle), radius * np.sin(angle)]))
        return total * self.grid + self.noise * drawn[-1][: total.size].reshape(total.shape)

    with monkeypatch.context() as patched:
        patched.setattr(GridSum, "finalise", finalise)
        yield drawn


def test_box_muller_is_caught_by_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the grid in an audit; and by the attack itself, where many numbers share radii."""
    with _box_muller(monkeypatch):
        found = lk.audit(lk.DPMERF(**TINY), quick=True, parts=("noise",))
        assert not found.holds and "not on the grid" in found.findings[0].says
        grid = GridSum(bound=1.0, noise=1.0, groups=1, size=100_000)
        answer = grid.finalise(grid.zero(), Noise.from_seed(0).stream("attack"))
        assert traces_of_box_muller(answer) < 0.1
    answer = grid.finalise(grid.zero(), Noise.from_seed(0).stream("attack"))
    assert traces_of_box_muller(answer) > 0.2
    charge = Charge(name="c", sensitivity=1.0, noise_multiplier=1.0, coordinates=100_000)
    assert off_grid("c", charge, answer) == []


def test_noise_that_is_used_twice_is_caught() -> None:
    noise = np.random.default_rng(0).standard_normal(5000)
    found = tight.wrong_noise({("a", 0): noise, ("a", 1): noise})
    assert len(found) == 1 and "the same" in found[0]
    for count in (1, 4, 30):  # noise that is hardly there is told by few numbers, too
        few = {("a", step): noise[step * count :][:count] for step in range(40)}
        assert tight.wrong_noise(few) == []
        assert tight.wrong_noise({name: part / 50 for name, part in few.items()})
    assert tight.wrong_noise({("a", 0): noise, ("b", 0): noise[::-1]}) == []


def test_noise_of_each_question_is_looked_at_alone() -> None:
    """One that is too loud does not make up for one that is too quiet."""
    rng = np.random.default_rng(1)
    right, loud, quiet = rng.standard_normal((3, 4000)) * np.array([[1.0], [1.15], [0.85]])
    assert tight.wrong_noise({("a", 0): right}) == []
    for other, size in ((loud, "1.1"), (quiet, "0.8")):
        found = tight.wrong_noise({("a", 0): right, ("b", 0): other})
        assert len(found) == 1 and f"'b', step 0: the noise is {size}" in found[0]
    assert len(tight.wrong_noise({("a", 0): quiet, ("b", 0): loud})) == 2


def test_a_price_below_what_is_spent_is_a_broken_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise as charged, and charges that an accountant prices at half."""
    claimed = tight.claimed
    monkeypatch.setattr(tight, "claimed", lambda *given: claimed(*given) / 2)
    found = lk.audit(lk.DPMERF(**TINY), quick=True, parts=("draws",))
    assert not found.holds and "is claimed" in found.findings[0].says


def test_a_leak_round_the_questions_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that puts the true number of rows into what it makes."""
    run = lk.DPGAN.run

    def leaking(self: Any, private: Private, **given: Any) -> Product:
        made = run(self, private, **given)
        return replace(made, rows=len(private._data._encoded()))

    monkeypatch.setattr(lk.DPGAN, "run", leaking)
    found = lk.audit("dp-gan", quick=True, parts=("replay",))
    assert not found.holds and "not the same" in found.findings[0].says
