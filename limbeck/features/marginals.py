"""Marginals as features: in which cell of each column, and of each pair of columns, a row lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..arrays import AnyArray
from ..schema import Schema
from .cells import Cells, table_cells


class SingleColumns(eqx.Module):
    """Indicators of all columns' cells, side by side: 1 where the row lies, else 0. Their norm is the root
    of the number of columns."""

    cells: tuple[Cells, ...] = eqx.field(static=True)
    places: tuple[tuple[int, int], ...] = eqx.field(static=True)
    """Where each column's slots begin and end."""

    def __init__(self, schema: Schema, *, grid: int) -> None:
        self.cells = table_cells(schema, grid)
        self.places = tuple((at.start, at.stop) for _, at in schema.blocks())

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def norm_bound(self) -> float:
        return math.sqrt(len(self.cells))

    def columns(self, rows: Float[AnyArray, "rows slots"]) -> list[Float[Array, "rows cells"]]:
        """Each column's indicators."""
        return [
            c.indicators(rows[:, start:stop])
            for c, (start, stop) in zip(self.cells, self.places, strict=True)
        ]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column."""
        return tuple(c.count for c in self.cells)

    def ones(self, rows: Float[AnyArray, "rows slots"]) -> Int[Array, "rows columns"]:
        """The number of the cell of each column, -1 for none."""
        places = [
            c.place(rows[:, start:stop])
            for c, (start, stop) in zip(self.cells, self.places, strict=True)
        ]
        return jnp.stack(places, axis=1)

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        return jnp.concatenate(self.columns(rows), axis=1)


class ColumnPairs(eqx.Module):
    """Indicators of all columns' groups of cells, times themselves: every pair of columns at once.

    The matrix of a row holds each pair twice, and on the diagonal the single columns. So its norm is
    the number of columns, about sqrt 2 times that of each pair once; but the mean of a pair's two noisy
    counts has 1 / sqrt 2 of the noise. So it is hardly worse, and one matrix product.
    """

    singles: SingleColumns
    """The cells that groups are made of."""
    groups: tuple[Array, ...]
    """For each column the group of each cell, as indicators (cells, groups)."""

    def __init__(self, singles: SingleColumns, groups: Sequence[np.ndarray]) -> None:
        self.singles = singles
        self.groups = tuple(
            jnp.asarray(np.eye(int(g.max()) + 1, dtype=np.float32)[g]) for g in groups
        )

    @staticmethod
    def shape_of(groups: Sequence[np.ndarray]) -> tuple[int, int]:
        """Shape of a row's matrix."""
        size = sum(int(g.max()) + 1 for g in groups)
        return size, size

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return ((sum(self.sizes), sum(self.sizes)),)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Groups of each column."""
        return tuple(g.shape[1] for g in self.groups)

    def ones(self, rows: Float[AnyArray, "rows slots"]) -> Int[Array, "rows columns"]:
        """The number of the group of each column, -1 for none."""
        fine = self.singles.ones(rows)
        coarse = [
            jnp.where(fine[:, i] < 0, -1, g.argmax(axis=1)[fine[:, i]])
            for i, g in enumerate(self.groups)
        ]
        return jnp.stack(coarse, axis=1)

    @property
    def norm_bound(self) -> float:
        return float(len(self.groups))

    def __call__(
        self, rows: Float[AnyArray, "rows slots"]
    ) -> tuple[tuple[Float[Array, "rows groups"], Float[Array, "rows groups"]], ...]:
        fine = self.singles.columns(rows)
        coarse = jnp.concatenate([f @ g for f, g in zip(fine, self.groups, strict=True)], axis=1)
        return ((coarse, coarse),)
