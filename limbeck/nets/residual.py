"""A residual generator for colour images: blocks that double the image and halve the channels."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ..schema import Image, Schema
from .layers import Conv, Dense, Norm

DOUBLINGS = 3
"""Number of times that a block doubles the image's sides."""
LAYER_NUMBERS = 1 << 25
"""Count of numbers in the largest layer's output that are made at once (128 MiB)."""


class Doubling(eqx.Module):
    """Two convolutions on the doubled image, beside a plain one of single pixels."""

    first: Conv
    second: Conv
    plain: Conv

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 3)
        self.first = Conv(3, inputs, outputs, key=keys[0])
        self.second = Conv(3, outputs, outputs, key=keys[1])
        self.plain = Conv(1, inputs, outputs, key=keys[2])

    def __call__(self, x: Array, before: Norm, between: Norm, seen: list[Array] | None) -> Array:
        y = self.first(_doubled(jax.nn.relu(before(x, seen))))
        y = self.second(jax.nn.relu(between(y, seen)))
        return _doubled(self.plain(x)) + y


class ResidualGenerator(eqx.Module):
    """From a 4 x 4 image of many channels (for 32 x 32) by three doublings, as published for colour.

    The channels at the start are the first hidden width: 512 in the paper.
    """

    first: Dense
    blocks: list[Doubling]
    last: Conv
    norms: list[Norm]
    shape: tuple[int, int, int] = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    code: int = eqx.field(static=True)

    def __init__(
        self, schema: Schema, *, code: int, hidden: tuple[int, ...], key: PRNGKeyArray
    ) -> None:
        image = schema.image
        assert isinstance(image, Image)
        keys = jax.random.split(key, DOUBLINGS + 2)
        self.code, self.classes, self.shape = code, len(schema.classes), image.shape
        widths = [max(1, hidden[0] >> level) for level in range(DOUBLINGS + 1)]
        self.channels = widths[0]
        height, width = self._start
        self.first = Dense(code + self.classes, height * width * widths[0], key=keys[0])
        pairs = list(zip(widths, widths[1:], strict=False))
        self.blocks = [Doubling(a, b, key=k) for (a, b), k in zip(pairs, keys[2:], strict=True)]
        self.last = Conv(3, widths[-1], image.channels, key=keys[1])
        self.norms = [Norm(width) for pair in pairs for width in pair] + [Norm(widths[-1])]

    @property
    def _start(self) -> tuple[int, int]:
        return -(-self.shape[0] // 2**DOUBLINGS), -(-self.shape[1] // 2**DOUBLINGS)

    @property
    def most_rows(self) -> int:
        """How many rows fit into memory at once; a power of two."""
        height, width = self._start
        # A doubling makes four times the pixels; its inputs have twice the channels.
        largest = height * width * 4**DOUBLINGS * max(1, self.channels >> (DOUBLINGS - 1))
        return max(64, min(4096, 1 << (LAYER_NUMBERS // largest).bit_length() - 1))

    def __call__(self, codes: Array, labels: Array, seen: list[Array] | None = None) -> Array:
        x = jnp.concatenate([codes, jax.nn.one_hot(labels, self.classes)], axis=1)
        x = self.first(x).reshape(len(codes), *self._start, self.channels)
        for number, block in enumerate(self.blocks):
            x = block(x, self.norms[2 * number], self.norms[2 * number + 1], seen)
        x = self.last(jax.nn.relu(self.norms[-1](x, seen)))
        height, width, _ = self.shape
        return jax.nn.sigmoid(x[:, :height, :width]).reshape(len(codes), -1)


def _doubled(x: Array) -> Array:
    """Every pixel four times."""
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
