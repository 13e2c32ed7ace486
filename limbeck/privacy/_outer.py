"""Sums of outer products over rows, exact in integers: one matrix product instead of many rows.

A contribution left (x) right has norm |left| |right|, so it is clipped without being made. Both
factors are rounded to 16 bits, left after scaling to norm 1, right after clipping; then products
and their sums are whole numbers that float64 and int64 hold exactly, in any order. One row changes
the total by at most the bound; rounding the total to the noise's grid once adds half a step per
coordinate to each of two neighbours, which the clip leaves room for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._check import LimbeckError
from ._discrete import SIGMA, discrete_gaussian
from ._noise import Stream
from ._sum import EXACT_STEPS, MARGIN

UNIT = 1 << 16
"""Steps of a rounded factor: products below 2^33, so 2^20 of them sum exactly in float64."""
CHUNK = 1 << 18


@dataclass(frozen=True, kw_only=True)
class OuterSum:
    """A sum of bounded outer products, per group.

    Args:
        bound: Largest norm of one row's contribution.
        noise: Standard deviation of the noise to be added; 0 for none.
        groups: Number of groups (classes); a row belongs to one, or with -1 to none.
        left: Size of the left factor.
        right: Size of the right factor.
    """

    bound: float
    noise: float
    groups: int
    left: int
    right: int

    @property
    def grid(self) -> float:
        return self.noise / SIGMA if self.noise > 0 else self.bound / EXACT_STEPS

    @property
    def limit(self) -> float:
        """Norm, in steps of a factor, to which the right one is clipped before rounding."""
        whole = 1.0 - 1.01 * math.sqrt(self.left * self.right) * self.grid / self.bound
        tallest = 1.0 + 0.5 * math.sqrt(self.left) / UNIT  # the left factor's norm, rounded
        limit = UNIT * whole / tallest - 0.5 * math.sqrt(self.right) - 1
        if limit <= 0:
            raise LimbeckError(
                f"{self.left} x {self.right} features are too many for this much noise: the grid is "
                "coarser than a contribution. Use fewer features or a larger epsilon."
            )
        return limit

    def zero(self) -> np.ndarray:
        return np.zeros((self.groups, self.left, self.right), np.int64)

    def round_left(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Left factors scaled to norm 1 in whole steps (float32), and the norms they had."""
        wide = rows.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * (1 + MARGIN)
        usable = np.isfinite(norms) & (norms > 0)
        wide[~usable] = 0.0
        norms = np.where(usable, norms, 0.0)
        scale = np.divide(UNIT, norms, out=np.zeros_like(norms), where=usable)
        wide *= scale[:, None]
        return np.rint(wide, out=wide).astype(np.float32), norms

    def round_right(self, rows: np.ndarray, left_norms: np.ndarray) -> np.ndarray:
        """Right factors times the left one's norm, clipped, in whole steps (float64)."""
        wide = rows.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            wide *= (left_norms * (UNIT / self.bound))[:, None]
            norms = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * (1 + MARGIN)
        finite = np.isfinite(norms)
        wide[~finite] = 0.0
        norms = np.where(finite, norms, 0.0)
        wide *= np.minimum(1.0, self.limit / np.maximum(norms, self.limit))[:, None]
        return np.rint(wide, out=wide)

    def accumulate(self, left: np.ndarray, right: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The partial sum of some rounded rows."""
        if left.shape != (len(groups), self.left) or right.shape != (len(groups), self.right):
            raise RuntimeError(
                f"factors of {left.shape[1:]} and {right.shape[1:]}, planned {self.left} and {self.right}"
            )
        if len(groups) > CHUNK:
            raise RuntimeError(f"more than {CHUNK} rows at once would not sum exactly")
        total = self.zero()
        for group in range(self.groups):
            member = groups == group if self.groups > 1 else groups >= 0
            # One group and all rows in it: nothing to pick out.
            some = (left, right) if member.all() else (left[member], right[member])
            total[group] = some[0].T.astype(np.float64) @ some[1]
        return total

    def finalise(self, total: np.ndarray, stream: Stream) -> np.ndarray:
        """The noisy sum in real units, (groups, left, right)."""
        steps = np.rint(total * (self.bound / UNIT**2 / self.grid)).astype(np.int64)
        if self.noise > 0:
            steps += discrete_gaussian(stream, steps.size).reshape(steps.shape)
        return steps * self.grid


@dataclass(frozen=True, kw_only=True)
class OuterBlocks:
    """A sum of contributions that are several outer products side by side, bounded together.

    A contribution's squared norm is the sum of its blocks', so the left factors are scaled to norm
    1 one by one, and the right ones clipped all together. That is one outer product of the tallest
    left factor and all right ones, as far as norms go, so its limit holds here too.

    Args:
        bound: Largest norm of one row's contribution.
        noise: Standard deviation of the noise to be added; 0 for none.
        groups: Number of groups (classes); a row belongs to one, or with -1 to none.
        blocks: Sizes of the two factors of each block.
    """

    bound: float
    noise: float
    groups: int
    blocks: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return sum(left * right for left, right in self.blocks)

    @property
    def _whole(self) -> OuterSum:
        tallest, together = max(a for a, _ in self.blocks), sum(b for _, b in self.blocks)
        return OuterSum(
            bound=self.bound, noise=self.noise, groups=self.groups, left=tallest, right=together
        )

    def zero(self) -> np.ndarray:
        return np.zeros((self.groups, self.size), np.int64)

    def round(
        self, pairs: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Left factors of norm 1 and right ones clipped together, in whole steps."""
        found = tuple((left.shape[1], right.shape[1]) for left, right in pairs)
        if found != self.blocks:
            raise RuntimeError(f"factors of {found}, planned {self.blocks}")
        whole, lefts, rights = self._whole, [], []
        for left, right in pairs:
            rounded, norms = whole.round_left(left)
            lefts.append(rounded)
            with np.errstate(over="ignore", invalid="ignore"):
                rights.append(right.astype(np.float64) * norms[:, None])
        ones = np.ones(len(rights[0]))
        clipped = whole.round_right(np.concatenate(rights, axis=1), ones)
        return lefts, np.split(clipped, np.cumsum([b for _, b in self.blocks])[:-1], axis=1)

    def add(
        self,
        total: np.ndarray,
        lefts: Sequence[np.ndarray],
        rights: Sequence[np.ndarray],
        groups: np.ndarray,
    ) -> None:
        """Add some rounded rows to a total, in place: totals may be large."""
        if len(groups) > CHUNK:
            raise RuntimeError(f"more than {CHUNK} rows at once would not sum exactly")
        for group in range(self.groups):
            member = groups == group if self.groups > 1 else groups >= 0
            start = 0
            for left, right in zip(lefts, rights, strict=True):
                part = left[member].T.astype(np.float64) @ right[member]
                total[group, start : start + part.size] += part.astype(np.int64).ravel()
                start += part.size

    def finalise(self, total: np.ndarray, stream: Stream) -> np.ndarray:
        """The noisy sum in real units, (groups, size)."""
        grid = self._whole.grid
        out = np.empty(total.shape)
        for row, made in zip(total, out, strict=True):
            np.rint(row * (self.bound / UNIT**2 / grid), out=made)
            if self.noise > 0:
                made += discrete_gaussian(stream, len(row))  # whole numbers below 2^53: exact
            made *= grid
        return out
