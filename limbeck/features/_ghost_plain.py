"""Per-row gradients of any loss, made one by one, some rows at a time: the slow, general road."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

MARGIN = 1e-9
"""Of norms that are summed in float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainGradients:
    """Norms and weighted sums for `Private.gradients`, for kernels without a shorter way.

    Args:
        loss: loss(parameters, slots, label) of one row.
        chunk: Rows whose gradients are made at once.
    """

    loss: Callable[[Array, Array, Array], Array]
    chunk: int = 16

    def prepare(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        made = np.empty((len(slots), np.size(parameters)))
        given = jnp.asarray(parameters)
        for at in range(0, len(slots), self.chunk):
            at = min(at, max(0, len(slots) - self.chunk))  # one shape throughout
            part = slice(at, at + self.chunk)
            made[part] = _each(self.loss, given, slots[part], labels[part])
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(made, axis=1) * (1 + MARGIN)
        finite = np.isfinite(norms)
        made[~finite] = 0.0
        return np.where(finite, norms, np.inf), lambda factors: factors @ made


@eqx.filter_jit
def _each(loss: Any, parameters: Array, slots: Any, labels: Any) -> Array:
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(parameters, slots, labels)
