"""What a condition leaves of a column's cells: some of them, and of those at the edges a part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...features import Cells
from ...schema import Among
from ..wanted import Wanted

HALVINGS = 52
"""Halvings of a cell in search of a condition's edge within it: as fine as float64."""
BELOW_ONE = float(np.nextafter(1, 0))


@dataclass(frozen=True, kw_only=True)
class AllowedPart:
    """Of each of a column's cells, the part in which a condition holds: from one fraction to another."""

    cells: Cells
    start: np.ndarray
    stop: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        return np.maximum(self.stop - self.start, 0.0)

    def draw(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A column's encoded values (float32), drawn evenly within the parts of these cells."""
        chance = self.start[codes] + self.shares[codes] * rng.random(len(codes))
        return self.cells.placed(codes, np.minimum(chance, np.nextafter(self.stop[codes], 0)))


def allowed_parts(columns: tuple[Cells, ...], wanted: Wanted) -> dict[int, AllowedPart]:
    """What conditions leave, by the number of the column; columns without a condition are left out."""
    conditions = {condition.column.name: condition for condition in wanted.on_inputs}
    parts = {}
    for number, cells in enumerate(columns):
        condition = conditions.get(cells.column.name)
        if condition is None:
            continue
        codes = np.arange(cells.count)
        if isinstance(condition, Among):
            start, stop = np.zeros(cells.count), condition.holds(codes).astype(np.float64)
        else:
            start = _edge(cells, condition.too_low, from_top=False)
            stop = 1 - _edge(cells, condition.too_high, from_top=True)
            if cells.missing:
                stop[-1] = 0.0
        parts[number] = AllowedPart(cells=cells, start=start, stop=stop)
    return parts


def _edge(cells: Cells, test: Callable[[np.ndarray], np.ndarray], *, from_top: bool) -> np.ndarray:
    """Of each cell, the fraction at its lower end, or at its upper, in which a test holds.

    Values rise within a cell, so a test of being too low, or too high, holds up to one edge in it,
    which is found by halving.
    """
    codes = np.arange(cells.count)

    def met(fraction: np.ndarray) -> np.ndarray:
        chance = np.minimum(1 - fraction, BELOW_ONE) if from_top else fraction
        return test(cells.placed(codes, chance))

    begun, ended = np.zeros(cells.count), np.ones(cells.count)
    nowhere = ~met(begun)
    for _ in range(HALVINGS):
        middle = (begun + ended) / 2
        holds = met(middle)
        begun, ended = np.where(holds, middle, begun), np.where(holds, ended, middle)
    return np.where(nowhere, 0.0, ended)
