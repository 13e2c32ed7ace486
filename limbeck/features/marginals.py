"""Marginals as features: in which cell of each column, and of each pair of columns, a row lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..schema import Schema
from .cells import Cells, table_cells


class Singles(eqx.Module):
    """Indicators of all columns' finest cells, side by side; the norm is the root of the columns."""

    cells: tuple[Cells, ...] = eqx.field(static=True)
    places: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Where each column's slots begin and end."""

    def __init__(self, schema: Schema, *, grid: int) -> None:
        self.cells = table_cells(schema, grid)
        self.places = tuple((at.start, at.stop) for _, at in schema.blocks())

    @property
    def size(self) -> int:
        return sum(c.count for c in self.cells)

    @property
    def norm_bound(self) -> float:
        return math.sqrt(len(self.cells))

    def columns(self, rows: Float[Array, "rows slots"]) -> list[Float[Array, "rows cells"]]:
        """Each column's indicators."""
        return [
            c.indicators(rows[:, start:stop])
            for c, (start, stop) in zip(self.cells, self.places, strict=True)
        ]

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        return jnp.concatenate(self.columns(rows), axis=1)


class Pairs(eqx.Module):
    """Indicators of columns' groups of cells, times themselves: every pair of columns at once.

    The matrix of a row holds each pair twice, and on the diagonal the single columns. So its norm
    is the number of columns, while the mean of a pair's two noisy counts has the root of half the
    noise: hardly worse than measuring each pair once, and one matrix product.
    """

    singles: Singles
    groups: tuple[Array, ...]
    """For each column the group of each cell, as indicators (cells, groups)."""

    def __init__(self, singles: Singles, groups: Sequence[np.ndarray]) -> None:
        self.singles = singles
        self.groups = tuple(
            jnp.asarray(np.eye(int(g.max()) + 1, dtype=np.float32)[g]) for g in groups
        )

    @staticmethod
    def shape_of(groups: Sequence[np.ndarray]) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        size = sum(int(g.max()) + 1 for g in groups)
        return size, size

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        size = sum(g.shape[1] for g in self.groups)
        return ((size, size),)

    @property
    def norm_bound(self) -> float:
        return float(len(self.groups))

    def __call__(
        self, rows: Float[Array, "rows slots"]
    ) -> tuple[tuple[Float[Array, "rows groups"], Float[Array, "rows groups"]], ...]:
        fine = self.singles.columns(rows)
        found = jnp.concatenate([f @ g for f, g in zip(fine, self.groups, strict=True)], axis=1)
        return ((found, found),)
