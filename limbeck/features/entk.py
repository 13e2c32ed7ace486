"""Empirical tangent features of a finite network: the derivative of its outputs by all its weights.

Of the sum of the outputs: then phi(x).phi(y) is the sum-of-logits estimate of the network's tangent kernel
(Mohamadi et al. 2023). Or of each output, side by side: the whole Jacobian, whose products are the
trace of the kernel's matrix over pairs of outputs, exactly, at as many times the features. One row at a time,
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
    summed: bool = eqx.field(static=True, default=True)
    """Whether the outputs are summed before; otherwise each has features of its own."""

    @property
    def size(self) -> int:
        leaves = jax.tree_util.tree_leaves(eqx.filter(self.network, eqx.is_inexact_array))
        weights = sum(leaf.size for leaf in leaves)
        return weights if self.summed else weights * self._outputs

    @property
    def _outputs(self) -> int:
        height, width, channels = self.shape
        image = jax.ShapeDtypeStruct((channels, height, width), jnp.float32)
        return eqx.filter_eval_shape(self.network, image).size

    @property
    def norm_bound(self) -> float:
        return 1.0 if self.unit_norm else float("inf")

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        weights, rest = eqx.partition(self.network, eqx.is_inexact_array)
        height, width, channels = self.shape

        def outputs(weights: Any, row: Array) -> Array:
            image = row.reshape(height, width, channels).transpose(2, 0, 1)
            return eqx.combine(weights, rest)(image)

        def one(row: Array) -> Array:
            if self.summed:
                gradient = jax.grad(lambda weights: outputs(weights, row).sum())(weights)
            else:
                gradient = jax.jacrev(outputs)(weights, row)
            return ravel_pytree(gradient)[0]

        return scaled(jax.vmap(one)(rows), self.unit_norm)


def scaled(phi: Array, unit_norm: bool) -> Array:
    """Features divided by their norm, if `unit_norm`; those of a norm near zero as they are."""
    if not unit_norm:
        return phi
    square = (phi**2).sum(axis=1, keepdims=True)
    return phi / jnp.sqrt(jnp.maximum(square, NORM_FLOOR**2))
