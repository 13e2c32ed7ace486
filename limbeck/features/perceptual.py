"""Perceptual features: what the stages, or all layers, of an image network make of a picture, put together.

The network is a ResNet-18 with random weights, or one whose weights the user vouches for as public.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..nets import ResNet18
from .entk import scaled


class Perceptual(eqx.Module):
    """Activations of the four stages, or of every layer, averaged on a grid of at most `grid` x `grid` places; a
    grid as large as the picture leaves them as they are.

    >>> net = ResNet18(shape=(8, 8, 1), classes=2, width=4, key=jax.random.key(0))
    >>> phi = Perceptual(net, grid=2)
    >>> phi(jnp.ones((3, 64))).shape == (3, phi.size)
    True
    """

    network: ResNet18
    grid: int = eqx.field(static=True, default=2)
    unit_norm: bool = eqx.field(static=True, default=True)
    every_layer: bool = eqx.field(static=True, default=False)

    @property
    def size(self) -> int:
        height, width, channels = self.network.shape
        image = jax.ShapeDtypeStruct((channels, height, width), jnp.float32)
        return jax.eval_shape(self._one, image).size

    @property
    def norm_bound(self) -> float:
        return 1.0 if self.unit_norm else float("inf")

    def _one(self, image: Array) -> Array:
        activations = self.network.activations(image, every_layer=self.every_layer)
        return jnp.concatenate([pooled(a, self.grid, (1, 2)).ravel() for a in activations])

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        height, width, channels = self.network.shape
        images = rows.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return scaled(jax.vmap(self._one)(images), self.unit_norm)


def pooled(x: Array, grid: int, axes: tuple[int, ...]) -> Array:
    """Averages over the cells of a grid of at most so many places along some axes."""
    for axis in axes:
        size = x.shape[axis]
        cells = min(grid, size)
        # Uneven cells where the size is no multiple.
        edges = [size * i // cells for i in range(cells + 1)]
        parts = [
            jax.lax.slice_in_dim(x, a, b, axis=axis).mean(axis=axis, keepdims=True)
            for a, b in zip(edges, edges[1:], strict=False)
        ]
        x = jnp.concatenate(parts, axis=axis)
    return x
