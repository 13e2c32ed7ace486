"""Means and spreads of a table's classes, counted where its numbers really lie: what rows can be drawn from.

Declared ranges may be far wider than the rows. Sums of rows that are counted in measured ranges carry so much less
noise, and a kernel that sees rows in these ranges tells them apart.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...arrays import AnyArray
from ...features import Places
from ...privacy import Measurement, Sum
from ...schema import Schema
from ..class_counts import COUNTS, class_weights
from ..mean_embedding.spreads import SPREADS, NumbersAndSquares, axes_from
from .kernel import View

MOMENTS = "class moments"
"""Name of the question that measures them."""
MOST_UNITS = 2.0
"""Units (ranges of four standard deviations) from the middle beyond which a number counts no further."""
USUAL_UNITS = 0.5
"""Units of a number for which the norm of rows is planned; longer rows are shortened."""
LEAST_VARIANCE = 1e-4
"""Smallest variance of a number within all classes, in squared units."""
KERNEL_UNITS = 0.5
"""Units that the kernel sees as one."""


class RowsAndSquares(eqx.Module):
    """A row counted in measured ranges, and the squares of its numbers; together of norm at most 1."""

    centre: Float[Array, " slots"]
    unit: Float[Array, " slots"]
    numbers: tuple[int, ...] = eqx.field(static=True)
    """Slots that hold numbers; the others are chances of categories and of gaps."""
    columns: int = eqx.field(static=True)
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return len(self.centre) + len(self.numbers)

    @property
    def radius(self) -> float:
        """Norm of a row, squares and all, up to which it counts in full."""
        numbers = len(self.numbers)
        return float(np.sqrt(numbers * (USUAL_UNITS**2 + USUAL_UNITS**4) + self.columns - numbers))

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        counted = jnp.clip((rows - self.centre) / self.unit, -MOST_UNITS, MOST_UNITS)
        squares = counted[:, np.asarray(self.numbers, int)] ** 2
        both = jnp.concatenate([counted, squares], axis=1)
        norms = jnp.sqrt((both**2).sum(axis=1, keepdims=True))
        return both / jnp.maximum(norms, self.radius)


def spread_map(schema: Schema, seed: int) -> NumbersAndSquares:
    """For the ranges."""
    return NumbersAndSquares(Places(schema))


def moment_map(
    schema: Schema, seed: int, spreads: np.ndarray, counts: np.ndarray
) -> RowsAndSquares:
    """For the classes' means and squares, in ranges that were measured before."""
    places, axes = Places(schema), axes_from(np.ravel(spreads), counts)
    centre, unit = np.zeros(schema.slots, np.float32), np.ones(schema.slots, np.float32)
    slots = tuple(places.values[column] for column in places.numbers)
    centre[list(slots)] = np.asarray(axes.centre)[list(places.numbers)]
    unit[list(slots)] = np.asarray(axes.unit)[list(places.numbers)]
    return RowsAndSquares(jnp.asarray(centre), jnp.asarray(unit), slots, places.columns)


def spreads_asked(schema: Schema) -> Sum:
    """The question for the ranges."""
    return Sum.of_features(SPREADS, spread_map(schema, 0), schema, by="all")


def moments_asked(schema: Schema) -> Sum:
    """The question for the classes' means and squares."""
    columns = Places(schema).columns
    shape = moment_map(schema, 0, np.zeros(2 * columns), np.ones(len(schema.classes)))
    return Sum.of_features(MOMENTS, shape, schema)


def counted_in(schema: Schema, measured: dict[str, Measurement]) -> RowsAndSquares:
    """The ranges that were measured."""
    return moment_map(schema, 0, measured[SPREADS].values, measured[COUNTS].values)


def view_of(ranges: RowsAndSquares) -> View:
    """What a kernel sees of rows in such ranges; of chances, what it sees of all tables'."""
    centre, spread = np.full(len(ranges.centre), 0.5), np.full(len(ranges.centre), 0.5)
    at = list(ranges.numbers)
    centre[at] = np.asarray(ranges.centre)[at]
    spread[at] = KERNEL_UNITS * np.asarray(ranges.unit)[at]
    return View(centre, spread)


def rows_from_moments(
    schema: Schema, measured: dict[str, Measurement], per_class: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows drawn with each class's noisy means and spreads, (classes, per_class, slots)."""
    ranges, answer = counted_in(schema, measured), measured[MOMENTS]
    shares, total = class_weights(measured[COUNTS].values)
    sizes = np.maximum(shares * total, 1.0)[:, None]
    means = answer.values * ranges.radius / sizes
    at = list(ranges.numbers)
    squares = means[:, schema.slots :] - means[:, at] ** 2
    common = np.maximum((shares[:, None] * squares).sum(axis=0), LEAST_VARIANCE)
    # A class's own variances, as far as they stand out of their noise; else those that all classes have in common.
    error = answer.noise * ranges.radius / sizes
    own = common**2 / (common**2 + error**2)
    deviations = np.sqrt(own * np.maximum(squares, 0.0) + (1 - own) * common)
    rows = np.repeat(means[:, None, : schema.slots], per_class, axis=1)
    rows[:, :, at] += deviations[:, None] * _normal(rng, (len(means), per_class, len(at)))
    return np.clip(np.asarray(ranges.centre) + np.asarray(ranges.unit) * rows, 0.0, 1.0)


def _normal(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    """Normal numbers; where there are several rows of a class, of mean 0 and variance 1 within it."""
    drawn = rng.standard_normal(shape)
    if shape[1] < 3:
        return drawn
    centred = drawn - drawn.mean(axis=1, keepdims=True)
    return centred / centred.std(axis=1, keepdims=True)
