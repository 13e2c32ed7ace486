"""A network of public images: a small ConvNet learns to tell the classes of a public data set, and its weights are
written to a file, whose activations `dp-mepf` can then measure on private images of the same shape.

Usage: python examples/public_network.py [DATA FILE.npz HEIGHT WIDTH CHANNELS [STEPS]]
such as: python examples/public_network.py cifar10 public.npz 28 28 1 2000
"""

import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import limbeck as lk
from limbeck.nets import ConvNet, fit, network_arrays, seen_images

FILTERS, BATCH, LEARNING_RATE = 32, 128, 2e-3


def brought_to(images, shape):
    """Pictures (rows, height, width, channels) enlarged or shrunk, made grey or repeated in every channel, in [0, 1]."""
    height, width, channels = shape
    pixels = jnp.asarray(images, jnp.float32) / 255
    if pixels.shape[3] != channels:
        grey = pixels.mean(axis=3, keepdims=True)
        pixels = jnp.broadcast_to(grey, (*grey.shape[:3], channels))
    return jax.image.resize(pixels, (len(pixels), height, width, channels), "linear")


def loss(network, key, batch):
    """Cross-entropy of a batch."""
    images, labels = batch
    chances = jax.nn.log_softmax(network(images))
    return -jnp.take_along_axis(chances, labels[:, None], axis=1).mean()


def main(data="mnist-mini", path="", height=12, width=12, channels=1, steps=5) -> None:
    shape = int(height), int(width), int(channels)
    public = lk.datasets.load(data).train
    values, labels = np.unique(public.labels, return_inverse=True)
    rng = np.random.default_rng(0)

    def batches():
        while True:
            some = rng.integers(0, len(labels), BATCH)
            slots = brought_to(public.images[some], shape).reshape(BATCH, -1)
            yield seen_images(slots, shape), jnp.asarray(labels[some])

    network = fit(
        ConvNet(shape, len(values), width=FILTERS, key=jax.random.key(0)),
        loss,
        batches=batches(),
        steps=int(steps),
        learning_rate=LEARNING_RATE,
        key=jax.random.key(1),
    )
    images, wanted = next(batches())
    right = float((network(images).argmax(axis=1) == wanted).mean())
    file = Path(path or Path(tempfile.mkdtemp()) / "public.npz")
    np.savez(file, **network_arrays(network))
    print(f"{file}: learned from {data}, gets {right:.0%} of a batch right")
    print(f"limbeck distill IMAGES --schema SCHEMA --method dp-mepf --set network={file} ...")


if __name__ == "__main__":
    main(*sys.argv[1:])
