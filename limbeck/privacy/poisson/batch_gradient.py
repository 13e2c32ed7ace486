"""`BatchGradient`: what a Poisson batch says as a whole, clipped, step after step.

A row's part in it cannot be told apart: how one row counts may depend on all others of the batch, as in
optimal transport. So rows are not clipped one by one; the whole vector is, to norm `clip`.

**One row more.** Whatever the map makes of a batch, what is noised lies in the ball of that norm: of any two batches
the vectors are at most twice its radius apart. So S = 2 clip is charged. In whole steps of the grid: the vector is
shortened to floor(S / grid) / 2 - sqrt(d)/2 - 1 steps and rounded, which adds at most sqrt(d)/2. A vector that
is not finite becomes zero, which is in the ball. Nothing is asked of the map: not that it is exact, nor that it heeds
every row. So of a batch beyond its shape the first rows are seen, in the order of their secret names.

**Sampling** is credited at that sensitivity. Let P(b) be the chance of a batch without the row. A step
without the row is a mixture of N(f(b)) over b; with it, of (1 - q) N(f(b)) + q N(f(b + row)) at the same P. Every
hockey-stick divergence is jointly convex, in either direction, so that of the mixtures is at most the largest over b,
and there both centres are at most S apart: what the subsampled Gaussian is accounted at. That the map is no sum
plays no part in it. It holds for adding and removing; replacing is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from ...accounting import Charge
from ...errors import LimbeckError
from ..grid import clip_rows
from .gradient_sum import GradientSum, Load
from .gradients import Gradients


class WholeBatch(Protocol):
    """What is made of a batch. Nothing that it says is believed: it is clipped."""

    def whole(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> Any:
        """The vector (size,) of a batch in its fixed shape; padding, and rows without a label, have label -1."""


@dataclass(frozen=True, kw_only=True)
class BatchVector(GradientSum):
    """One vector of a batch, of which no batch moves more than half the sensitivity away from nothing."""

    @property
    def limit(self) -> float:
        """Norm in grid steps to which the vector is clipped: what rounding leaves of half of S."""
        limit = math.floor(self.sensitivity / self.grid) / 2 - 0.5 * math.sqrt(self.size) - 1
        if limit <= 0:
            raise LimbeckError(
                f"{self.size} entries are too many for this much noise: the grid is coarser than "
                "a gradient. Use fewer or a larger epsilon."
            )
        return limit

    def total(
        self,
        source: Callable[..., Any] | Any,
        parameters: np.ndarray,
        batch: np.ndarray,
        load: Load,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """The clipped vector (size,) of a batch, in whole steps. What rows count for is the map's affair."""
        vector = cast(WholeBatch, source).whole(parameters, *load(batch[: self.shape]))
        wide = np.asarray(vector, np.float64).reshape(1, -1)
        whole = np.rint(clip_rows(self._checked(wide), self.limit, 1.0 / self.grid))[0]
        if 4 * float(whole @ whole) > (self.sensitivity / self.grid) ** 2:
            whole[:] = 0.0  # cannot happen; must not happen
        return whole.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class BatchGradient(Gradients):
    """Noisy vectors (size,), each made of a fresh Poisson batch as a whole at parameters of one's choice.

    The map is a `WholeBatch`. A step's state is `parameters`, flat.

    Privacy:
        A row enters a step with probability `rate`, by a coin of its own. The batch's vector is clipped to norm
        `clip`, so a row more or less moves it by at most 2 x `clip`. Discrete Gaussian noise. Where persons are
        protected, a person enters with all kept rows, and moves it by no more.

    Args:
        clip: Norm to which the vector is clipped: half of what a row may move it by.
        size, rate, rows, count, parameters: As for `Gradients`.
    """

    sums: ClassVar[type[GradientSum]] = BatchVector

    def measured(self) -> tuple[Charge, ...]:
        (charge,) = super().measured()
        return (replace(charge, sensitivity=2 * self.clip),)
