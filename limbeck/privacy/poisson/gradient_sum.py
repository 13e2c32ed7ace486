"""Sums of clipped gradients on the grid: one place for clip, margin, rounding and sensitivity.

A charge states a sensitivity S. `GradientSum` derives from it the norm to which rows are clipped, so
that one row more or less moves the integer total by at most S / grid steps. Two roads lead there.

**Rows made one by one.** Each is clipped, rounded to the grid (which adds at most sqrt(d)/2 steps)
and added as integers: exact in any order.

**Rows known by norms and sums alone** (`RowGradients`): a float64 sum with a proven margin. Let g_l be row
l's gradient, a function of that row and of public numbers; f_l its factor, a function of its norm and
size alone; size_l the norm of what g_l is added up from, with every sign taken positive. Sums
and products of float64 numbers, in whatever order, err by at most

    |computed - sum of f_l g_l|  <=  K 2**-52 (sum of f_l size_l),

where K counts the roundings on the longest way from a number to the total (`roundings`; Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1; 2**-52 is twice the unit roundoff and
covers terms of second order). Factors are lowered until f_l size_l <= most = E / (K 2**-52 N), so
for the first N = `PIECES` x `shape` rows of a batch, whichever they are, the error is at most E.
The sum is then rounded once, which adds sqrt(d)/2 steps. Rows beyond N are summed one at a
time, each alone in its padded batch, rounded and added as integers.

**One row more.** Rows of a batch are in the order of their identifiers, so the new row r is put between others and
pushes at most one row, b, across the border at N. The first parts of both batches are within
E + sqrt(d)/2 steps of their real sums, which differ by f_r g_r - f_b g_b. The integer parts
differ by b's own integers, within E/N + sqrt(d)/2 steps of f_b g_b. So all in all the totals differ by
at most

    clip + 2 E + E/N + 1.5 sqrt(d) steps  <=  S,     E = 1e-6 S,

and that inequality is `limit`.

**One person more.** A person's rows, m at most, are each clipped and then counted for one part in as many
as there are, so their norms add up to clip. Made one by one, they are rounded m times: m/2 sqrt(d)
steps. Otherwise the new rows, and those that they push across the border at N, are together at
most m beyond it, so m stands where one row more has 1: the totals differ by at most

    clip + 2 E + m E/N + (1 + m/2) sqrt(d) steps  <=  S.

Half of E is for the proof above. The other half is for what it
takes for granted: that a row's norm, size and coefficients, computed in batches of one
fixed shape, do not depend on its place there. The tests find them equal to the last bit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import jax
import numpy as np

from ...comparable import comparable
from ...errors import LimbeckError
from ..discrete import discrete_gaussian
from ..grid import clip_rows, grid_step, weighted
from ..maps import padded
from ..noise import Stream
from .row_gradients import RowBlocks, RowGradients

ERROR = 1e-6
"""Most that a float64 sum may err by, in parts of the sensitivity: E."""
PROVEN = 0.5
"""Share of E that the rounding of sums may use; the rest is for rows' places in a batch."""
PIECES = 2
"""Pieces of a batch that are added up in float64; rows beyond go one by one."""
EXACT_STEPS = 2**40
"""Grid of sums without noise (epsilon = infinity), in steps per sensitivity: 2^23 rows of a batch sum
exactly. More would not, which without noise protects no one anyway."""

