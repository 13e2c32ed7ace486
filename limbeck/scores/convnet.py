"""The field's downstream test: a ConvNet trained from scratch on released images.

Three times (conv3x3, instance norm, ReLU, 2x2 average pool), then a linear layer; SGD with momentum,
learning rate divided by ten at half time; the network of the last epoch counts, and none is
chosen on test data. Repeat with several seeds for fresh networks.

Written for few CPU cores: XLA's convolution on channels-last pictures is the fastest of those tried,
except for the first layer, whose few input channels make a matrix product better. Norm, ReLU and pool are
one operation with a derivative by hand, which reads the large array a third as often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..errors import positive
from ..nets import convolution, first_convolution, margins, norm_relu_pool, uniform_weights
from .deform import Deformation
from .train import image_task, pixels, predicted_classes, train

LEARNING_RATE, MOMENTUM, DECAY, BATCH = 0.01, 0.9, 5e-4, 256
"""Settings of SGD that the field uses: first learning rate, momentum, weight decay, images per step."""
BLOCKS = 3
"""Number of blocks of convolution, norm, ReLU and pool."""


def convnet_accuracy(
    images: np.ndarray,
    targets: np.ndarray,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    classes: int | None = None,
    *,
    seed: int,
    epochs: int = 300,
    width: int = 128,
    augment: bool | Deformation = False,
    statistics: tuple[Any, Any] | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> float:
    """Share of real test images that a ConvNet trained on the given images gets right.

    Args:
        images: (rows, height, width, channels), numbers in [0, 1] or bytes.
        targets: Class codes (rows,), or soft targets (rows, classes).
        test_images: Real images of the same form.
        test_labels: Their class codes.
        classes: Number of classes; needed only for codes that leave the last class out.
        seed: Of the network's start, the order of the images and their deformations.
        epochs: The field trains 300, or 1000 with `augment`.
        width: Filters per layer.
        augment: Deform the training images, anew in each step.
        statistics: Mean and deviation per channel that standardise both sides, if fixed ones are
            to be used; otherwise those of the training images.
        progress: Called with the fraction done.
    """
    positive(epochs=epochs, width=width)
    x, wanted = image_task(images, targets, classes)
    if statistics is None:
        statistics = x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))
    mean, deviation = (np.asarray(s, np.float32) for s in statistics)
    deviation = np.maximum(deviation, np.float32(1e-3))
    net = ConvNet(x.shape[1:], wanted.shape[1], width=width, key=jax.random.key(seed))
    net = train(
        net,
        (x - mean) / deviation,
        wanted,
        rates=np.where(np.arange(epochs) <= epochs // 2, LEARNING_RATE, LEARNING_RATE / 10),
        batch=BATCH,
        momentum=MOMENTUM,
        decay=DECAY,
        deform=Deformation() if augment is True else augment or None,
        seed=seed,
        progress=progress,
    )
    predicted = predicted_classes(net, (pixels(test_images) - mean) / deviation)
    return float((predicted == np.asarray(test_labels)).mean())


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
        x = first_convolution(jnp.pad(images, ((0, 0), *self.margin, (0, 0))), self.filters[0])
        x = norm_relu_pool(x, self.scales[0], self.offsets[0])
        rest = zip(self.filters[1:], self.scales[1:], self.offsets[1:], strict=True)
        for weight, scale, offset in rest:
            x = norm_relu_pool(convolution(x, weight), scale, offset)
        return x.reshape(len(x), -1) @ self.head + self.bias
