"""Images from a diffusion model: a denoiser takes pure noise away, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...chunks import in_chunks
from ...errors import LimbeckError
from ...nets import Denoiser, filled_network, network_arrays
from ...schema import Schema
from ..by_class import ByClass

LARGEST, SMALLEST = 20.0, 0.02
"""Standard deviations of the noise at the first step and at the last, for pixels in [-1, 1]."""
BEND = 5.0
"""How much closer small deviations lie together than large ones: 1, all are equally far apart."""
AT_ONCE = 250
"""Images that are drawn at a time."""


@dataclass(frozen=True, kw_only=True)
class Diffused(ByClass):
    """A denoiser with the noisy shares of the classes."""

    denoiser: Denoiser
    settings: Mapping[str, Any]
    """What the denoiser is built from again, before its numbers are filled in, and the steps of a draw."""
    class_weights: np.ndarray

    kind = "denoiser"

    def of_classes(
        self, schema: Schema, labels: np.ndarray, rng: np.random.Generator, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """One image for each label code."""
        noise = rng.standard_normal((len(labels), *self.denoiser.shape), dtype=np.float32)
        sizes = jnp.asarray(noise_sizes(self.settings["sampler_steps"]), jnp.float32)

        def drawn(noise: np.ndarray, labels: np.ndarray) -> Array:
            x = sizes[0] * noise
            for now, then in zip(sizes, sizes[1:], strict=False):
                x = _less_noise(self.denoiser, x, jnp.asarray(labels), now, then)
            return x

        pixels = in_chunks(drawn, noise, labels, size=min(AT_ONCE, max(1, len(labels))))
        return np.clip((pixels.reshape(len(labels), -1) + 1) / 2, 0.0, 1.0), labels

    def facts(self) -> dict[str, Any]:
        return dict(self.settings)

    def arrays(self) -> dict[str, np.ndarray]:
        return network_arrays(self.denoiser) | {"class_weights": self.class_weights}

    @classmethod
    def load(cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Diffused:
        weights = arrays.pop("class_weights")
        if schema.image is None:
            raise LimbeckError("A denoiser is for images, and this schema declares none.")
        fresh = Denoiser(
            schema.image.shape,
            len(schema.classes),
            width=facts["width"],
            depth=facts["depth"],
            key=jax.random.key(0),
        )
        return cls(denoiser=filled_network(fresh, arrays), settings=facts, class_weights=weights)


def noise_sizes(steps: int) -> np.ndarray:
    """Standard deviations of the noise before each step, and nothing after the last.

    >>> noise_sizes(3).round(2).tolist()
    [20.0, 1.92, 0.02, 0.0]
    """
    first, last = np.asarray([LARGEST, SMALLEST]) ** (1 / BEND)
    return np.append(np.linspace(first, last, steps) ** BEND, 0.0)


@eqx.filter_jit
def _less_noise(denoiser: Denoiser, x: Array, labels: Array, now: Array, then: Array) -> Array:
    """One step of Heun's method along the flow that takes noise of one size to a smaller one."""

    def slope(x: Array, size: Array) -> Array:
        return (x - denoiser(x, jnp.full(len(x), size), labels)) / size

    first = slope(x, now)
    ahead = x + (then - now) * first
    # There is no slope where there is no noise: the last step is a straight one.
    second = jnp.where(then > 0, slope(ahead, jnp.maximum(then, SMALLEST)), first)
    return x + (then - now) * (first + second) / 2
