"""Layers of generators: channels last, normalised over the generated batch until settled."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import normal
from .upsample import upsampled_convolution

SMALL_DEVIATION = 0.02
"""Of weights at the start, as G-PATE's program has them."""


class Norm(eqx.Module):
    """Batch normalisation over all axes but the last; frozen once statistics are set."""

    scale: Float[Array, " width"]
    offset: Float[Array, " width"]
    statistics: Float[Array, "2 width"]

    def __init__(self, width: int) -> None:
        self.scale, self.offset = jnp.ones(width), jnp.zeros(width)
        self.statistics = jnp.stack([jnp.zeros(width), jnp.ones(width)])

    def __call__(self, x: Array, seen: list[Array] | None) -> Array:
        """Normalise with the batch's statistics, appended to `seen`; or, if None, the frozen ones."""
        if seen is None:
            mean, variance = self.statistics
        else:
            axes = tuple(range(x.ndim - 1))
            mean, variance = x.mean(axes), x.var(axes)
            seen.append(jnp.stack([mean, variance]))
        return self.scale * (x - mean) * jax.lax.rsqrt(variance + 1e-5) + self.offset


class Dense(eqx.Module):
    """A dense layer; weights normal with variance 2 / inputs, biases zero."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray) -> None:
        self.weight = normal(key, (inputs, outputs)) * jnp.sqrt(2.0 / inputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + self.bias


def small_start(layer: Dense) -> Dense:
    """The layer with weights of a smaller deviation."""
    scaled = SMALL_DEVIATION * layer.weight / jnp.sqrt(2.0 / layer.weight.shape[0])
    return eqx.tree_at(lambda d: d.weight, layer, scaled)


class Conv(eqx.Module):
    """Convolution, channels last, same size."""

    weight: Float[Array, "side side inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, side: int, inputs: int, outputs: int, *, key: PRNGKeyArray) -> None:
        deviation = jnp.sqrt(2.0 / (side * side * inputs))
        self.weight = normal(key, (side, side, inputs, outputs)) * deviation
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        dims = ("NHWC", "HWIO", "NHWC")
        return (
            jax.lax.conv_general_dilated(x, self.weight, (1, 1), "SAME", dimension_numbers=dims)
            + self.bias
        )

    def enlarged(self, x: Array, size: tuple[int, int]) -> Array:
        """Of the image enlarged to a size."""
        return upsampled_convolution(x, self.weight, size) + self.bias
