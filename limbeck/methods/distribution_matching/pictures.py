"""Several small pictures in one stored image."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float


def unpacked(
    stored: Float[Array, "images slots"], shape: tuple[int, int, int], tiles: int
) -> Float[Array, "pictures slots"]:
    """The pictures of images of which each holds `tiles` x `tiles`, brought to full size: those of an image
    one after the other.

    >>> import jax.numpy as jnp
    >>> unpacked(jnp.arange(16.0).reshape(1, 16), (4, 4, 1), 2).shape
    (4, 16)
    """
    if tiles == 1:
        return stored
    height, width, channels = shape
    rows, columns = height // tiles, width // tiles
    cut = stored.reshape(-1, tiles, rows, tiles, columns, channels).transpose(0, 1, 3, 2, 4, 5)
    small = cut.reshape(-1, rows, columns, channels)
    large = jax.image.resize(small, (len(small), height, width, channels), "linear")
    return large.reshape(len(small), -1)
