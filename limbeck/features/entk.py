"""Empirical tangent features of a finite network: the derivative of its summed outputs.

phi(x) is the gradient of the sum of the network's outputs by all its weights, so phi(x).phi(y) is the
sum-of-logits estimate of the network's tangent kernel (Mohamadi et al. 2023). One row at a time,
whatever the network.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

NORM_FLOOR = 1e-12
"""Norm below which features are not scaled up to norm 1."""


class EmpiricalNTK(eqx.Module):
    """Tangent features of any Equinox network of one image (channels, height, width).

    >>> from limbeck.nets import LeNet
    >>> net = LeNet(shape=(12, 12, 1), classes=3, key=jax.random.key(0))
    >>> phi = EmpiricalNTK(net, (12, 12, 1))
    >>> phi(jnp.ones((2, 144))).shape == (2, phi.size)
    True
    """

    network: Any
    shape: tuple[int, int, int] = eqx.field(static=True)
    """Height, width and channels of an image."""
    unit_norm: bool = eqx.field(static=True, default=True)
    """Whether features are divided by their norm."""

    @property
    def size(self) -> int:
        leaves = jax.tree_util.tree_leaves(eqx.filter(self.network, eqx.is_inexact_array))
        return sum(leaf.size for leaf in leaves)

    @property
    def norm_bound(self) -> float:
        return 1.0 if self.unit_norm else float("inf")

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        weights, rest = eqx.partition(self.network, eqx.is_inexact_array)
        height, width, channels = self.shape

        def outputs(weights: Any, row: Array) -> Array:
            image = row.reshape(height, width, channels).transpose(2, 0, 1)
            return eqx.combine(weights, rest)(image).sum()

        def one(row: Array) -> Array:
            return ravel_pytree(jax.grad(outputs)(weights, row))[0]

        return scaled(jax.vmap(one)(rows), self.unit_norm)


def scaled(phi: Array, unit_norm: bool) -> Array:
    """Features divided by their norm, if `unit_norm`; those of a norm near zero as they are."""
    if not unit_norm:
        return phi
    square = (phi**2).sum(axis=1, keepdims=True)
    return phi / jnp.sqrt(jnp.maximum(square, NORM_FLOOR**2))
