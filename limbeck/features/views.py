"""Views: random convolutional networks, each of which looks at pictures changed in a way of its own."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..errors import positive
from .convnets import RandomConvNets, chunk_of, output_size
from .places import source_places

SHIFT, SCALE, ROTATION, COVER = 0.125, 0.2, 15.0, 0.25
"""How far a view may shift (parts of a side), scale (distance from 1), rotate (degrees) its pictures, and
the side of the square it may cover (parts of a side)."""
BRIGHTNESS, CONTRAST, SATURATION = 0.1, 0.25, 0.5
"""How far a view may change colours: added to pixels in [0, 1], and distances from the factor 1."""
PATCHES = 4
"""Numbers per pixel and filter between layers: outputs of the first, and patches of the second."""
CORNERS = 4
"""Pixels between which a changed picture's pixel is interpolated."""


class Views(eqx.Module):
    """Outputs of random networks, each of which sees every picture changed in the same way: mirrored or
    not, shifted, scaled, rotated, recoloured, or with a covered square.

    Each view's output is scaled to norm 1, all of them together as well.

    >>> views = Views(shape=(8, 8, 1), views=2, width=4, key=jax.random.key(0))
    >>> views.size, views(jnp.ones((5, 64))).shape
    (8, (5, 8))
    """

    networks: RandomConvNets
    """One network for each view, their numbers stacked."""
    places: Int[Array, "views pixels corners"]
    """Pixels of a picture that each pixel of the changed one is made of."""
    weights: Float[Array, "views pixels corners"]
    """Their weights; all zero outside the picture and where it is covered."""
    colours: Float[Array, "views channels channels"]
    """What multiplies the channels."""
    brightness: Float[Array, " views"]
    """What is added to them."""
    shape: tuple[int, int, int] = eqx.field(static=True)
    norm_bound: float = eqx.field(static=True)

    def __init__(
        self, *, shape: tuple[int, int, int], views: int, width: int, key: PRNGKeyArray
    ) -> None:
        positive(views=views, width=width)
        network_key, change_key = jax.random.split(key)
        self.networks = eqx.filter_vmap(
            lambda k: RandomConvNets(shape=shape, networks=1, width=width, key=k)
        )(jax.random.split(network_key, views))
        rng = np.random.default_rng(np.asarray(jax.random.key_data(change_key)))
        warps = [_warp(shape, rng) for _ in range(views)]
        self.places = jnp.asarray(np.stack([places for places, _ in warps]))
        self.weights = jnp.asarray(np.stack([weights for _, weights in warps]), jnp.float32)
        self.colours = jnp.asarray(
            np.stack([_colouring(shape[2], rng) for _ in range(views)]), jnp.float32
        )
        self.brightness = jnp.asarray(rng.uniform(-BRIGHTNESS, BRIGHTNESS, views), jnp.float32)
        self.shape, self.norm_bound = shape, 1.0

    @property
    def views(self) -> int:
        """Number of views."""
        return len(self.places)

    @property
    def size(self) -> int:
        return self.views * output_size(self.shape, self.networks.first.shape[-1])

    @property
    def chunk(self) -> int:
        """Pictures worked on at once: so many that a layer's output stays in the cache."""
        return chunk_of(self.shape, self.networks.first.shape[-1])

    @property
    def between(self) -> int:
        """Numbers that lie between layers for a picture, of all views at once: XLA keeps them all."""
        height, width, _ = self.shape
        return self.views * PATCHES * height * width * self.networks.first.shape[-1]

    def network(self, number: int | Array) -> RandomConvNets:
        """The network of one view."""
        taken: RandomConvNets = jax.tree_util.tree_map(
            lambda numbers: numbers[number], self.networks, is_leaf=eqx.is_array
        )
        return taken

    def look(self, rows: Float[Array, "rows slots"], number: int | Array) -> Array:
        """One view's features (rows, part), of norm 1."""
        return self.network(number)(self.changed(rows, number))

    def changed(self, rows: Float[Array, "rows slots"], number: int | Array) -> Array:
        """The pictures as a view's network sees them, (rows, slots)."""
        pictures = rows.reshape(len(rows), -1, self.shape[2])
        places, weights = self.places[number], self.weights[number]
        # Corner by corner: all four gathered at once take ten times as long.
        moved = sum(
            pictures.at[:, places[:, corner]].get(mode="promise_in_bounds")
            * weights[:, corner, None]
            for corner in range(CORNERS)
        )
        coloured = moved @ self.colours[number] + self.brightness[number]
        return coloured.reshape(rows.shape)

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        each = [self.look(rows, number) for number in range(self.views)]
        return jnp.concatenate(each, axis=1) / math.sqrt(self.views)


def _warp(shape: tuple[int, int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights (pixels, corners) of a random mirroring, shift, scaling and rotation, and of a
    covered square in every second one."""
    height, width, channels = shape
    angle = np.deg2rad(rng.uniform(-ROTATION, ROTATION))
    factors = 1 + rng.uniform(-SCALE, SCALE, 2)
    shift = rng.uniform(-SHIFT, SHIFT, 2) * (height, width)
    # Grey pictures are signs and things with a left and a right: only coloured ones are mirrored.
    mirrored = -1 if channels > 1 and rng.random() < 0.5 else 1
    down, right = source_places(
        height, width, math.cos(angle), math.sin(angle), factors, shift, mirrored
    )
    weights = np.ones((height, width))
    if rng.random() < 0.5:
        top, left = (rng.uniform(0, side * (1 - COVER)) for side in (height, width))
        rows, columns = np.arange(height), np.arange(width)
        inside = (rows >= top) & (rows < top + COVER * height)
        weights[np.ix_(inside, (columns >= left) & (columns < left + COVER * width))] = 0.0
    return _between(down, right, weights)


def _between(
    down: np.ndarray, right: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The four pixels around each place, and their bilinear weights."""
    height, width = down.shape
    top, left = np.floor(down).astype(int), np.floor(right).astype(int)
    places, shares = [], []
    for below in (0, 1):
        for beside in (0, 1):
            row, column = top + below, left + beside
            share = (1 - abs(down - row)) * (1 - abs(right - column)) * weights
            outside = (row < 0) | (row >= height) | (column < 0) | (column >= width)
            shares.append(np.where(outside, 0.0, share).ravel())
            pixel = np.clip(row, 0, height - 1) * width + np.clip(column, 0, width - 1)
            places.append(pixel.ravel())
    return np.stack(places, axis=1).astype(np.int32), np.stack(shares, axis=1)


def _colouring(channels: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix that changes contrast and, in coloured pictures, saturation."""
    saturation = 1 + rng.uniform(-SATURATION, SATURATION) if channels > 1 else 1.0
    grey = np.full((channels, channels), 1 / channels)
    contrast = 1 + rng.uniform(-CONTRAST, CONTRAST)
    return np.asarray(contrast * (saturation * np.eye(channels) + (1 - saturation) * grey))
