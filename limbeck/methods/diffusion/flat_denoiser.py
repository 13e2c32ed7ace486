"""A denoiser whose numbers are one flat vector, and what a single image says about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...nets import AbstractFlat, Denoiser, denoising_loss


@dataclass(frozen=True, kw_only=True)
class FlatDenoiser(AbstractFlat):
    """The small U-Net, with the loss of one row.

    Args:
        shape: Height, width and channels of an image.
        width: Channels at half the size; at a quarter there are twice as many.
        depth: Blocks at each size.
        draws: How often an image is made noisy in a step.
        noise_mean: Of the logarithm of the noise's standard deviation.
        noise_spread: Standard deviation of that logarithm.
        seed: Public, of the noise.
    """

    shape: tuple[int, int, int]
    width: int
    depth: int
    draws: int = 1
    noise_mean: float = 0.0
    noise_spread: float = 1.0
    seed: int = field(default=0, compare=False)  # no part of what is compiled

    def network(self, key: PRNGKeyArray) -> Denoiser:
        return Denoiser(self.shape, self.classes, width=self.width, depth=self.depth, key=key)

    def given(self, numbers: Float[Array, " size"], step: int) -> np.ndarray:
        """The public state of a step: the network's numbers, followed by the step's own, from which noise is
        drawn anew: a whole number that float32 holds."""
        own = np.random.default_rng([self.seed, step]).integers(1 << 24)
        return np.append(np.asarray(numbers), np.float32(own))

    def row_loss(self, given: Array, slots: Array, label: Array) -> Array:
        """Mean loss of an image over several draws of noise: one gradient a row, whatever their number.

        The draws follow from the step's own number and the row itself, so that a row's gradient
        does not depend on which rows are in the batch beside it.
        """
        numbers, own = given[:-1], given[-1].astype(jnp.uint32)
        key = jax.random.fold_in(jax.random.key(own), _mark(slots))
        size_key, noise_key = jax.random.split(key)
        sizes = jax.random.normal(size_key, (self.draws,))
        deviations = jnp.exp(self.noise_mean + self.noise_spread * sizes)
        images = jnp.broadcast_to(as_images(slots, self.shape), (self.draws, *self.shape))
        noise = jax.random.normal(noise_key, images.shape)
        labels = jnp.broadcast_to(label, (self.draws,))
        return denoising_loss(self.shaped(numbers), images, labels, deviations, noise).mean()


def as_images(slots: Array, shape: tuple[int, int, int]) -> Array:
    """Pixels in [0, 1] as the denoiser sees them, in [-1, 1]."""
    return 2 * slots.reshape(-1, *shape) - 1


def _mark(slots: Float[Array, " slots"]) -> Array:
    """A 32-bit hash of a row."""
    bits = jax.lax.bitcast_convert_type(slots.astype(jnp.float32), jnp.uint32)
    odd = 2 * jnp.arange(1, len(bits) + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B1) + 1
    mixed = (bits ^ (bits >> 15)) * odd
    return (mixed ^ (mixed >> 13)).sum(dtype=jnp.uint32)
