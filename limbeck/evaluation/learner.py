"""One fixed learner for scores that are counted through `Private`: it learns from released rows alone."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Dataset, bare_rows
from ..schema import Schema
from ..scores import logistic_weights, ridge_weights, scattering

RIDGE_ROWS = 5_000
"""Rows that a kernel regression learns from at most."""
SLIGHT = 1e-4
"""Penalty of a linear regression's weights, for each row: so slight that it only settles what rows leave open."""


class Linear(eqx.Module):
    """Outputs (rows, classes): linear in features, or the chances of a logistic regression."""

    weights: Array
    features: Any = None

    @property
    def chunk(self) -> int:
        return getattr(self.features, "chunk", 0)

    def __call__(self, rows: Array) -> Array:
        if self.features is not None:
            return self.features(rows) @ self.weights
        return jax.nn.softmax(rows @ self.weights[:-1] + self.weights[-1], axis=1)


class LinearNumber(eqx.Module):
    """Predicts a target, encoded in [0, 1], from the other columns' slots."""

    weights: Array
    """Of the slots and of one, (slots + 1,); 0 of the target itself."""
    at: int = eqx.field(static=True)
    """The target's own slot."""


def learn(released: Dataset) -> tuple[Linear | LinearNumber, str]:
    """What predicts the label or target of released rows, and its name: kernel ridge regression with
    scattering features for images, logistic regression for tables with a label, linear for numbers. No
    real row is seen."""
    rows, schema = bare_rows(released), released.schema  # released: nothing private about them
    if schema.target:
        return _regression(schema, np.asarray(rows.cells)), "linear regression"
    kept = np.flatnonzero(rows.labels >= 0)
    labels, classes = np.asarray(rows.labels[kept]), len(schema.classes)
    phi = scattering(schema) if schema.image else None
    if phi is not None:
        at = np.random.default_rng(0).permutation(len(kept))[:RIDGE_ROWS]
        slots = schema.expand(rows.cells[kept[at]])
        weights = ridge_weights(slots, labels[at], features=phi, classes=classes)
        return Linear(jnp.asarray(weights, jnp.float32), phi), "kernel ridge, scattering features"
    weights = logistic_weights(schema.expand(rows.cells[kept]), labels, classes)
    return Linear(jnp.asarray(weights, jnp.float32)), "logistic regression"


def _regression(schema: Schema, cells: np.ndarray) -> LinearNumber:
    at = next(place.start for column, place in schema.blocks() if column is schema.target)
    slots = schema.expand(cells).astype(np.float64)
    x = np.concatenate([slots, np.ones((len(slots), 1))], axis=1)
    x[:, at] = 0.0
    penalty = SLIGHT * len(x) * np.eye(x.shape[1])
    penalty[-1, -1] = 0.0
    weights = np.linalg.lstsq(x.T @ x + penalty, x.T @ slots[:, at], rcond=None)[0]
    weights[at] = 0.0
    return LinearNumber(jnp.asarray(weights, jnp.float32), at)
