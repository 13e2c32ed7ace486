"""Several small pictures in one stored image."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import LimbeckError


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


def packed(
    pictures: Float[Array, "pictures slots"], shape: tuple[int, int, int], tiles: int
) -> Float[Array, "images slots"]:
    """Images of which each holds `tiles` x `tiles` of the pictures, made smaller, one after the other.

    >>> import jax.numpy as jnp
    >>> packed(jnp.ones((8, 16)), (4, 4, 1), 2).shape
    (2, 16)
    """
    if tiles == 1:
        return pictures
    height, width, channels = shape
    rows, columns = height // tiles, width // tiles
    whole = pictures.reshape(-1, height, width, channels)
    small = jax.image.resize(whole, (len(whole), rows, columns, channels), "linear")
    grid = small.reshape(-1, tiles, tiles, rows, columns, channels).transpose(0, 1, 3, 2, 4, 5)
    return jnp.asarray(grid.reshape(-1, height * width * channels))


def check_tiles(shape: tuple[int, int, int], tiles: int) -> None:
    """Refuse images that cannot be cut into equal parts."""
    height, width, _ = shape
    if height % tiles or width % tiles:
        raise LimbeckError(
            f"Images of {height} x {width} pixels cannot be cut into {tiles} x {tiles} "
            "equal parts; choose other tiles."
        )
