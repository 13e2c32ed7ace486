"""Class means of the rows' features in many views, measured once: how the classes look to networks.

A view is a random convolutional network that sees all pictures changed in one way of its own. A fresh
network is what a released set has to teach, so what a set is asked to agree with is many of them. Means
cost little: one sum of vectors for all views together, whatever their number.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...features import Views
from .prototypes import Prototypes

GREY_NORM, COLOUR_NORM = 0.5, 0.75
"""Norm to which a row's features, less those of its class's prototypes, are clipped: about what they have."""


class ViewResiduals(eqx.Module):
    """What is measured of a row: its features in all views, less those of its class's prototypes."""

    views: Views
    at_prototypes: Float[Array, "classes size"]
    """Mean features of each class's prototypes."""

    @property
    def groups(self) -> int:
        return len(self.at_prototypes)

    @property
    def size(self) -> int:
        return self.views.size

    @property
    def chunk(self) -> int:
        return self.views.chunk

    @property
    def norm_bound(self) -> float:
        return residual_bound(self.views.shape)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        return self.views(rows) - self.at_prototypes[labels], labels


def residual_bound(shape: tuple[int, int, int]) -> float:
    """Norm to which a row's contribution is clipped: coloured pictures differ more."""
    return COLOUR_NORM if shape[2] > 1 else GREY_NORM


def prototype_features(views: Views, prototypes: Prototypes) -> Array:
    """Mean features (classes, size) of each class's prototypes, weighted by the sizes of clusters."""
    rows, sizes = prototypes.rows, prototypes.sizes
    flat = jnp.asarray(rows.reshape(-1, rows.shape[2]), jnp.float32)
    weights = jnp.asarray(sizes / sizes.sum(axis=1, keepdims=True), jnp.float32)
    each = [
        jnp.einsum("ck,ckf->cf", weights, seen(views, flat, number).reshape(*sizes.shape, -1))
        for number in range(views.views)
    ]
    return jnp.concatenate(each, axis=1) / math.sqrt(views.views)


def seen(views: Views, rows: Array, number: int) -> Array:
    """One view's features, by a program that is compiled once for all views."""
    return LOOK(views, rows, jnp.asarray(number))


LOOK = eqx.filter_jit(Views.look)


def denoised_view_means(
    views: Views, at_prototypes: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> Float[np.ndarray, "views classes part"]:
    """Mean features of each class, those of each view scaled to norm 1, from noisy sums of `ViewResiduals`.

    Args:
        views: The views that were measured.
        at_prototypes: Mean features of each class's prototypes, (classes, size), as subtracted.
        sums: The noisy sums, (classes, size).
        counts: Noisy numbers of rows, (classes,).
    """
    means = at_prototypes + sums / np.maximum(counts, 1.0)[:, None]
    apart = math.sqrt(views.views) * means.reshape(len(means), views.views, -1)
    return np.asarray(apart.swapaxes(0, 1), np.float32)
