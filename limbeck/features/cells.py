"""The finest cells of a table's columns, and how a few of them are grouped for pair counts."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..arrays import AnyArray
from ..schema import Category, Column, Image, Numeric, Schema


@dataclass(frozen=True, kw_only=True)
class Cells:
    """One column cut into cells: a category's values, whole numbers, or an even grid; and "missing".

    On a grid the two bounds are cells of their own, for clipped values and amounts of nothing pile
    up there.

    >>> Cells(column=Numeric(name="x", min=0, max=1), grid=4).count
    6
    """

    column: Column
    grid: int
    """Number of cells of a number with more values than that, beside one for each bound."""

    @property
    def _number(self) -> Numeric | None:
        if isinstance(self.column, Image):
            raise TypeError("an image has no cells")
        if isinstance(self.column, Category):
            return None
        return self.column.number

    @property
    def _units(self) -> int | None:
        """Values of a number between its bounds, less one; None for fractions of any size."""
        return None if self._number is None else self._number.units

    @property
    def _edges(self) -> np.ndarray | None:
        """Where cells of a logarithmic scale meet, in [0, 1]; None on other scales.

        With steps, edges lie half-way between values, and every cell holds at least one: small values
        have cells of their own. Without, the cells are even, and each bound is one.
        """
        number = self._number
        if number is None or number.scale != "log" or number.range[0] == number.range[1]:
            return None
        even = np.linspace(0.0, 1.0, self.grid + 1)
        step, low = number.lattice, number.range[0]
        if step is None:
            return np.concatenate([[np.finfo(np.float32).tiny], even[1:-1], [1.0]])
        counted = np.floor((number.from_unit(even) - low) / step)[:-1]
        middles = low + step * (np.unique(counted[counted < self._units]) + 0.5)
        return number.to_unit(middles)

    @property
    def _whole(self) -> bool:
        """Whether the column holds whole numbers, each with a cell of its own."""
        linear = self._number is not None and self._number.scale == "linear"
        return linear and self._units is not None and self._units + 1 <= self.grid + 2

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold neighbouring values."""
        return self._number is not None

    @property
    def logarithmic(self) -> bool:
        """Whether cells get wider as values grow."""
        return self._edges is not None

    @property
    def values(self) -> int:
        """Cells that hold values; "missing" is one more."""
        if isinstance(self.column, Category):
            return len(self.column.values)
        if self._edges is not None:
            return len(self._edges) + 1
        return self._units + 1 if self._whole and self._units is not None else self.grid + 2

    @property
    def missing(self) -> bool:
        return not isinstance(self.column, Image) and self.column.missing

    @property
    def count(self) -> int:
        return self.values + self.missing

    def indicators(self, slots: Float[AnyArray, "rows slots"]) -> Float[Array, "rows cells"]:
        """1 in the cell where a row lies; nowhere for a category without a declared value."""
        if self._number is None:
            return jnp.asarray(slots)
        indicators = jax.nn.one_hot(self._code(slots[:, 0]), self.values)
        if not self.missing:
            return indicators
        gone = slots[:, 1:2]
        return jnp.concatenate([indicators * (1 - gone), gone], axis=1)

    def place(self, slots: Float[AnyArray, "rows slots"]) -> Int[Array, " rows"]:
        """The number of the cell where a row lies; -1 for a category without a declared value."""
        if self._number is None:
            numbers = jnp.arange(1, slots.shape[1] + 1, dtype=jnp.float32)
            return (
                jnp.rint(jnp.asarray(slots) @ numbers).astype(jnp.int32) - 1
            )  # of a one and zeros
        code = self._code(slots[:, 0])
        return jnp.where(slots[:, 1] > 0, self.values, code) if self.missing else code

    def _code(self, value: Float[AnyArray, " rows"]) -> Int[Array, " rows"]:
        """The cell of a number, told by its place in [0, 1]."""
        if self._edges is not None:
            code = jnp.searchsorted(jnp.asarray(self._edges, jnp.float32), value, side="right")
        elif self._whole:
            code = jnp.rint(value * (self.values - 1))
        else:
            code = 1 + jnp.minimum(jnp.floor(value * self.grid), self.grid - 1)
            code = jnp.where(value <= 0, 0, jnp.where(value >= 1, self.grid + 1, code))
        return code.astype(jnp.int32)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """The number of the cell of each of a column's encoded values."""
        slots = self.column.expand(values.astype(np.float32))
        return np.asarray(self.indicators(jnp.asarray(slots))).argmax(axis=1)

    def draw(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A column's encoded values (float32), drawn evenly within the cells."""
        single = self._number is None or (self._whole and self._edges is None)
        return self.placed(codes, np.zeros(len(codes)) if single else rng.random(len(codes)))

    def placed(self, codes: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """A column's encoded values (float32), at a fraction in [0, 1) of each cell: within a cell they
        rise with it."""
        if self._number is None:
            return codes.astype(np.float32)
        if self._edges is not None:
            value = self._between(codes, self._edges, chance)
        elif self._whole:
            value = codes / max(1, self.values - 1)
        else:
            # One of the whole numbers of the cell; the bounds have cells of their own.
            if self._units:
                first, after = (np.ceil((codes - at) * self._units / self.grid) for at in (1, 0))
                first, last = np.maximum(first, 1), np.minimum(after - 1, self._units - 1)
                value = (first + np.floor(chance * (last - first + 1))) / self._units
            else:
                value = (codes - 1 + chance) / self.grid
            value = np.where(codes == 0, 0.0, np.where(codes == self.grid + 1, 1.0, value))
        return np.where(codes == self.values, np.nan, value).astype(np.float32)

    def _between(self, codes: np.ndarray, edges: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Places in [0, 1] at a fraction of cells of a logarithmic scale, at values that there are."""
        number = self._number
        assert number is not None
        ends = np.concatenate([[0.0], edges, [1.0]])
        at = np.minimum(codes, len(edges))
        drawn = ends[at] + chance * (ends[at + 1] - ends[at])
        return number.to_unit(number.on_lattice(number.from_unit(drawn)))


def table_cells(schema: Schema, grid: int) -> tuple[Cells, ...]:
    """The cells of every column but the label."""
    return tuple(Cells(column=column, grid=grid) for column in schema.inputs)


def most_cells(column: Column, grid: int) -> int:
    """How many cells a column may have, whatever its bounds or values are estimated to be."""
    count = Cells(column=column, grid=grid).count
    if isinstance(column, Category) and column.most is not None:
        return max(count, column.most + 1 + column.missing)
    if isinstance(column, Numeric) and column.outer is not None:
        wide = Numeric(
            name=column.name,
            integer=column.integer,
            min=column.outer[0],
            max=column.outer[1],
            missing=column.missing,
            scale=column.scale,
            step=column.step,
        )
        return max(count, Cells(column=wide, grid=grid).count)
    return count


def group_cells(cells: Cells, counts: np.ndarray, *, most: int, floor: float) -> np.ndarray:
    """The group (from 0) of each of a column's cells; groups are about equally heavy.

    Neighbouring numbers are joined; of categories the rare ones. "Missing" stands alone.

    Args:
        cells: The column.
        counts: Noisy, non-negative counts of its cells.
        most: Number of groups of values, at most.
        floor: Rows that a group should hold, or the noise in its pairs drowns it.
    """
    weights = counts[: cells.values]
    most = min(most, cells.values)
    groups = _runs(weights, most, floor) if cells.ordered else _frequent(weights, most, floor)
    return np.append(groups, groups.max() + 1) if cells.missing else groups


def joined_groups(cells: Cells, groups: np.ndarray, counts: np.ndarray, *, most: int) -> np.ndarray:
    """The group of each of a column's cells when groups are joined until there are at most so many; "missing"
    still stands alone.

    Args:
        cells: The column.
        groups: The group of each cell, from 0, as `group_cells` gives it.
        counts: Noisy, non-negative counts of its cells.
        most: Number of groups of values, at most.
    """
    own = groups[: cells.values]
    weights = np.bincount(own, counts[: cells.values])
    joined = _runs(weights, most, 0.0) if cells.ordered else _frequent(weights, most, 0.0)
    found = joined[own]
    return np.append(found, found.max() + 1) if cells.missing else found


def _frequent(weights: np.ndarray, most: int, floor: float) -> np.ndarray:
    """Each frequent value alone, all others together."""
    order = np.argsort(-weights, kind="stable")
    alone = int(min((weights >= floor).sum(), len(weights)))
    if alone < len(weights) or alone > most:
        alone = min(alone, most - 1)
    groups = np.full(len(weights), alone)
    groups[order[:alone]] = np.arange(alone)
    return groups


def _runs(weights: np.ndarray, most: int, floor: float) -> np.ndarray:
    """Runs of neighbours of about the same weight; a cell heavier than a run's share stands alone."""
    heavy = weights >= max(weights.sum() / most, floor)
    runs = max(1, most - int(heavy.sum()))
    share = max(weights[~heavy].sum() / runs, floor)
    starts, weight = [0], weights[0]
    for i in range(1, len(weights)):
        full = weight + weights[i] / 2 >= share
        if heavy[i] or heavy[i - 1] or full:
            starts.append(i)
            weight = 0.0
        weight += weights[i]
    groups = np.zeros(len(weights), np.int64)
    groups[starts[1:]] = 1
    groups = np.cumsum(groups)
    # Remnants beside heavy cells, and whatever exceeds the number allowed: to the lighter neighbour.
    while groups.max() > 0:
        mass = np.bincount(groups, weights)
        least = int(mass.argmin())
        if mass[least] >= 0.3 * floor and len(mass) <= most:
            break
        sides = [side for side in (least - 1, least + 1) if 0 <= side < len(mass)]
        other = min(sides, key=lambda side: mass[side])
        groups[groups >= max(least, other)] -= 1
    return groups
