"""Means of small squares of pixels: a coarser image, of fewer numbers."""

from __future__ import annotations

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..arrays import AnyArray

SIDE = 2
"""Pixels along a side of a square."""


class PooledImages(eqx.Module):
    """Each image with squares of pixels replaced by their mean; the last row and column are repeated where
    the squares do not fit.

    >>> phi = PooledImages(shape=(5, 4, 1))
    >>> phi.size, phi(jnp.ones((2, 20))).shape
    (6, (2, 6))
    """

    shape: tuple[int, int, int] = eqx.field(static=True)

    @property
    def _halved(self) -> tuple[int, int, int]:
        height, width, channels = self.shape
        return -(-height // SIDE), -(-width // SIDE), channels

    @property
    def size(self) -> int:
        return math.prod(self._halved)

    @property
    def norm_bound(self) -> float:
        """All slots are in [0, 1]."""
        return math.sqrt(self.size)

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        height, width, channels = self._halved
        more = (SIDE * height - self.shape[0], SIDE * width - self.shape[1])
        images = jnp.asarray(rows).reshape(-1, *self.shape)
        images = jnp.pad(images, ((0, 0), (0, more[0]), (0, more[1]), (0, 0)), mode="edge")
        squares = images.reshape(-1, height, SIDE, width, SIDE, channels)
        return squares.mean(axis=(2, 4)).reshape(len(images), -1)
