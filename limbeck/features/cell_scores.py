"""Columns as a few scores of their cells, by which classes are told apart with little noise."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..arrays import AnyArray
from .marginals import SingleColumns


class CellScores(eqx.Module):
    """A row's scores in every column, side by side: those of the cells where it lies."""

    singles: SingleColumns
    """The cells that have scores."""
    scores: tuple[Float[Array, "cells scores"], ...]
    """Of each column's cells."""
    norm_bound: float = eqx.field(static=True)
    """Norm to which a row's scores are clipped."""

    def __init__(
        self, singles: SingleColumns, scores: Sequence[np.ndarray], norm_bound: float
    ) -> None:
        self.singles, self.norm_bound = singles, norm_bound
        self.scores = tuple(jnp.asarray(one, jnp.float32) for one in scores)

    @property
    def size(self) -> int:
        return sum(one.shape[1] for one in self.scores)

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        columns = self.singles.columns(rows)
        own = [cells @ one for cells, one in zip(columns, self.scores, strict=True)]
        return jnp.concatenate(own, axis=1)
