"""Discriminators: a row and its label in, a logit out. Small, for thousands to live side by side.

They are written for one teacher and its batch. Convolutions are matrix products over patches: many
networks at once become batched matrix products, which processors are good at.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .layers import Dense, Norm, small_start

SLOPE = 0.2
"""Slope of the leaky ReLU below zero."""


class ClassLogits(eqx.Module):
    """Fully connected, one logit per class, of which a row's label chooses; none hidden: linear.

    The last layer starts at zero: a network that has not seen a class says nothing about it.
    """

    layers: list[Dense]
    head: Dense

    def __init__(
        self, *, width: int, classes: int, hidden: tuple[int, ...], key: PRNGKeyArray
    ) -> None:
        widths = (width, *hidden)
        keys = jax.random.split(key, len(widths))
        pairs = zip(widths, hidden, keys[1:], strict=False)
        self.layers = [Dense(a, b, key=k) for a, b, k in pairs]
        head = Dense(widths[-1], classes, key=keys[0])
        self.head = eqx.tree_at(lambda d: d.weight, head, jnp.zeros_like(head.weight))

    def __call__(
        self, rows: Float[Array, "rows width"], labels: Int[Array, " rows"]
    ) -> Float[Array, " rows"]:
        x = rows
        for layer in self.layers:
            x = jax.nn.leaky_relu(layer(x), SLOPE)
        return jnp.take_along_axis(self.head(x), labels[:, None], axis=1)[:, 0]


class Published(eqx.Module):
    """The paper's: a convolution (5x5, stride 2) for images, a dense layer, the label beside each,
    normalised by the batch at hand, as its program does in learning and in answering alike."""

    convolution: Dense | None
    beside: Dense | None
    """What the label adds to the convolution's outputs, as label channels of the image would."""
    layers: list[Dense]
    norms: list[Norm]
    head: Dense
    shape: tuple[int, int, int] | None = eqx.field(static=True)
    classes: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        width: int,
        classes: int,
        hidden: tuple[int, ...],
        filters: int,
        shape: tuple[int, int, int] | None,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, len(hidden) + 3)
        self.classes = classes
        self.convolution, self.beside, self.shape = None, None, None
        if shape is not None and filters > 0:
            self.shape = shape
            self.convolution = small_start(Dense(25 * shape[2], filters, key=keys[0]))
            self.beside = small_start(Dense(classes, filters, key=keys[-1]))
            width = -(-shape[0] // 2) * -(-shape[1] // 2) * filters
        widths = (width, *hidden)
        pairs = zip(widths, hidden, keys[2:], strict=False)
        self.layers = [small_start(Dense(a + classes, b, key=k)) for a, b, k in pairs]
        self.norms = [Norm(b) for b in hidden]
        self.head = small_start(Dense(widths[-1] + classes, 1, key=keys[1]))

    def __call__(
        self, rows: Float[Array, "rows width"], labels: Int[Array, " rows"]
    ) -> Float[Array, " rows"]:
        x, named = rows, jax.nn.one_hot(labels, self.classes)
        if self.convolution and self.beside and self.shape:
            x = self.convolution(patches(x.reshape(-1, *self.shape)))
            x = x + self.beside(named)[:, None]
            x = jax.nn.leaky_relu(x, SLOPE).reshape(len(rows), -1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(layer(jnp.concatenate([x, named], axis=1)), [])
            x = jax.nn.leaky_relu(x, SLOPE)
        return self.head(jnp.concatenate([x, named], axis=1))[:, 0]


Discriminator = ClassLogits | Published


def patches(
    images: Float[Array, "rows height width channels"], side: int = 5, stride: int = 2
) -> Float[Array, "rows places inside"]:
    """All patches of images with margins, so that a matrix product is a convolution."""
    height, width, channels = images.shape[1:]
    margin = side // 2
    padded = jnp.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    down, right = (np.arange(0, n, stride)[:, None] + np.arange(side) for n in (height, width))
    parts = padded[:, down[:, None, :, None], right[None, :, None, :]]
    return parts.reshape(len(images), -1, side * side * channels)


def weights_of(discriminator: Any) -> int:
    """How many numbers it learns; shapes will do instead of arrays."""
    leaves = jax.tree_util.tree_leaves(discriminator)
    learned = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return sum(leaf.size for leaf in learned)
