"""Rows of which some columns are given: the others are made to fit, under the rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..category import Category
from .learned import Fixed, Learned, value_of


class GivenRows:
    """What is given of rows with rules, and how the other columns follow."""

    def __init__(self, learned: Learned) -> None:
        self.learned = learned

    def given_values(
        self, cells: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values of the schema's columns from their own cells; NaN where nothing is known, or missing."""
        by_name = {}
        for name, own in cells.items():
            column = self.learned.columns[name]
            values = value_of(column, own.astype(np.float64))
            if isinstance(column, Category):
                values = np.where(values < len(column.values), values, np.nan)
            by_name[name] = np.where(known[name], values, np.nan)
        return by_name

    def encoded(self, name: str, values: np.ndarray) -> np.ndarray:
        """Cells of a column that is learned as it is, from its values; NaN: missing."""
        column = self.learned.tight[name]
        if isinstance(column, Category):
            nothing = float(len(column.values)) if column.missing else 0.0  # where nothing is known
            return np.where(np.isnan(values), nothing, values).astype(np.float32)
        return column.number.encode(values)  # type: ignore[union-attr]

    def half_given(self, given: Mapping[str, np.ndarray]) -> str | None:
        """A sum that is given in some row without all of its parts, if there is one."""
        for name, total in self.learned.numbers.totals.items():
            if name in given:
                there = ~np.isnan(given[name])
                parts = [given.get(part, np.full(len(there), np.nan)) for _, part in total.terms]
                if (there & np.isnan(np.sum(parts, axis=0))).any():
                    return name
        return None

    def completed(
        self, values: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values that keep the orders, with those that are given in them: others make room. What an ordered
        column is learned from moves with it, so that its distance stays."""
        found, numbers = dict(values), self.learned.numbers
        fixed = {n: ~np.isnan(given[n]) for n in numbers.lattices if n in given}
        for name, there in fixed.items():
            found[name] = np.where(there, given[name], values[name])
        for name in reversed(numbers.turns):
            limits = numbers.limits.get(name)
            if limits is None or name not in fixed or len(limits.learned) > 1:
                continue
            anchor = limits.learned[0].anchor
            free = fixed[name] & ~fixed.get(anchor, np.zeros(len(fixed[name]), bool))
            moved = values[anchor] + found[name] - values[name]
            found[anchor] = np.where(free & ~np.isnan(moved), moved, found[anchor])
        order = [n for n in numbers.lattices if n not in self.learned.decided] + list(numbers.turns)
        settled = dict(fixed)
        for name in order:
            rows = np.zeros(len(found[name]), bool)
            own = found[name]
            if name in numbers.totals:
                sums = numbers.lattices[name].near(numbers.totals[name].of(found))
                own = np.where(np.isnan(sums) | np.isnan(own), own, sums)
            else:
                low, high = self._room_beside(name, found, settled)
                own = np.clip(numbers.lattices[name].near(own), low, np.maximum(low, high))
            found[name] = np.where(fixed.get(name, rows), found[name], own)
            settled[name] = ~rows
        return found

    def _room_beside(
        self, name: str, found: Mapping[str, np.ndarray], settled: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Between which values a column may lie, given those that are settled, whatever else follows."""
        lattice, distances = self.learned.numbers.lattices[name], self.learned.numbers.distances
        low = np.full(len(found[name]), float(lattice.low))
        high = np.full(len(found[name]), float(lattice.high))
        for other, there in settled.items():
            up, down = distances.most(name, other), distances.most(other, name)
            beside = np.where(there, found[other], np.nan)
            if other != name and up is not None:
                high = np.fmin(high, lattice.down(beside + float(up)))
            if other != name and down is not None:
                low = np.fmax(low, lattice.up(beside - float(down)))
        return low, high

    def looked_back(
        self,
        values: dict[str, np.ndarray],
        given: Mapping[str, np.ndarray],
        rng: np.random.Generator,
    ) -> None:
        """Where a decided category is given and comes out otherwise, another of the values that decide it so."""
        wanted = dict(given)
        for rule, table in reversed(self.learned.dependences):
            to = wanted.get(rule.decided)
            if to is None:
                continue
            by = values[rule.decides].copy()
            for row in np.flatnonzero(~np.isnan(to) & (values[rule.decided] != to)):
                codes = [code for code, given_code in table.items() if given_code == to[row]]
                if codes:
                    by[row] = codes[int(rng.integers(len(codes)))]
            values[rule.decides] = by
            values[rule.decided] = np.where(np.isnan(to), values[rule.decided], to)
            if rule.decides in self.learned.decided:
                wanted[rule.decides] = by

    def decided_again(
        self, values: Mapping[str, np.ndarray], fixed: Fixed
    ) -> dict[str, np.ndarray]:
        """The same after other columns have changed: orders, sums and tables hold again."""
        numbers = {name: values[name] for name in self.learned.numbers.lattices}
        again = {**values, **self.learned.projected(numbers, fixed)}
        self.learned.look_up(again)
        return again
