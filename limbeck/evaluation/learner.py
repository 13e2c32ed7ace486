"""One fixed learner for scores that are counted through `Private`: it learns from released rows alone."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..data import Dataset, bare_rows
from ..scores import logistic_weights, ridge_weights, scattering

RIDGE_ROWS = 5_000
"""Rows that a kernel regression learns from at most."""


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


def learn(released: Dataset) -> tuple[Linear, str]:
    """A classifier of released rows, and its name: kernel ridge regression with scattering features
    for images, logistic regression for the rest. No real row is seen."""
    rows, schema = bare_rows(released), released.schema  # released: nothing private about them
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
