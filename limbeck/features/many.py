"""Features of many rows, and the way back, in chunks of one shape: for rows that are not private."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from ..chunks import in_chunks

PULLED_ROWS = 32
"""Number of rows that a pull-back takes at once."""


def features_of(features: Any, rows: np.ndarray, chunk: int = 128) -> np.ndarray:
    """Features (rows, size) of many rows (rows, slots), at most `chunk` of them at a time."""
    size = max(1, min(chunk, len(rows)))
    return in_chunks(lambda some: _apply(features, some), rows, size=size)


def pull_back(features: Any, support: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
    """Gradients by the rows of a support, from gradients by their features: the chain rule.

    Args:
        features: The feature map.
        support: Learned rows (rows, slots).
        cotangents: Gradient of some loss by their features, (rows, size).
    """
    parts = [
        np.asarray(
            _pull(features, support[at : at + PULLED_ROWS], cotangents[at : at + PULLED_ROWS])
        )
        for at in range(0, len(support), PULLED_ROWS)
    ]
    return np.concatenate(parts)


@eqx.filter_jit
def _apply(features: Any, rows: Any) -> Array:
    return features(rows)


@eqx.filter_jit
def _pull(features: Any, support: Any, cotangents: Any) -> Array:
    _, back = jax.vjp(features, support)
    return back(cotangents)[0]
