"""The small CNN that paper 003 (G-PATE) tests released images with, at its final epoch.

conv3x3 32, 2x2 max pool, dropout; conv3x3 64, dropout; dense 64; softmax. The paper kept the best
test epoch; here the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import positive
from .train import image_task, pixels, predicted_classes, train

DROPPED = (0.2, 0.25)
"""Share of units dropped after the first and the second convolution."""


class CNN(eqx.Module):
    """Images (rows, height, width, channels) -> logits (rows, classes); drops units given a key."""

    filters: list[Float[Array, "3 3 inputs outputs"]]
    weights: list[Float[Array, "inputs outputs"]]
    biases: list[Float[Array, " outputs"]]

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        widths: tuple[int, int, int],
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, 4)
        first, second, dense = widths
        height, width = ((side - 2) // 2 - 2 for side in shape[:2])
        positive(height=height, width=width)
        cells = height * width * second
        start = jax.nn.initializers.glorot_uniform()
        self.filters = [
            start(keys[0], (3, 3, shape[2], first)),
            start(keys[1], (3, 3, first, second)),
        ]
        self.weights = [start(keys[2], (cells, dense)), start(keys[3], (dense, classes))]
        self.biases = [jnp.zeros(n) for n in (first, second, dense, classes)]

    def __call__(self, images: Array, key: PRNGKeyArray | None = None) -> Array:
        keys = (None, None) if key is None else jax.random.split(key)
        x = jax.nn.relu(_convolve(images, self.filters[0]) + self.biases[0])
        x = _drop(_max_pool(x), DROPPED[0], keys[0])
        x = jax.nn.relu(_convolve(x, self.filters[1]) + self.biases[1])
        x = _drop(x, DROPPED[1], keys[1]).reshape(len(x), -1)
        x = jax.nn.relu(x @ self.weights[0] + self.biases[2])
        return x @ self.weights[1] + self.biases[3]


def cnn_accuracy(
    images: np.ndarray,
    targets: np.ndarray,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    classes: int | None = None,
    *,
    seed: int,
    epochs: int = 600,
    learning_rate: float = 1e-3,
    batch: int = 512,
    widths: tuple[int, int, int] = (32, 64, 64),
    progress: Callable[[float], None] = lambda done: None,
) -> float:
    """Share of real test images that the CNN trained on the given images gets right.

    Args:
        images: (rows, height, width, channels), numbers in [0, 1] or bytes.
        targets: Class codes (rows,), or soft targets (rows, classes).
        test_images: Real images of the same form.
        test_labels: Their class codes.
        classes: Number of classes; needed only for codes that leave the last class out.
        seed: Of the network's start, the order of the images and what is dropped.
        epochs: The paper's number, made for 100,000 images.
        learning_rate: The paper's for MNIST; twice as much for Fashion-MNIST.
        batch: Images per step.
        widths: Of the two convolutions and the dense layer.
        progress: Called with the fraction done.
    """
    positive(epochs=epochs, learning_rate=learning_rate, batch=batch)
    x, wanted = image_task(images, targets, classes)
    net = CNN(x.shape[1:], wanted.shape[1], widths=widths, key=jax.random.key(seed))
    rates = np.full(epochs, learning_rate)
    net = train(net, x, wanted, rates=rates, batch=batch, seed=seed, progress=progress)
    return float((predicted_classes(net, pixels(test_images)) == np.asarray(test_labels)).mean())


def _convolve(x: Array, weight: Array) -> Array:
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weight, (1, 1), "VALID", dimension_numbers=dims)


def _max_pool(x: Array) -> Array:
    rows, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(rows, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def _drop(x: Array, share: float, key: PRNGKeyArray | None) -> Array:
    if key is None:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - share, x.shape), x / (1 - share), 0)
