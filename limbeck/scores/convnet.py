"""The field's downstream test: a ConvNet trained from scratch on released images.

Three times (conv3x3, instance norm, ReLU, 2x2 average pool), then a linear layer; SGD with momentum,
learning rate divided by ten at half time; the network of the last epoch counts, and none is
chosen on test data. Repeat with several seeds for fresh networks.

The network itself is `limbeck.nets.ConvNet`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..errors import positive
from ..nets import ConvNet
from .deform import Deformation
from .train import image_task, pixels, predicted_classes, train

LEARNING_RATE, MOMENTUM, DECAY, BATCH = 0.01, 0.9, 5e-4, 256
"""Settings of SGD that the field uses: first learning rate, momentum, weight decay, images per step."""


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
