"""Where a table's numbers really lie, paid for: teachers see rows, and a generator makes them, in these ranges.

A declared range is often far wider than nearly all rows. A generator that begins all over it must first find
them, and what it happens to begin with tells classes apart more than the rows do.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...arrays import AnyArray
from ...features import Places
from ...schema import Schema
from ..mean_embedding.spreads import RANGE_DEVIATIONS, axes_from

HALF_DEVIATIONS = 8.0
"""Standard deviations from the middle of a range to each end: rare classes lie far out."""


class InRanges(eqx.Module):
    """A row counted in ranges: numbers in [0, 1] where the range ends, and clipped there."""

    low: tuple[float, ...] = eqx.field(static=True)
    wide: tuple[float, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        return len(self.low)

    @property
    def norm_bound(self) -> float:
        return float(np.sqrt(self.size))

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows slots"]:
        low, wide = (jnp.asarray(side, jnp.float32) for side in (self.low, self.wide))
        return jnp.clip((rows - low) / wide, 0.0, 1.0)


def ranges_from(schema: Schema, sums: np.ndarray, counts: np.ndarray) -> dict[str, list[float]]:
    """Lower end and width of each slot's range, as settings of a generator.

    Args:
        schema: Of a table.
        sums: Noisy sums of `NumbersAndSquares`.
        counts: Noisy number of rows of each class.
    """
    axes, places = axes_from(sums, counts), Places(schema)
    half = HALF_DEVIATIONS / RANGE_DEVIATIONS * np.asarray(axes.unit)
    centre = np.asarray(axes.centre)
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    ends = np.tile([[0.0], [1.0]], schema.slots)  # categories and gaps stay as they are
    for column in places.numbers:
        ends[:, places.values[column]] = low[column], high[column]
    return {"low": ends[0].tolist(), "wide": (ends[1] - ends[0]).tolist()}
