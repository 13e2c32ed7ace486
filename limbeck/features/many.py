"""Features of many rows, and the way back, in chunks of one shape: for rows that are not private."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

PICTURES = 32
"""Rows that a pull-back takes at once."""


def features_of(features: Any, rows: np.ndarray, chunk: int = 128) -> np.ndarray:
    """Features of many rows in chunks of one shape."""
    parts = []
    for at in range(0, len(rows), chunk):
        piece = rows[at : at + chunk]
        full = np.pad(piece, [(0, min(chunk, len(rows)) - len(piece)), (0, 0)])
        parts.append(np.asarray(_apply(features, full))[: len(piece)])
    return np.concatenate(parts)


def pull_back(features: Any, support: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
    """From gradients in the support's features to gradients in its numbers: free of rows."""
    parts = [
        np.asarray(_pull(features, support[at : at + PICTURES], cotangents[at : at + PICTURES]))
        for at in range(0, len(support), PICTURES)
    ]
    return np.concatenate(parts)


@eqx.filter_jit
def _apply(features: Any, rows: Any) -> Array:
    return features(rows)


@eqx.filter_jit
def _pull(features: Any, support: Any, cotangents: Any) -> Array:
    _, back = jax.vjp(features, support)
    return back(cotangents)[0]
