"""The block of the field's convolutional network: convolution, instance norm, ReLU, average pool.

Written for processors: the first convolution is a matrix product, and norm, ReLU and pool have
one derivative together, which keeps nothing but their input.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import uniform

VARIANCE_FLOOR = 1e-5
"""Variance that instance norm adds to that of its inputs."""


def margins(shape: tuple[int, ...], halvings: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Zeros to add on each side before the first 3x3 convolution, so that its output can be halved
    so many times (28 becomes 32)."""
    missing = [-side % 2**halvings for side in shape[:2]]
    (top, bottom), (left, right) = ((1 + m // 2, 1 + m - m // 2) for m in missing)
    return (top, bottom), (left, right)


def uniform_weights(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> Array:
    """Weights of a fresh layer, uniform in +-1/sqrt(inputs)."""
    limit = inputs**-0.5
    return uniform(key, shape, -limit, limit)


def convolution(x: Array, weight: Array) -> Array:
    """3x3, of many channels, the size kept."""
    return jax.lax.conv_general_dilated(
        x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def first_convolution(x: Array, weight: Array) -> Array:
    """3x3 convolution of few channels, no border: as one matrix product it is faster than as such."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    windows = [x[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(windows, axis=-1) @ weight.reshape(-1, weight.shape[-1])


@jax.custom_vjp
def norm_relu_pool(
    x: Float[Array, "rows height width channels"],
    scale: Float[Array, " channels"],
    offset: Float[Array, " channels"],
) -> Float[Array, "rows height/2 width/2 channels"]:
    """Instance norm with scale and offset, ReLU, 2x2 average pool."""
    return _forward(x, scale, offset)[0]


def _forward(x: Array, scale: Array, offset: Array) -> tuple[Array, tuple[Array, ...]]:
    mean = x.mean(axis=(1, 2))
    spread = ((x - mean[:, None, None]) ** 2).mean(axis=(1, 2))
    inverse = jax.lax.rsqrt(spread + VARIANCE_FLOOR)
    slope = scale * inverse
    y = jax.nn.relu(_quads(x) * _wide(slope) + _wide(offset - mean * slope)).mean(axis=(2, 4))
    return y, (x, mean, inverse, scale, offset)


def _backward(kept: tuple[Array, ...], change: Array) -> tuple[Array, Array, Array]:
    x, mean, inverse, scale, offset = kept
    quads, slope = _quads(x), scale * inverse
    active = quads * _wide(slope) + _wide(offset - mean * slope) > 0
    inner = jnp.where(active, change[:, :, None, :, None] / 4, 0)
    # Sums over places of the change and of its product with the normalised x.
    total = inner.sum(axis=(1, 2, 3, 4))
    aligned = (inner * (quads - _wide(mean))).sum(axis=(1, 2, 3, 4)) * inverse
    places = x.shape[1] * x.shape[2]
    tilt = -slope * aligned * inverse / places
    level = -slope * total / places - tilt * mean
    dx = _wide(slope) * inner + _wide(tilt) * quads + _wide(level)
    return dx.reshape(x.shape), aligned.sum(axis=0), total.sum(axis=0)


norm_relu_pool.defvjp(_forward, _backward)


def _quads(x: Array) -> Array:
    rows, height, width, channels = x.shape
    return x.reshape(rows, height // 2, 2, width // 2, 2, channels)


def _wide(values: Float[Array, "rows channels"]) -> Array:
    return values[:, None, None, None, None, :]
