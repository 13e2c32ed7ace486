"""A set of images that learns to give a network's noisy gradients: post-processing, no rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from ...draws import normal
from ...nets import ConvNet, FlatNetwork

OPTIMISERS = ("adam", "sgd")
MOMENTUM = 0.5
"""Of the published descent."""
START_SPREAD = 0.25
"""Standard deviation of the pixels at the start, around middle grey."""
NORM_FLOOR = 1e-6
"""Added to products of norms that cosines are divided by."""
KEPT_NUMBERS = 1 << 27
"""Count of numbers in kept measurements, at most (512 MiB); older ones are forgotten."""


class MatchedSet:
    """Images, class after class, as many of each, and what is needed to improve them.

    Args:
        network: Whose gradients are matched.
        labels: Of the images.
        class_weights: Noisy share of each class.
        optimiser: adam or sgd.
        learning_rate: Its step size.
        updates: Of the images by each measurement and earlier ones.
        key: Of the start, and of the choice among earlier measurements.
    """

    def __init__(
        self,
        *,
        network: FlatNetwork,
        labels: np.ndarray,
        class_weights: np.ndarray,
        optimiser: str,
        learning_rate: float,
        updates: int,
        key: PRNGKeyArray,
    ) -> None:
        self.network, self.labels, self._updates = network, labels, updates
        start_key, order_key = jax.random.split(key)
        slots = int(np.prod(network.shape))
        self._images = 0.5 + START_SPREAD * normal(start_key, (len(labels), slots))
        weights = jnp.asarray(class_weights[labels], jnp.float32)
        self._labelled = jnp.asarray(labels), weights
        self._order = np.random.default_rng(np.asarray(jax.random.key_data(order_key)))
        self._kept: list[tuple[Array, Array]] = []
        start, self._improved = _improvement(network, optimiser, learning_rate)
        self._state = start(self._images)

    def slots(self) -> Float[np.ndarray, "images slots"]:
        return np.asarray(jnp.clip(self._images, 0.0, 1.0))

    def match(self, numbers: Array, gradient: np.ndarray) -> None:
        """Bring the images' gradient at these numbers of the network nearer to a noisy one."""
        new = numbers, jnp.asarray(gradient, jnp.float32)
        earlier = [
            self._kept[i] for i in self._order.integers(0, len(self._kept) or 1, self._updates - 1)
        ] if self._kept else []  # fmt: skip
        for at, wanted in (new, *earlier):
            self._images, self._state = self._improved(
                self._images, self._state, at, wanted, *self._labelled
            )
        if self._updates > 1:
            self._kept.append(new)
            del self._kept[: len(self._kept) - max(1, KEPT_NUMBERS // (2 * len(gradient)))]

    def teach(self, numbers: Array, steps: int, rate: float) -> Array:
        """The network's numbers after steps of descent on the images as they are."""
        for _ in range(steps):
            numbers = _taught(self.network, numbers, self._images, rate, *self._labelled)
        return numbers


def _slope(
    network: FlatNetwork, numbers: Array, images: Array, labels: Array, weights: Array
) -> Array:
    """Gradient of a network's loss on the images, by its numbers."""
    seen = images + jax.lax.stop_gradient(jnp.clip(images, 0.0, 1.0) - images)
    return jax.grad(network.mean_loss)(numbers, seen, labels, weights)


@functools.partial(jax.jit, static_argnums=0)
def _taught(
    network: FlatNetwork, numbers: Array, images: Array, rate: Array, labels: Array, weights: Array
) -> Array:
    return numbers - rate * _slope(network, numbers, images, labels, weights)


@functools.lru_cache(maxsize=8)
def _improvement(
    network: FlatNetwork, optimiser: str, learning_rate: float
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The state to begin with, and an update of images: compiled once for equal networks."""
    descent = (
        optax.adam(learning_rate, b1=MOMENTUM)
        if optimiser == "adam"
        else optax.sgd(learning_rate, momentum=MOMENTUM)
    )

    @jax.jit
    def improved(
        images: Array, state: Any, numbers: Array, wanted: Array, labels: Array, weights: Array
    ) -> tuple[Array, Any]:
        def apart(images: Array) -> Array:
            own = _slope(network, numbers, images, labels, weights)
            return distance(network.shaped(own), network.shaped(wanted))

        change, state = descent.update(jax.grad(apart)(images), state)
        return optax.apply_updates(images, change), state

    return descent.init, improved


def distance(own: ConvNet, wanted: ConvNet) -> Array:
    """One minus the cosine between two gradients by the weights that lead to an output, summed over the outputs
    of all layers; gradients by scales and offsets are left out, as published."""
    total = jnp.float32(0.0)
    for ours, theirs in zip(_weights(own), _weights(wanted), strict=True):
        products = (ours * theirs).sum(axis=0)
        norms = jnp.sqrt((ours**2).sum(axis=0) + NORM_FLOOR**2) * jnp.linalg.norm(theirs, axis=0)
        total += (1 - products / (norms + NORM_FLOOR)).sum()
    return total


def _weights(network: ConvNet) -> list[Array]:
    """Weights of each layer, (inputs, outputs)."""
    layers = eqx.filter([*network.filters, network.head], eqx.is_array)
    return [layer.reshape(-1, layer.shape[-1]) for layer in layers]
