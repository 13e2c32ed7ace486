"""Activations of an image network, and their squares: what DP-MEPF measures the means of."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..nets import ConvNet, ResNet18, seen_images
from .perceptual import pooled

NORM_FLOOR = 1e-6
"""Norm below which a layer's activations are not scaled up."""


class Activations(eqx.Module):
    """What each layer makes of a picture, averaged on a grid of at most `grid` x `grid` places, to a power; each
    layer scaled to the same norm, all together to norm 1.

    >>> net = ConvNet((8, 8, 1), 3, width=4, key=jax.random.key(0))
    >>> phi = Activations(net, shape=(8, 8, 1), grid=2)
    >>> phi.size, phi(jnp.ones((5, 64))).shape
    (36, (5, 36))
    """

    network: ConvNet | ResNet18
    shape: tuple[int, int, int] = eqx.field(static=True)
    grid: int = eqx.field(static=True)
    power: int = eqx.field(static=True, default=1)
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        row = jax.ShapeDtypeStruct((1, math.prod(self.shape)), jnp.float32)
        layers = jax.eval_shape(self.layers, row)
        return sum(layer.shape[1] for layer in layers)

    def layers(self, rows: Float[Array, "rows slots"]) -> list[Float[Array, "rows part"]]:
        """The averages of each layer, flat."""
        if isinstance(self.network, ConvNet):
            layers = self.network.activations(seen_images(rows, self.shape))
            sides: tuple[int, ...] = (1, 2)
        else:
            images = (2 * rows - 1).reshape(-1, *self.shape).transpose(0, 3, 1, 2)
            layers, sides = jax.vmap(self.network.activations)(images), (2, 3)
        return [pooled(x, self.grid, sides).reshape(len(rows), -1) for x in layers]

    def moment(self, layers: list[Array], power: int) -> Float[Array, "rows size"]:
        """A power of averages that are known."""
        parts = [self._scaled(layer**power) for layer in layers]
        return jnp.concatenate(parts, axis=1) / math.sqrt(len(parts))

    @staticmethod
    def _scaled(part: Array) -> Array:
        square = (part**2).sum(axis=1, keepdims=True)
        return part / jnp.sqrt(jnp.maximum(square, NORM_FLOOR**2))

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        return self.moment(self.layers(rows), self.power)
