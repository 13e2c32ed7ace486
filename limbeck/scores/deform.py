"""Small random deformations of pictures, inside a compiled training step."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import uniform
from ..features import source_places


@dataclass(frozen=True, kw_only=True)
class Deformation:
    """Each picture is shifted, or scaled, or rotated, or partly covered: one of them, drawn anew each time.

    What comes in from outside, and what covers, is zero: the mean of standardised pictures.
    """

    shift: int = 4
    """Pixels, whole ones, that a picture is shifted at most along either axis."""
    scale: float = 0.2
    """Distance from 1 of the factors along the two axes, at most."""
    rotation: float = 45.0
    """Degrees that a picture is rotated by at most."""
    flip: bool = False
    """Mirror half of the pictures, left to right."""
    cover: float = 0.0
    """Sides of the rectangle that covers a part, in parts of the picture's; 0: none is covered."""

    def __call__(
        self, images: Float[Array, "images height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "images height width channels"]:
        kind_key, shift_key, scale_key, turn_key, flip_key, cover_key = jax.random.split(key, 6)
        count, height, width = images.shape[:3]
        kind = jax.random.randint(kind_key, (count,), 0, 4 if self.cover else 3)
        moved = jax.random.randint(shift_key, (count, 2), -self.shift, self.shift + 1)
        moved = jnp.where((kind == 0)[:, None], moved, 0).astype(images.dtype)
        factors = uniform(scale_key, (count, 2), -self.scale, self.scale, images.dtype)
        factors = 1 + jnp.where((kind == 1)[:, None], factors, 0)
        turn = jnp.deg2rad(self.rotation)
        angle = uniform(turn_key, (count,), -turn, turn, images.dtype)
        angle = jnp.where(kind == 2, angle, 0)
        if self.flip:
            mirrored = jax.random.bernoulli(flip_key, shape=(count, 1, 1, 1))
            images = jnp.where(mirrored, images[:, :, ::-1], images)
        if self.cover:
            hidden = self._covered(cover_key, count, height, width)
            images = jnp.where(hidden & (kind == 3)[:, None, None, None], 0, images)
        down, right = source_places(
            height,
            width,
            jnp.cos(angle)[:, None, None],
            jnp.sin(angle)[:, None, None],
            factors.T[:, :, None, None],
            moved.T[:, :, None, None],
        )
        return jax.vmap(_sample)(images, down, right)

    def _covered(self, key: PRNGKeyArray, count: int, height: int, width: int) -> Array:
        """Which pixels lie in a rectangle around a random one, (count, height, width, 1)."""
        middles = uniform(key, (count, 2)) * jnp.asarray([height, width])
        down = jnp.abs(jnp.arange(height) + 0.5 - middles[:, :1]) < self.cover * height / 2
        right = jnp.abs(jnp.arange(width) + 0.5 - middles[:, 1:]) < self.cover * width / 2
        return (down[:, :, None] & right[:, None, :])[..., None]


def _sample(image: Array, down: Array, right: Array) -> Array:
    return jax.vmap(lambda plane: map_coordinates(plane, [down, right], 1), 2, 2)(image)
