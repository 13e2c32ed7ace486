"""G-PATE's published generator: transposed convolutions, with the label beside every layer's input."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import normal
from ..schema import Image, Schema
from .layers import SMALL_DEVIATION, Dense, Norm, small_start

SIDE, STRIDE = 5, 2
"""Pixels per side of a kernel, and of the places that one number is spread to."""


class Spreading(eqx.Module):
    """A transposed convolution that doubles the sides."""

    weight: Float[Array, "side side inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray) -> None:
        self.weight = SMALL_DEVIATION * normal(key, (SIDE, SIDE, inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        dims = ("NHWC", "HWIO", "NHWC")
        strides = (STRIDE, STRIDE)
        spread = jax.lax.conv_transpose(x, self.weight, strides, "SAME", dimension_numbers=dims)
        return spread + self.bias


class DeconvolutionGenerator(eqx.Module):
    """Two dense layers and two transposed convolutions; ReLU after batch normalisation, a sigmoid at the end."""

    first: Dense
    second: Dense
    spreading: list[Spreading]
    norms: list[Norm]
    shape: tuple[int, int, int] = eqx.field(static=True)
    channels: tuple[int, int] = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    code: int = eqx.field(static=True)

    def __init__(
        self,
        schema: Schema,
        *,
        code: int,
        hidden: tuple[int, ...],
        channels: tuple[int, int] = (64, 32),
        key: PRNGKeyArray,
    ) -> None:
        image = schema.image
        assert isinstance(image, Image)
        keys = jax.random.split(key, 4)
        self.code, self.classes, self.shape = code, len(schema.classes), image.shape
        self.channels = (int(channels[0]), int(channels[1]))
        height, width = self._start
        places = height * width * self.channels[0]
        self.first = small_start(Dense(code + self.classes, hidden[0], key=keys[0]))
        self.second = small_start(Dense(hidden[0] + self.classes, places, key=keys[1]))
        self.spreading = [
            Spreading(self.channels[0] + self.classes, self.channels[1], key=keys[2]),
            Spreading(self.channels[1] + self.classes, image.channels, key=keys[3]),
        ]
        self.norms = [Norm(hidden[0]), Norm(places), Norm(self.channels[1])]

    @property
    def _start(self) -> tuple[int, int]:
        return -(-self.shape[0] // STRIDE**2), -(-self.shape[1] // STRIDE**2)

    def __call__(self, codes: Array, labels: Array, seen: list[Array] | None = None) -> Array:
        named = jax.nn.one_hot(labels, self.classes)
        x = jax.nn.relu(self.norms[0](self.first(_beside(codes, named)), seen))
        x = jax.nn.relu(self.norms[1](self.second(_beside(x, named)), seen))
        x = x.reshape(len(codes), *self._start, self.channels[0])
        x = jax.nn.relu(self.norms[2](self.spreading[0](_beside(x, named)), seen))
        x = self.spreading[1](_beside(x, named))
        height, width, _ = self.shape
        return jax.nn.sigmoid(x[:, :height, :width]).reshape(len(codes), -1)


def _beside(x: Array, named: Array) -> Array:
    """The label as further numbers, of images at every place."""
    if x.ndim == 4:
        named = jnp.broadcast_to(named[:, None, None], (*x.shape[:3], named.shape[1]))
    return jnp.concatenate([x, named], axis=-1)
