"""A small U-Net that takes noise from images, told the class and how much noise there is (Karras et al. 2022).

Written for gradients of single images on few cores: pictures are seen in 2 x 2 patches, at half and a quarter of their
size, and convolutions are matrix products. It has no statistics of a batch.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import normal

DATA_DEVIATION = 0.5
"""Standard deviation that pixels in [-1, 1] are taken to have: a constant, not the rows'."""
FREQUENCIES = 8
"""Sines, and as many cosines, by which the size of the noise is told."""
FLOOR = 1e-5
"""Variance that norms add to that of their inputs."""


class Convolution(eqx.Module):
    """3x3, the size kept, as one matrix product; weights normal with variance 1 / inputs, or zero."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray | None) -> None:
        shape = (9 * inputs, outputs)
        self.weight = jnp.zeros(shape) if key is None else normal(key, shape) / (9 * inputs) ** 0.5
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "rows height width inputs"]) -> Array:
        height, width = x.shape[1:3]
        wide = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        parts = [wide[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
        return jnp.concatenate(parts, axis=-1) @ self.weight + self.bias


class Told(eqx.Module):
    """Norm, shift and scale by what is told beside the image, SiLU, convolution; added to its input. With `places` what
    comes out is mixed among all places first, as attention would, with fewer numbers."""

    convolution: Convolution
    by_told: Float[Array, "told twice"]
    mix: Float[Array, "places places"] | None

    def __init__(
        self, width: int, told: int, *, places: int | None = None, key: PRNGKeyArray
    ) -> None:
        first, second = jax.random.split(key)
        self.convolution = Convolution(width, width, key=first)
        self.by_told = jnp.zeros((told, 2 * width))
        self.mix = None if places is None else normal(second, (places, places)) / places**0.5

    def __call__(self, x: Float[Array, "rows height width inputs"], told: Array) -> Array:
        scale, shift = jnp.split((told @ self.by_told)[:, None, None], 2, axis=-1)
        y = x - x.mean(axis=(1, 2, 3), keepdims=True)
        y = y * jax.lax.rsqrt((y**2).mean(axis=(1, 2, 3), keepdims=True) + FLOOR)
        y = jax.nn.silu(y * (1 + scale) + shift)
        if self.mix is not None:
            rows, height, width, channels = y.shape
            mixed = jnp.einsum("rpc,pq->rqc", y.reshape(rows, -1, channels), self.mix)
            y = y + mixed.reshape(rows, height, width, channels)
        return x + self.convolution(y)


class Denoiser(eqx.Module):
    """Noisy images in [-1, 1], the standard deviation of their noise, labels -> images without it."""

    classes: Float[Array, "classes told"]
    noises: Float[Array, "frequencies told"]
    enter: Convolution
    fine: list[Told]
    down: Float[Array, "inputs outputs"]
    coarse: list[Told]
    up: Float[Array, "inputs outputs"]
    last: list[Told]
    leave: Convolution
    shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        width: int,
        depth: int = 1,
        key: PRNGKeyArray,
    ) -> None:
        keys = iter(jax.random.split(key, 6 + 3 * depth))
        told, patch = 2 * width, 4 * shape[2]
        self.shape = shape
        self.classes = normal(next(keys), (classes, told))
        self.noises = normal(next(keys), (2 * FREQUENCIES, told)) / FREQUENCIES**0.5
        self.enter = Convolution(patch, width, key=next(keys))
        self.fine = [Told(width, told, key=next(keys)) for _ in range(depth)]
        self.down = normal(next(keys), (4 * width, 2 * width)) / (4 * width) ** 0.5
        places = -(-shape[0] // 4) * -(-shape[1] // 4)
        self.coarse = [
            Told(2 * width, told, places=places, key=next(keys)) for _ in range(depth + 1)
        ]
        self.up = normal(next(keys), (2 * width, 4 * width)) / (2 * width) ** 0.5
        self.last = [Told(width, told, key=next(keys)) for _ in range(depth)]
        self.leave = Convolution(width, patch, key=None)

    def __call__(
        self,
        noisy: Float[Array, "rows height width channels"],
        deviations: Float[Array, " rows"],
        labels: Array,
    ) -> Float[Array, "rows height width channels"]:
        """The expected image, mixed of what came and what the network says, so that it sees numbers of one
        size at any noise."""
        sigma = deviations[:, None, None, None]
        both = sigma**2 + DATA_DEVIATION**2
        told = self._told(jnp.log(deviations) / 4, labels)
        said = self._inner(noisy * jax.lax.rsqrt(both), told)
        return (DATA_DEVIATION**2 * noisy + sigma * DATA_DEVIATION * jnp.sqrt(both) * said) / both

    def _told(self, size: Array, labels: Array) -> Array:
        angles = size[:, None] * 2.0 ** jnp.arange(FREQUENCIES) * jnp.pi / 4
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jax.nn.silu(waves @ self.noises + self.classes[labels])

    def _inner(self, x: Array, told: Array) -> Array:
        height, width = self.shape[:2]
        rest = [(0, -side % 4) for side in (height, width)]
        x = self.enter(_patched(jnp.pad(x, ((0, 0), *rest, (0, 0)))))
        for block in self.fine:
            x = block(x, told)
        y = _patched(x) @ self.down
        for block in self.coarse:
            y = block(y, told)
        x = x + _unpatched(y @ self.up)
        for block in self.last:
            x = block(x, told)
        x = _unpatched(self.leave(jax.nn.silu(x)))
        return x[:, :height, :width]


def _patched(x: Array) -> Array:
    """Each 2 x 2 patch as one place with four times the channels."""
    rows, height, width, channels = x.shape
    x = x.reshape(rows, height // 2, 2, width // 2, 2, channels)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(rows, height // 2, width // 2, 4 * channels)


def _unpatched(x: Array) -> Array:
    """The other way round."""
    rows, height, width, channels = x.shape
    x = x.reshape(rows, height, width, 2, 2, channels // 4)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(rows, 2 * height, 2 * width, channels // 4)


def denoising_loss(
    denoiser: Any, images: Array, labels: Array, deviations: Array, noise: Array
) -> Float[Array, " rows"]:
    """Mean squared error of each image, weighted so that every size of noise counts alike."""
    denoised = denoiser(images + deviations[:, None, None, None] * noise, deviations, labels)
    weight = 1 / deviations**2 + 1 / DATA_DEVIATION**2
    return weight * ((denoised - images) ** 2).mean(axis=(1, 2, 3))
