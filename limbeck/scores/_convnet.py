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

from .._check import LimbeckError, positive
from ..nets import convolution, first_convolution, margins, norm_relu_pool
from ._deform import Deformation
from ._ridge import one_hot

LEARNING_RATE, MOMENTUM, DECAY, BATCH = 0.01, 0.9, 5e-4, 256
BLOCKS = 3


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
    net, mean, deviation = train_convnet(
        images, targets, seed=seed, classes=classes, epochs=epochs, width=width,
        augment=augment, statistics=statistics, progress=progress,
    )  # fmt: skip
    found = convnet_logits(net, (pixels(test_images) - mean) / deviation).argmax(axis=1)
    return float((found == np.asarray(test_labels)).mean())


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
            _uniform(k, (3, 3, n, width), 9 * n) for k, n in zip(conv_keys, inputs, strict=True)
        ]
        self.scales = [jnp.ones(width) for _ in inputs]
        self.offsets = [jnp.zeros(width) for _ in inputs]
        self.head = _uniform(head_key, (cells, classes), cells)
        self.bias = _uniform(bias_key, (classes,), cells)

    def __call__(self, images: Float[Array, "rows height width channels"]) -> Array:
        x = first_convolution(jnp.pad(images, ((0, 0), *self.margin, (0, 0))), self.filters[0])
        x = norm_relu_pool(x, self.scales[0], self.offsets[0])
        rest = zip(self.filters[1:], self.scales[1:], self.offsets[1:], strict=True)
        for weight, scale, offset in rest:
            x = norm_relu_pool(convolution(x, weight), scale, offset)
        return x.reshape(len(x), -1) @ self.head + self.bias


def train_convnet(
    images: np.ndarray,
    targets: np.ndarray,
    *,
    seed: int,
    classes: int | None = None,
    epochs: int = 300,
    width: int = 128,
    augment: bool | Deformation = False,
    statistics: tuple[Any, Any] | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> tuple[ConvNet, np.ndarray, np.ndarray]:
    """The network of the last epoch, and the mean and deviation its images must be given with."""
    positive(epochs=epochs, width=width)
    x, wanted = pixels(images), one_hot(targets, classes).astype(np.float32)
    if not len(x) == len(wanted) > 0:
        raise LimbeckError(f"Expected one target per image, got {len(wanted)} for {len(x)}.")
    if statistics is None:
        statistics = x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))
    mean, deviation = (np.asarray(s, np.float32) for s in statistics)
    deviation = np.maximum(deviation, np.float32(1e-3))
    x = (x - mean) / deviation
    start_key, step_key = jax.random.split(jax.random.key(seed))
    net = ConvNet(x.shape[1:], wanted.shape[1], width=width, key=start_key)
    velocity = jax.tree_util.tree_map(jnp.zeros_like, eqx.filter(net, eqx.is_array))
    deform = Deformation() if augment is True else augment or None
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        rate = LEARNING_RATE if epoch <= epochs // 2 else LEARNING_RATE / 10
        order = rng.permutation(len(x))
        for number, at in enumerate(range(0, len(x), BATCH)):
            chosen = order[at : at + BATCH]
            key = jax.random.fold_in(jax.random.fold_in(step_key, epoch), number)
            batch = jnp.asarray(x[chosen]), jnp.asarray(wanted[chosen])
            net, velocity = _step(net, velocity, *batch, jnp.asarray(rate), deform, key)
        jax.block_until_ready(net.bias)
        progress((epoch + 1) / epochs)
    return net, mean, deviation


@eqx.filter_jit
def _step(
    net: ConvNet,
    velocity: ConvNet,
    x: Array,
    wanted: Array,
    rate: Array,
    deform: Deformation | None,
    key: PRNGKeyArray,
) -> tuple[ConvNet, ConvNet]:
    """One update. Called from Python: in XLA's own loops convolutions run on one thread."""
    if deform is not None:
        x = deform(x, key=key)

    def loss(net: ConvNet) -> Array:
        return -(wanted * jax.nn.log_softmax(net(x))).sum(axis=1).mean()

    slope = jax.grad(loss)(net)
    velocity = jax.tree_util.tree_map(
        lambda v, g, w: MOMENTUM * v + g + DECAY * w, velocity, slope, net
    )
    return jax.tree_util.tree_map(lambda w, v: w - rate * v, net, velocity), velocity


@eqx.filter_jit
def _logits(net: ConvNet, x: Array) -> Array:
    return net(x)


def convnet_logits(net: ConvNet, images: np.ndarray, *, chunk: int = 250) -> np.ndarray:
    """Logits of many standardised images, in chunks of one shape."""
    size = max(1, min(chunk, len(images)))
    parts = []
    for at in range(0, len(images), size):
        part = images[at : at + size]
        filled = np.pad(part, [(0, size - len(part)), (0, 0), (0, 0), (0, 0)])
        parts.append(np.asarray(_logits(net, jnp.asarray(filled)))[: len(part)])
    return np.concatenate(parts) if parts else np.zeros((0, len(net.bias)), np.float32)


def pixels(images: np.ndarray) -> np.ndarray:
    """Pictures as float32 in [0, 1] with a channel axis."""
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise LimbeckError("Expected images of the form (rows, height, width, channels).")
    if images.dtype == np.uint8:
        return images / np.float32(255)
    return images.astype(np.float32)


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> Array:
    bound = inputs**-0.5
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)
