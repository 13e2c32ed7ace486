"""Sums over rows, exact in integers: accumulate -> merge -> finalise.

Every row's contribution is clipped to the declared bound, put on the grid, and summed as
integers. So partial sums merge to the same total in any order on any number of machines, and one
row changes the total by at most the bound, exactly. Noise is added once, by whoever finalises.

Nothing overflows: a contribution has at most 2^32 steps, which is refused otherwise when a run is
planned, and there are at most 2^30 rows (`ROWS_AT_MOST`), so totals stay below 2^62.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..accounting import SIGMA
from ..errors import LimbeckError
from .discrete import discrete_gaussian
from .noise import Stream
from .ones import Ones

EXACT_STEPS = 2**26
"""Grid of sums without noise (epsilon = infinity), in steps per bound."""
STEPS_AT_MOST = 2**32
"""Grid steps of one contribution."""
WHOLE = 2**53
"""Up to here float64 holds every whole number."""
MARGIN = 1e-9
"""Relative allowance for rounding in float64 norms."""


def grid_step(bound: float, noise: float) -> float:
    """Width of a grid step: a fixed part of the noise; where there is none, of the bound."""
    step = noise / SIGMA if noise > 0 else bound / EXACT_STEPS
    if bound > STEPS_AT_MOST * step:
        raise LimbeckError(
            f"Noise of {noise:g} is too little for contributions of {bound:g}: on its fine grid, sums "
            "of many rows would overflow. Use a smaller epsilon."
        )
    return step


@dataclass(frozen=True, kw_only=True)
class GridSum:
    """A sum of bounded contributions, per group, on a grid.

    Args:
        bound: Largest L2 norm of one row's contribution.
        noise: Standard deviation of the noise to be added; 0 for none.
        groups: Number of groups (classes); a row belongs to one, or with -1 to none.
        size: Coordinates of one contribution.
        rows_at_most: Of a person, who contribute together: as many roundings have room in the bound.
    """

    bound: float
    noise: float
    groups: int
    size: int
    rows_at_most: int = 1

    @property
    def grid(self) -> float:
        """Width of a grid step."""
        return grid_step(self.bound, self.noise)

    @property
    def unit(self) -> int:
        """The bound in whole grid steps: what a row adds to a count."""
        return math.floor(self.bound / self.grid)

    @property
    def limit(self) -> float:
        """Norm in grid steps to which rows are clipped before rounding, which may add sqrt(d)/2 to
        each. A person's rows are weighted so that their norms add up to no more than one row's."""
        limit = self.unit - 0.5 * self.rows_at_most * math.sqrt(self.size) - 1
        if limit <= 0:
            raise LimbeckError(
                f"{self.size} features are too many for this much noise: the grid is coarser than "
                "a contribution. Use fewer features or a larger epsilon."
            )
        return limit

    def zero(self) -> np.ndarray:
        """The partial sum of no rows."""
        return np.zeros((self.groups, self.size), np.int64)

    def accumulate(
        self, contributions: np.ndarray, groups: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """The partial sum of some rows: contributions (rows, size), groups (rows,), and what each row
        counts for once it is clipped; None: one."""
        if contributions.shape != (len(groups), self.size):
            raise RuntimeError(f"shape {contributions.shape[1:]}, planned {self.size}")
        self._check(len(groups))
        whole = self.rounded(contributions, weights)
        member = (groups[None, :] == np.arange(self.groups)[:, None]).astype(np.float64)
        # Sums of whole numbers up to 2^53: exact in float64, in any order; this one is the quickest.
        return (whole.T @ member.T).T.astype(np.int64, order="C")

    def accumulate_ones(
        self, ones: Ones, groups: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """The same for contributions that are ones and zeros."""
        if ones.size != self.size:
            raise RuntimeError(f"{ones.size} features, planned {self.size}")
        self._check(len(groups))
        examples, own, kind = ones.kinds(weights)
        return ones.counted(self.rounded(examples, own)[kind, 0], groups, self.groups)

    def _check(self, rows: int) -> None:
        if rows * self.unit > WHOLE:
            raise RuntimeError("so many rows at once would not sum exactly")

    def rounded(self, contributions: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Contributions clipped, times what each row counts for, in whole grid steps (float64)."""
        scaled = weighted(clip_rows(contributions, self.limit, 1.0 / self.grid), weights)
        whole = np.rint(scaled, out=scaled)
        norms = np.einsum("ij,ij->i", whole, whole)
        whole[norms > (self.bound / self.grid) ** 2] = 0.0  # cannot happen; must not happen
        return whole

    def finalise(self, total: np.ndarray, stream: Stream) -> np.ndarray:
        """The noisy sum in real units, (groups, size)."""
        if self.noise > 0:
            total = total + discrete_gaussian(stream, total.size).reshape(total.shape)
        return total * self.grid


def weighted(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Rows times what each counts for, in place."""
    if weights is not None:
        rows *= weights[:, None]
    return rows


def clip_rows(rows: np.ndarray, limit: float, scale: float) -> np.ndarray:
    """Scaled rows (float64) shortened to norm `limit`; rows that are not finite become zero. The norm
    is over-estimated by more than float64's rounding, so that an error costs accuracy, not privacy."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * (scale * (1 + MARGIN))
    wrong = ~np.isfinite(norms)
    wide[wrong], norms[wrong] = 0.0, 0.0
    wide *= (scale * np.minimum(1.0, limit / np.maximum(norms, limit)))[:, None]
    return wide
