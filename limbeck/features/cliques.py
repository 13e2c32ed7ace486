"""Cliques of columns as features: in which cell of several columns together a row lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..arrays import AnyArray
from .marginals import SingleColumns


class ColumnGroups(eqx.Module):
    """The group of cells in which a row lies, column by column, and last its class."""

    singles: SingleColumns
    groups: tuple[Array, ...]
    """For each column the group of each cell, (cells,)."""

    def __init__(self, singles: SingleColumns, groups: Sequence[np.ndarray]) -> None:
        self.singles = singles
        self.groups = tuple(jnp.asarray(g, jnp.int32) for g in groups)

    def __call__(
        self, rows: Float[AnyArray, "rows slots"], labels: Int[AnyArray, " rows"]
    ) -> Int[Array, "rows variables"]:
        """Whole numbers; -1 where a category is none of the declared values, or the class is none."""
        codes = [
            jnp.where(cells.sum(axis=1) > 0, group[cells.argmax(axis=1)], -1)
            for cells, group in zip(self.singles.columns(rows), self.groups, strict=True)
        ]
        return jnp.stack([*codes, labels.astype(jnp.int32)], axis=1)


class CliqueCells(eqx.Module):
    """The cell of each of many cliques of variables in which a row lies, with what is expected there: what
    `limbeck.privacy.Choice` chooses among."""

    columns: ColumnGroups
    strides: np.ndarray
    """What a variable's code counts for in the number of a clique's cell, (variables, cliques)."""
    members: np.ndarray
    """1 where a variable is one of the clique's, (variables, cliques)."""
    expected: np.ndarray
    """Counts that are expected in the cells, those of all cliques one after the other."""
    weights: np.ndarray
    """What a row of difference counts for, in [0, 1], (cliques,)."""
    penalties: np.ndarray
    """What is taken off the utility, (cliques,)."""
    sizes: tuple[int, ...] = eqx.field(static=True)
    """Number of cells of each clique."""

    def __call__(
        self, rows: Float[AnyArray, "rows slots"], labels: Int[AnyArray, " rows"]
    ) -> Int[Array, "rows cliques"]:
        codes = self.columns(rows, labels)
        cells = codes @ jnp.asarray(self.strides, jnp.int32)
        nowhere = (codes < 0).astype(jnp.int32) @ jnp.asarray(self.members, jnp.int32)
        return jnp.where(nowhere > 0, -1, cells)


class OneClique(eqx.Module):
    """The cell of one clique of variables in which a row lies: what `limbeck.privacy.Histogram` counts."""

    columns: ColumnGroups
    strides: np.ndarray
    """What a variable's code counts for in the number of the cell; 0 of variables that are none of the
    clique's, (variables,)."""
    bins: int = eqx.field(static=True)

    def __call__(
        self, rows: Float[AnyArray, "rows slots"], labels: Int[AnyArray, " rows"]
    ) -> Int[Array, " rows"]:
        codes = self.columns(rows, labels)
        strides = jnp.asarray(self.strides, jnp.int32)
        nowhere = ((codes < 0) & (strides > 0)).any(axis=1)
        return jnp.where(nowhere, -1, codes @ strides)


class CliqueIndicators(eqx.Module):
    """Indicators of the cells of a few cliques of columns in which a row lies, side by side: 1 there, else 0.
    Their norm is at most the root of the number of cliques. The class is in none of them."""

    columns: ColumnGroups
    strides: np.ndarray
    """What a variable's code counts for in the number of a clique's cell, (variables, cliques)."""
    members: np.ndarray
    """1 where a variable is one of the clique's, (variables, cliques)."""
    cells: int = eqx.field(static=True)
    """Number of cells of each clique, at most."""

    @property
    def size(self) -> int:
        return self.cells * self.strides.shape[1]

    @property
    def norm_bound(self) -> float:
        return math.sqrt(self.strides.shape[1])

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        codes = self.columns(rows, jnp.zeros(len(rows), jnp.int32))
        cells = codes @ jnp.asarray(self.strides, jnp.int32)
        nowhere = (codes < 0).astype(jnp.int32) @ jnp.asarray(self.members, jnp.int32)
        inside = jax.nn.one_hot(jnp.where(nowhere > 0, -1, cells), self.cells)
        return inside.reshape(len(rows), -1)


def cell_strides(
    sizes: Sequence[int], cliques: Sequence[tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """What each variable's code counts for in the number of a clique's cell (the last variable's least), which
    variables a clique has, both (variables, cliques), and how many cells it has.

    >>> strides, members, cells = cell_strides((2, 3, 4), [(0, 2), (1,)])
    >>> strides.T.tolist(), cells
    ([[4, 0, 1], [0, 1, 0]], (8, 3))
    """
    strides = np.zeros((len(sizes), len(cliques)), np.int32)
    cells = []
    for number, clique in enumerate(cliques):
        count = 1
        for variable in reversed(clique):
            strides[variable, number] = count
            count *= sizes[variable]
        cells.append(count)
    return strides, (strides > 0).astype(np.int32), tuple(cells)
