"""Features of a few random convolutional networks: the outputs of networks that have not learned yet."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..errors import positive
from ..nets import convolution, first_convolution, margins, norm_relu_pool, uniform_weights

FEWEST_BLOCKS, SIDE = 3, 4
"""Number of blocks of a network, at least; large images get so many that 4 places a side are left."""
NORM_FLOOR = 1e-6
"""Norm below which outputs are not scaled up to norm 1."""
CHUNK_NUMBERS = 1 << 21
"""Count of numbers in a layer's output that are made at once."""


class RandomConvNets(eqx.Module):
    """Outputs of random networks, each some blocks of conv 3x3, instance norm, ReLU, average pool.

    Each network's output is scaled to norm 1, all of them together as well; so two rows' inner
    product is the mean of the networks' cosines.

    >>> phi = RandomConvNets(shape=(8, 8, 1), networks=2, width=4, key=jax.random.key(0))
    >>> phi.size, phi(jnp.ones((5, 64))).shape
    (8, (5, 8))
    """

    first: Float[Array, "3 3 channels width"]
    """Filters of the first block, shared by all networks: it costs most, and small filters of few
    channels are alike anyway."""
    rest: list[Float[Array, "networks 3 3 width width"]]
    """Filters of the other blocks."""
    shape: tuple[int, int, int] = eqx.field(static=True)
    norm_bound: float = eqx.field(static=True)

    def __init__(
        self, *, shape: tuple[int, int, int], networks: int, width: int, key: PRNGKeyArray
    ) -> None:
        positive(networks=networks, network_width=width)
        keys = jax.random.split(key, _blocks(shape))
        self.first = uniform_weights(keys[0], (3, 3, shape[2], width), 9 * shape[2])
        self.rest = [
            uniform_weights(k, (networks, 3, 3, width, width), 9 * width) for k in keys[1:]
        ]
        self.shape, self.norm_bound = shape, 1.0

    @property
    def networks(self) -> int:
        """Number of networks."""
        return len(self.rest[0])

    @property
    def chunk(self) -> int:
        """Pictures worked on at once: so many that a layer's output stays in the cache."""
        return chunk_of(self.shape, self.first.shape[3])

    @property
    def size(self) -> int:
        return self.networks * output_size(self.shape, self.first.shape[3])

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        each = self.separate(rows, jnp.arange(self.networks))
        return jnp.concatenate(list(each), axis=1) / jnp.sqrt(jnp.float32(self.networks))

    def separate(
        self, rows: Float[Array, "rows slots"], chosen: Int[Array, " some"]
    ) -> Float[Array, "some rows part"]:
        """The outputs of some networks, one by one, each scaled to norm 1."""
        images = 4 * rows.reshape(-1, *self.shape) - 2
        padded = jnp.pad(images, ((0, 0), *margins(self.shape, _blocks(self.shape)), (0, 0)))
        x = first_convolution(padded, self.first)
        width = x.shape[3]
        ones, zeros = jnp.ones(width), jnp.zeros(width)
        x = norm_relu_pool(x, ones, zeros)
        outputs = []
        for number in chosen:
            y = x
            for kernels in self.rest:
                y = norm_relu_pool(convolution(y, kernels[number]), ones, zeros)
            y = y.reshape(len(y), -1)
            norm = jnp.sqrt(jnp.maximum((y**2).sum(axis=1, keepdims=True), NORM_FLOOR**2))
            outputs.append(y / norm)
        return jnp.stack(outputs)


def chunk_of(shape: tuple[int, int, int], width: int) -> int:
    """Pictures whose outputs of a layer with so many filters stay in the cache, a multiple of 16."""
    return max(16, CHUNK_NUMBERS // (shape[0] * shape[1] * width) // 16 * 16)


def output_size(shape: tuple[int, int, int], width: int) -> int:
    """Number of outputs of one network with so many filters.

    >>> output_size((28, 28, 1), 128)
    2048
    """
    halved = 2 ** _blocks(shape)
    return width * -(-shape[0] // halved) * -(-shape[1] // halved)


def _blocks(shape: tuple[int, int, int]) -> int:
    """Number of blocks for images of this shape.

    >>> [_blocks((side, side, 1)) for side in (8, 28, 32, 33, 64, 96)]
    [3, 3, 3, 4, 4, 5]
    """
    return max(FEWEST_BLOCKS, math.ceil(math.log2(max(shape[:2]) / SIDE)))
