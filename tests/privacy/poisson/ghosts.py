"""Sources of gradients that are never made one by one, small, for tests."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from limbeck.features import (
    EmpiricalNTK,
    FullyConnectedNTK,
    Scattering,
    Support,
    centred,
    gaussian_support,
)
from limbeck.privacy import (
    FeatureGradients,
    PulledGradients,
    TangentGradients,
)

CLASSES = 4


def drawn_rows(count: int, slots: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((count, slots)).astype(np.float32), rng.integers(0, CLASSES, count)


def drawn_support(size: int, slots: int, **settings: Any) -> Support:
    targets = np.asarray(centred(np.arange(size) % CLASSES, CLASSES))
    return gaussian_support(targets, slots, key=jax.random.key(3), **settings)


def made_rows(source: Any, free: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.concatenate([part for _, part in source.blocks(free, rows, labels)])


def drawn_basis(size: int, few: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(5).standard_normal((size, few)))[0]


# ---- adversaries -----------------------------------------------------------------------------

SLOTS = 64


def tangent_source(support: Support) -> TangentGradients:
    return TangentGradients(
        kernel=FullyConnectedNTK(), support=support, ridge=1e-7, class_weights=np.ones(CLASSES)
    )


def scattering_source(support: Support) -> FeatureGradients:
    return FeatureGradients(
        features=Scattering(height=8, width=8, unit_norm=False),
        support=support,
        ridge=1e-7,
        class_weights=np.ones(CLASSES),
    )


def network_source(support: Support) -> PulledGradients:
    layers = eqx.nn.MLP(SLOTS, CLASSES, 6, 1, key=jax.random.key(0))
    network = eqx.nn.Sequential([eqx.nn.Lambda(jnp.ravel), layers])
    return PulledGradients(
        features=EmpiricalNTK(network, (8, 8, 1)),
        support=support,
        ridge=1e-7,
        class_weights=np.ones(CLASSES),
    )
