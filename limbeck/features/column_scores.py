"""Columns as scores: one number for each, by which their correlations are measured."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..arrays import AnyArray
from .marginals import SingleColumns


class ColumnScores(eqx.Module):
    """A row's score in every column, times themselves: all correlations at once."""

    singles: SingleColumns
    """The cells that have scores."""
    scores: Float[Array, "classes cells"]
    """Of each cell, within each class."""

    def __init__(self, singles: SingleColumns, scores: np.ndarray) -> None:
        self.singles, self.scores = singles, jnp.asarray(scores, jnp.float32)

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return ((len(self.singles.cells),) * 2,)

    @property
    def norm_bound(self) -> float:
        """The mean of the squared norm, if scores have variance one: rows far out are clipped,
        which draws correlations to zero a little."""
        return float(len(self.singles.cells))

    def __call__(
        self, rows: Float[AnyArray, "rows slots"], labels: Int[AnyArray, " rows"]
    ) -> tuple[tuple[Float[Array, "rows columns"], Float[Array, "rows columns"]], ...]:
        own, start, of_columns = self.scores[labels], 0, []
        for column in self.singles.columns(rows):
            end = start + column.shape[1]
            of_columns.append((column * own[:, start:end]).sum(axis=1))
            start = end
        scores = jnp.stack(of_columns, axis=1)
        return ((scores, scores),)
