"""Per-row gradients of any loss, made one by one, some rows at a time: the slow, general road."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...comparable import comparable


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainGradients:
    """Gradients for `Private.gradients`, for kernels without a shorter way.

    Args:
        loss: loss(parameters, slots, label) of one row.
        chunk: Rows whose gradients are made at once.
    """

    loss: Callable[[Array, Array, Array], Array]
    chunk: int = 16

    def blocks(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Gradients of some rows at a time; blocks without a labelled row are left out."""
        given = jnp.asarray(parameters)
        for at in range(0, len(slots), self.chunk):
            part = slice(at, at + self.chunk)
            if (labels[part] >= 0).any():
                some = (filled(array[part], self.chunk) for array in (slots, labels))
                yield at, np.asarray(_each(comparable(self.loss), given, *some))[: len(slots) - at]


def filled(array: np.ndarray, size: int) -> np.ndarray:
    """Zeros appended up to one shape, so that code is compiled once."""
    return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))


@eqx.filter_jit
def _each(loss: Any, parameters: Array, slots: Any, labels: Any) -> Array:
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(parameters, slots, labels)
