"""The field's convolutional network: three times (conv3x3, instance norm, ReLU, 2x2 average pool), then a linear layer.

Written for few CPU cores: XLA's convolution on channels-last pictures is the fastest of those tried,
except for the first layer, whose few input channels make a matrix product better. Norm, ReLU and pool are
one operation with a derivative by hand, which reads the large array a third as often.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .block import convolution, first_convolution, margins, norm_relu_pool, uniform_weights

BLOCKS = 3
"""Number of blocks of convolution, norm, ReLU and pool."""


class ConvNet(eqx.Module):
    """Images (rows, height, width, channels) -> logits (rows, classes)."""

    filters: list[Float[Array, "3 3 inputs outputs"]]
    scales: list[Float[Array, " outputs"]]
    offsets: list[Float[Array, " outputs"]]
    head: Float[Array, "cells classes"]
    bias: Float[Array, " classes"]
    margin: tuple[tuple[int, int], tuple[int, int]] = eqx.field(static=True)

    def __init__(
        self, shape: tuple[int, int, int], classes: int, *, width: int, key: PRNGKeyArray
    ) -> None:
        *conv_keys, head_key, bias_key = jax.random.split(key, BLOCKS + 2)
        inputs = (shape[2], *[width] * (BLOCKS - 1))
        # The first layer widens pictures (28 to 32) so that they can be halved three times.
        self.margin = margins(shape, BLOCKS)
        cells = width
        for side in shape[:2]:
            cells *= -(-side // 2**BLOCKS)
        # No biases before a norm: it would take them away again.
        self.filters = [
            uniform_weights(k, (3, 3, n, width), 9 * n)
            for k, n in zip(conv_keys, inputs, strict=True)
        ]
        self.scales = [jnp.ones(width) for _ in inputs]
        self.offsets = [jnp.zeros(width) for _ in inputs]
        self.head = uniform_weights(head_key, (cells, classes), cells)
        self.bias = uniform_weights(bias_key, (classes,), cells)

    def __call__(
        self, images: Float[Array, "rows height width channels"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "rows classes"]:
        x = self.activations(images)[-1]
        return x.reshape(len(x), -1) @ self.head + self.bias

    def activations(self, images: Float[Array, "rows height width channels"]) -> list[Array]:
        """What comes out of each block, (rows, height, width, channels)."""
        x = first_convolution(jnp.pad(images, ((0, 0), *self.margin, (0, 0))), self.filters[0])
        outputs = [norm_relu_pool(x, self.scales[0], self.offsets[0])]
        rest = zip(self.filters[1:], self.scales[1:], self.offsets[1:], strict=True)
        for weight, scale, offset in rest:
            outputs.append(norm_relu_pool(convolution(outputs[-1], weight), scale, offset))
        return outputs
