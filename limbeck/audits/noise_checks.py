"""Is the noise of a run drawn as it is charged: its size, its grid, anew every time, and exact to the last bit?

A run in law mode is answered with noise alone, so what it sees is what was drawn.
"""

from __future__ import annotations

import numpy as np

from ..accounting import SIGMA, Charge
from ..data import Dataset
from ..planning import Plan
from ..privacy import Noise
from .replay import Replay, replayed
from .tight import noise_deviation, wrong_noise

RUNS = 3
"""Runs whose noise is looked at; that of one must not be that of another."""
WATCHED = 60
"""Answers that are compared with each other, at most."""


def checked_noise(plan: Plan, data: Dataset) -> tuple[list[str], int]:
    """What is wrong with the noise of a run, in words, and how many numbers were looked at."""
    answers, count = Replay(plan), 0
    broken: list[str] = []
    kept: dict[tuple[str, int], np.ndarray] = {}
    for run in range(RUNS):
        seen = replayed(plan, data, {}, noise=Noise.from_seed(run, law=True)).seen
        for name, values in seen.items():
            charge = answers.charge_of(name)
            if values.dtype.kind != "f" or charge.noise == 0:
                continue
            count += values.size
            broken += off_grid(name, charge, values)
            if len(kept) < WATCHED:
                kept[f"{name} of run {run}", 0] = values.ravel() / (
                    charge.noise * noise_deviation(charge)
                )
    return broken + wrong_noise(kept), count


def off_grid(name: str, charge: Charge, noisy: np.ndarray) -> list[str]:
    """Answers that are no whole multiples of the grid step: noise in floating point, whose last bits
    tell of what it was added to."""
    if charge.mechanism != "discrete gaussian":
        return []
    step = charge.noise / SIGMA
    whole = np.rint(noisy / step)
    # A multiple is one rounding of float64 from a whole number of steps.
    apart = np.abs(whole * step - noisy) > 2.0**-52 * np.abs(noisy)
    if not apart.any():
        return []
    return [f"'{name}': {apart.sum()} of {apart.size} answers are not on the grid of the noise"]


def traces_of_box_muller(noise: np.ndarray) -> float:
    """How far exp(-(a^2 + b^2) / 2) is from the grid of 53 bits on average, for numbers a and b half
    the answer apart: 0.25 for any numbers, near 0 for a sine and a cosine of one radius that was
    made from a uniform number of 53 bits. Only long radii are looked at, where float64 can tell.

    An attacker who takes a guess of the true sum off the answer confirms it so.
    """
    first, second = noise.reshape(2, -1)
    uniform = np.exp(-(first**2 + second**2) / 2)
    fine = uniform[uniform < 2e-3] * 2.0**53
    return float(np.abs(fine - np.rint(fine)).mean())
