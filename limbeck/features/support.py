"""A support: the few rows that are learned, part of whose numbers may be fixed for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..draws import normal


@dataclass(frozen=True, eq=False)
class Support:
    """A support with its targets, and which of its numbers are learned.

    Args:
        start: All numbers, (rows, slots); the fixed ones keep these values.
        targets: What regression is to predict at each row, (rows, classes).
        free: Which numbers are learned: (slots,) for all rows alike, (rows, slots), or None for all.
    """

    start: np.ndarray
    targets: np.ndarray
    free: np.ndarray | None = None

    @property
    def shared(self) -> bool:
        """Whether all rows are free in the same places."""
        return self.free is None or self.free.ndim == 1

    @property
    def size(self) -> int:
        """How many numbers are free."""
        return int(self.masks.sum())

    @property
    def masks(self) -> np.ndarray:
        """Which numbers are free, (rows, slots)."""
        free = np.ones(1, bool) if self.free is None else self.free
        return np.broadcast_to(free, self.start.shape)

    def pick(self, rows: Any) -> np.ndarray:
        """The free numbers of rows shaped like the support, flat."""
        return np.asarray(rows)[self.masks]

    def place(self, free: Any) -> np.ndarray:
        """The support (rows, slots), in float64, whose free numbers are these."""
        rows = np.array(self.start, np.float64)
        rows[self.masks] = free
        return rows

    def place_traced(self, free: Array) -> Array:
        """The same as `place`, in code that JAX compiles or differentiates."""
        mask = self.masks
        if mask.all():
            return free.reshape(mask.shape)
        at = jnp.asarray(np.flatnonzero(mask))
        return jnp.asarray(self.start, free.dtype).ravel().at[at].set(free).reshape(mask.shape)


def gaussian_support(
    targets: np.ndarray,
    slots: int,
    *,
    spread: float = 1.0,
    corrupted: float = 0.0,
    per_row: bool = False,
    key: Array,
) -> Support:
    """A support of normal numbers, drawn without data.

    Args:
        targets: What regression is to predict at each row, (rows, classes).
        slots: Numbers of a row.
        spread: Standard deviation of the numbers.
        corrupted: Share of the numbers that stays as drawn, and is not learned.
        per_row: Whether each row keeps other places; otherwise all rows the same.
        key: Draws both.

    >>> support = gaussian_support(np.eye(3), 8, corrupted=0.25, key=jax.random.key(0))
    >>> support.size, int(support.free.sum())
    (18, 6)
    """
    value_key, mask_key = jax.random.split(key)
    start = np.asarray(spread * normal(value_key, (len(targets), slots)))
    fixed = round(corrupted * slots)
    if not fixed:
        return Support(start, targets)
    keys = jax.random.split(mask_key, len(targets) if per_row else 1)
    orders = np.stack([np.asarray(jax.random.permutation(k, slots)) for k in keys])
    free = orders >= fixed
    return Support(start, targets, free if per_row else free[0])
