"""Infinite-width neural tangent kernels in closed form: fully connected and convolutional nets.

ReLU networks in the NTK parameterisation (Jacot et al. 2018; Arora et al. 2019 for convolutions),
weights of variance 2 per fan-in and biases of deviation 0.1 in every layer, which are the papers'
settings. A kernel is a function of two sets of rows; there are no finite features.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import LimbeckError, positive


@jax.custom_jvp
def _turned(cosine: Array) -> Array:
    """pi minus the angle. Its slope is infinite at angle 0 and pi; there it is taken as 0."""
    return math.pi - jnp.arccos(jnp.clip(cosine, -1.0, 1.0))


@_turned.defjvp
def _turned_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (cosine,), (change,) = primals, tangents
    square = 1.0 - cosine * cosine
    inside = square > 0
    slope = jnp.where(inside, jax.lax.rsqrt(jnp.where(inside, square, 1.0)), 0.0)
    return _turned(cosine), slope * change


@jax.custom_jvp
def _arc(cosine: Array) -> Array:
    """sin(angle) + (pi - angle) cos(angle), whose slope is pi - angle: smooth everywhere."""
    cosine = jnp.clip(cosine, -1.0, 1.0)
    return jnp.sqrt(jnp.maximum(1.0 - cosine * cosine, 0.0)) + _turned(cosine) * cosine


@_arc.defjvp
def _arc_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (cosine,), (change,) = primals, tangents
    return _arc(cosine), _turned(cosine) * change


def relu_step(covariance: Array, tangent: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """Covariance and tangent kernel after a ReLU.

    Args:
        covariance: Between the pre-activations of two inputs.
        tangent: Their tangent kernel.
        left, right: Variances of the one and of the other, shaped to broadcast.
    """
    product = left * right
    present = product > 0  # without biases a row of zeros has no direction, and no slope
    root = jnp.sqrt(jnp.where(present, product, 1.0))
    cosine = covariance / root
    passed = jnp.where(present, root * _arc(cosine), 0.0)
    return passed / (2 * math.pi), tangent * _turned(cosine) / (2 * math.pi)


class FullyConnectedNTK(eqx.Module):
    """NTK of a fully connected ReLU network of any depth.

    >>> kernel = FullyConnectedNTK(depth=1)
    >>> kernel(jnp.eye(2), jnp.eye(2)).shape
    (2, 2)
    """

    depth: int = eqx.field(static=True, default=1)
    """Number of hidden layers."""
    weight_variance: float = eqx.field(static=True, default=2.0)
    bias_variance: float = eqx.field(static=True, default=0.01)

    def __check_init__(self) -> None:
        positive(depth=self.depth, weight_variance=self.weight_variance)

    def __call__(
        self, left: Float[Array, "n dim"], right: Float[Array, "m dim"]
    ) -> Float[Array, "n m"]:
        dim = left.shape[1]
        own = [(rows * rows).sum(axis=1) / dim for rows in (left, right)]
        return self.of_products(left @ right.T / dim, own[0][:, None], own[1][None, :])

    def of_products(self, product: Array, left: Array, right: Array) -> Array:
        """The kernel of pairs, from their mean product and the mean squares of either side."""
        weight, bias = self.weight_variance, self.bias_variance
        covariance = weight * product + bias
        own_left, own_right = weight * left + bias, weight * right + bias
        tangent = covariance
        for _ in range(self.depth):
            covariance, tangent = relu_step(covariance, tangent, own_left, own_right)
            covariance = weight * covariance + bias
            tangent = weight * tangent + covariance
            # Half of a variance passes a ReLU.
            own_left, own_right = weight * own_left / 2 + bias, weight * own_right / 2 + bias
        return tangent

    def of_square(self, square: Array) -> Array:
        """The kernel of a row with itself, from its mean square: the angle is exactly 0."""
        weight, bias = self.weight_variance, self.bias_variance
        tangent = covariance = weight * square + bias
        for _ in range(self.depth):
            covariance = weight * covariance / 2 + bias
            tangent = weight * tangent / 2 + covariance
        return tangent


class ConvolutionalNTK(eqx.Module):
    """NTK of conv3x3-ReLU, then blocks of (conv3x3, ReLU, 2x2 average pool), flatten, dense.

    Exact. Pooling mixes places, so a pair of images carries a covariance between all pairs of
    places, (height x width)^2 numbers; pairs are worked through in blocks that fit `memory`.
    """

    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    channels: int = eqx.field(static=True, default=1)
    blocks: int = eqx.field(static=True, default=3)
    weight_variance: float = eqx.field(static=True, default=2.0)
    bias_variance: float = eqx.field(static=True, default=0.01)
    memory: int = eqx.field(static=True, default=1 << 28)
    """Bytes for the covariances of a block of pairs."""

    def __check_init__(self) -> None:
        positive(blocks=self.blocks, memory=self.memory)
        if min(self.height, self.width) >> self.blocks < 1:
            raise LimbeckError(
                f"A {self.height}x{self.width} image cannot be halved {self.blocks} times; use fewer "
                "blocks."
            )

    def __call__(
        self, left: Float[Array, "n dim"], right: Float[Array, "m dim"]
    ) -> Float[Array, "n m"]:
        ours, theirs = self._images(left), self._images(right)
        own_left, own_right = (
            jax.lax.map(self._variances, ours),
            jax.lax.map(self._variances, theirs),
        )
        pair = 4 * 8 * (self.height * self.width) ** 2  # a few live copies of float32 or float64
        size = max(1, self.memory // (pair * len(right)))
        across = jax.vmap(self._pair, in_axes=(None, None, 0, 0))

        # Derivatives walk each block again: else they would hold all pairs' covariances at once.
        @jax.checkpoint
        def against_all(row: tuple[Array, list[Array]]) -> Array:
            return across(*row, theirs, own_right)

        # One body for all blocks: unrolled ones take minutes to compile.
        return jax.lax.map(against_all, (ours, own_left), batch_size=min(size, len(left)))

    def _images(self, rows: Array) -> Array:
        if rows.shape[1] != self.height * self.width * self.channels:
            raise LimbeckError(
                f"Expected rows of {self.height}x{self.width}x{self.channels} pixels, got "
                f"{rows.shape[1]} numbers."
            )
        return rows.reshape(len(rows), self.height, self.width, self.channels)

    def _variances(self, image: Array) -> list[Array]:
        """Variances of one image's pre-activations before each ReLU, (height, width) each."""
        seen: list[Array] = []
        self._walk(image, image, seen, None, None)
        return seen

    def _pair(
        self, left: Array, own_left: list[Array], right: Array, own_right: list[Array]
    ) -> Array:
        return self._walk(left, right, None, own_left, own_right)

    def _walk(
        self,
        left: Array,
        right: Array,
        seen: list[Array] | None,
        own_left: list[Array] | None,
        own_right: list[Array] | None,
    ) -> Array:
        """The kernel of a pair; with `seen`, an image with itself, its variances noted there."""
        covariance = jnp.einsum("abc,dec->abde", left, right) / self.channels
        covariance = self._convolve(covariance) + self.bias_variance
        tangent = covariance
        for block in range(self.blocks + 1):
            if seen is not None:
                own = jnp.einsum("abab->ab", covariance)
                seen.append(own)
                ours = theirs = own
            else:
                assert own_left is not None and own_right is not None
                ours, theirs = own_left[block], own_right[block]
            covariance, tangent = relu_step(
                covariance, tangent, ours[:, :, None, None], theirs[None, None, :, :]
            )
            if block > 0:
                covariance, tangent = _pool(covariance), _pool(tangent)
            if block < self.blocks:
                covariance = self._convolve(covariance) + self.bias_variance
                tangent = self._convolve(tangent) + covariance
        covariance, tangent = (jnp.einsum("abab->ab", k).mean() for k in (covariance, tangent))
        covariance = self.weight_variance * covariance + self.bias_variance
        return self.weight_variance * tangent + covariance

    def _convolve(self, kernel: Array) -> Array:
        """Both places move together under a 3x3 window with zeros beyond the border."""
        height, width = kernel.shape[:2]
        padded = jnp.pad(kernel, 1)
        above, here, below = (padded[i : i + height, :, i : i + height] for i in range(3))
        rows = above + here + below
        before, at, after = (rows[:, j : j + width, :, j : j + width] for j in range(3))
        total = before + at + after
        return self.weight_variance / 9 * total


def _pool(kernel: Array) -> Array:
    """2x2 averages in both places; an odd last row or column is dropped."""
    height, width = kernel.shape[0] // 2, kernel.shape[1] // 2
    kernel = kernel[: 2 * height, : 2 * width, : 2 * height, : 2 * width]
    return kernel.reshape(height, 2, width, 2, height, 2, width, 2).mean(axis=(1, 3, 5, 7))