Load = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Places of at most `shape` rows to their slots and labels, padded to that shape with labels -1."""


@dataclass(frozen=True, kw_only=True)
class GradientSum:
    """A sum of clipped gradients, of which one row moves at most `sensitivity`.

    Args:
        sensitivity: As charged.
        noise: Standard deviation of the noise to be added; 0 for none.
        size: Coordinates of a gradient.
        shape: Rows in a piece of a batch.
        rows_at_most: Of a person, who enters with all of them: m.
    """

    sensitivity: float
    noise: float
    size: int
    shape: int
    rows_at_most: int = 1

    @property
    def grid(self) -> float:
        """Width of a grid step."""
        if self.noise > 0:
            return grid_step(self.sensitivity, self.noise)
        return self.sensitivity / EXACT_STEPS

    @property
    def limit(self) -> float:
        """Norm in grid steps to which rows are clipped: what margin and rounding leave of S."""
        whole = math.floor(self.sensitivity / self.grid)
        pushed = max(1.0, self.rows_at_most / (PIECES * self.shape))
        roundings = 1 + 0.5 * self.rows_at_most
        limit = whole * (1 - (2 + pushed) * ERROR) - roundings * math.sqrt(self.size) - 1
        if limit <= 0:
            raise LimbeckError(
                f"{self.size} parameters are too many for this much noise: the grid is coarser than "
                "a gradient. Use fewer parameters or a larger epsilon."
            )
        return limit

    @property
    def clip(self) -> float:
        """The same in real units."""
        return self.limit * self.grid

    def most(self, roundings: int) -> float:
        """Largest size of a clipped row's terms, so that planned rows err by no more than E."""
        planned = PIECES * self.shape
        return PROVEN * ERROR * self.sensitivity / ((roundings + PIECES + 2) * 2.0**-52 * planned)

    def factors(
        self, norms: np.ndarray, sizes: np.ndarray, roundings: int, labels: np.ndarray
    ) -> np.ndarray:
        """By what each row's gradient is multiplied: a function of that row alone.

        Rows without a label (or padding), and rows without a finite norm and size, get 0.
        """
        clip, most = self.clip, self.most(roundings)
        with np.errstate(invalid="ignore"):
            counts = (labels >= 0) & np.isfinite(norms) & (norms >= 0) & np.isfinite(sizes)
        norms, sizes = np.where(counts, norms, clip), np.where(counts, sizes, most)
        shortened = np.minimum(clip / np.maximum(norms, clip), most / np.maximum(sizes, most))
        return np.where(counts, shortened, 0.0)

    def total(
        self,
        source: Callable[..., Any] | RowGradients | RowBlocks,
        parameters: np.ndarray,
        batch: np.ndarray,
        load: Load,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """The integer sum (size,) of the clipped gradients of a batch's rows, given by their places;
        of each as much as it counts for."""
        if hasattr(source, "prepare"):
            return self._ghost(cast(RowGradients, source), parameters, batch, load, weights)
        blocks = source.blocks if hasattr(source, "blocks") else _one_block(comparable(source))
        total = np.zeros(self.size, np.int64)
        for piece in _pieces(batch, self.shape):
            slots, labels = load(piece)
            counts = self._weights(weights, piece)
            for start, gradients in blocks(parameters, slots, labels):
                wide = np.array(gradients, np.float64).reshape(len(gradients), -1)
                part = slice(start, start + len(wide))
                wide[labels[part] < 0] = 0.0
                clipped = clip_rows(self._checked(wide), self.limit, 1.0 / self.grid)
                total += self._rounded(
                    weighted(clipped, counts if counts is None else counts[part])
                )
        return total

    def _weights(self, weights: np.ndarray | None, piece: np.ndarray) -> np.ndarray | None:
        """What the rows of a piece count for, padded to its shape."""
        return None if weights is None else padded(weights[piece], self.shape)

    def _ghost(
        self,
        source: RowGradients,
        parameters: np.ndarray,
        batch: np.ndarray,
        load: Load,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        def clipped_sum(piece: np.ndarray) -> np.ndarray:
            slots, labels = load(piece)
            prepared = source.prepare(parameters, slots, np.maximum(labels, 0))
            factors = self.factors(prepared.norms, prepared.sizes, prepared.roundings, labels)
            if weights is not None:
                factors = factors * self._weights(weights, piece)
            noiseless = self._checked(prepared.weighted_sum(factors)[None])[0]
            # Cannot happen: sizes are finite. What is not a number must not become an integer.
            return noiseless if np.isfinite(noiseless).all() else np.zeros(self.size)

        planned = PIECES * self.shape
        summed = np.zeros(self.size)
        for piece in _pieces(batch[:planned], self.shape):
            summed += clipped_sum(piece)
        total = np.rint(summed / self.grid).astype(np.int64)
        for place in batch[planned:]:
            total += self._rounded(clipped_sum(np.asarray([place]))[None] / self.grid)
        return total

    def finalise(self, total: np.ndarray, stream: Stream) -> np.ndarray:
        """The noisy sum in real units, (size,)."""
        if self.noise > 0:
            total = total + discrete_gaussian(stream, self.size)
        return total * self.grid

    def _rounded(self, scaled: np.ndarray) -> np.ndarray:
        """The sum of rows in whole steps, each rounded by itself."""
        whole = np.rint(scaled)
        norms = np.einsum("ij,ij->i", whole, whole)
        whole[norms > (self.sensitivity / self.grid) ** 2] = 0.0  # cannot happen; must not happen
        return whole.astype(np.int64).sum(axis=0)

    def _checked(self, gradients: np.ndarray) -> np.ndarray:
        if gradients.shape[1:] != (self.size,):
            raise RuntimeError(f"gradients of shape {gradients.shape[1:]}, planned {self.size}")
        return gradients


def _pieces(batch: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(batch), size):
        yield batch[start : start + size]


@functools.lru_cache(maxsize=8)
def _one_block(loss: Callable[..., Any]) -> Callable[..., Iterator[tuple[int, Any]]]:
    each = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))

    def blocks(parameters: Any, slots: Any, labels: Any) -> Iterator[tuple[int, Any]]:
        yield 0, each(parameters, slots, labels)

    return blocks
