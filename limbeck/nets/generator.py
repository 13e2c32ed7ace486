"""Generators: latent codes and a label in, expanded rows (slots in [0, 1]) out.

They are post-processing: they see noisy measurements, never rows. Normalisation layers use the
statistics of the generated batch while training; `settle` then fixes them, so that a sample does
not depend on the samples drawn beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from ..chunks import in_chunks
from ..draws import normal
from ..schema import Category, Image, Schema
from .deconvolution import DeconvolutionGenerator
from .layers import Conv, Dense, Norm
from .residual import ResidualGenerator

PIECE_IMAGES = 100
"""Number of images of a batch that are enlarged at a time."""


class TableGenerator(eqx.Module):
    """Fully connected; a softmax per category, a sigmoid per number, pixel and "missing" slot.

    Args:
        schema: Of the rows.
        code, hidden: Latent numbers, and widths of the hidden layers.
        low, wide: Where each slot's range begins and how wide it is, if that is not [0, 1].
        key: For the weights.
    """

    layers: list[Dense]
    norms: list[Norm]
    head: Dense
    soft: tuple[tuple[int, int], ...] = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    code: int = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    wide: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self,
        schema: Schema,
        *,
        code: int,
        hidden: tuple[int, ...],
        low: tuple[float, ...] = (),
        wide: tuple[float, ...] = (),
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(key, len(hidden) + 1)
        self.code, self.classes = code, len(schema.classes)
        self.low, self.wide = low, wide
        widths = (code + self.classes, *hidden)
        self.layers = [
            Dense(a, b, key=k) for a, b, k in zip(widths, widths[1:], keys[1:], strict=False)
        ]
        self.norms = [Norm(width) for width in hidden]
        self.head = Dense(widths[-1], schema.slots, key=keys[0])
        self.soft = tuple(
            (at.start, at.stop) for column, at in schema.blocks() if isinstance(column, Category)
        )

    def __call__(self, codes: Array, labels: Array, seen: list[Array] | None = None) -> Array:
        x = jnp.concatenate([codes, jax.nn.one_hot(labels, self.classes)], axis=1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = jax.nn.relu(norm(layer(x), seen))
        logits = self.head(x)
        slots = jax.nn.sigmoid(logits)
        for start, stop in self.soft:
            slots = slots.at[:, start:stop].set(jax.nn.softmax(logits[:, start:stop], axis=1))
        if self.low:
            return jnp.asarray(self.low, jnp.float32) + jnp.asarray(self.wide, jnp.float32) * slots
        return slots


class ImageGenerator(eqx.Module):
    """The papers' convolutional generator: two dense layers, twice (bilinear x2, conv 5x5)."""

    first: Dense
    second: Dense
    norms: list[Norm]
    convs: list[Conv]
    shape: tuple[int, int, int] = eqx.field(static=True)
    channels: tuple[int, int] = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    code: int = eqx.field(static=True)

    def __init__(
        self,
        schema: Schema,
        *,
        code: int,
        hidden: tuple[int, ...],
        channels: tuple[int, int] = (16, 8),
        key: PRNGKeyArray,
    ) -> None:
        image = schema.image
        assert isinstance(image, Image)
        keys = jax.random.split(key, 4)
        self.code, self.classes, self.shape = code, len(schema.classes), image.shape
        self.channels = (int(channels[0]), int(channels[1]))
        cells = -(-image.height // 4) * -(-image.width // 4) * channels[0]
        self.first = Dense(code + self.classes, hidden[0], key=keys[0])
        self.second = Dense(hidden[0], cells, key=keys[1])
        self.norms = [Norm(hidden[0]), Norm(cells)]
        self.convs = [
            Conv(5, channels[0], channels[1], key=keys[2]),
            Conv(5, channels[1], image.channels, key=keys[3]),
        ]

    def __call__(self, codes: Array, labels: Array, seen: list[Array] | None = None) -> Array:
        height, width, _ = self.shape
        count = len(codes)
        x = jnp.concatenate([codes, jax.nn.one_hot(labels, self.classes)], axis=1)
        x = jax.nn.relu(self.norms[0](self.first(x), seen))
        x = jax.nn.relu(self.norms[1](self.second(x), seen))
        x = x.reshape(count, -(-height // 4), -(-width // 4), self.channels[0])
        # In pieces that fit in a processor's cache; a large batch at once takes up to twice the time.
        whole = count // PIECE_IMAGES
        pieces = x[: whole * PIECE_IMAGES].reshape(whole, PIECE_IMAGES, *x.shape[1:])
        images = jax.lax.map(self._enlarged, pieces).reshape(
            whole * PIECE_IMAGES, math.prod(self.shape)
        )
        return jnp.concatenate([images, self._enlarged(x[whole * PIECE_IMAGES :])])

    def _enlarged(self, x: Array) -> Array:
        height, width, _ = self.shape
        half = -(-height // 2), -(-width // 2)
        x = jax.nn.relu(self.convs[0].enlarged(x, half))
        x = jax.nn.sigmoid(self.convs[1].enlarged(x, (height, width)))
        return x.reshape(len(x), math.prod(self.shape))


Generator = TableGenerator | ImageGenerator | ResidualGenerator | DeconvolutionGenerator
GENERATORS = ("auto", "dense", "residual", "deconvolution")
"""Kinds of generator that a setting may name; "auto" is convolutional for images, dense for tables."""


def build_generator(schema: Schema, settings: Mapping[str, Any], *, key: PRNGKeyArray) -> Generator:
    """A fresh generator of the kind that fits the schema, or of that which the settings name."""
    plain = {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in settings.items()}
    named = plain.pop("kind", "auto")
    kind: Callable[..., Generator] = ImageGenerator
    if named == "dense" or not schema.image:
        kind = TableGenerator
    elif named == "residual":
        kind = ResidualGenerator
    elif named == "deconvolution":
        kind = DeconvolutionGenerator
    return kind(schema, **plain, key=key)


def settle(generator: Generator, labels: Int[Array, " rows"], *, key: PRNGKeyArray) -> Generator:
    """Fix the normalisation statistics at those of a large batch."""
    if isinstance(generator, ResidualGenerator):
        labels = labels[: generator.most_rows]
    codes = normal(key, (len(labels), generator.code))
    seen = _statistics(generator, codes, labels)
    fixed = [
        eqx.tree_at(lambda n: n.statistics, n, s)
        for n, s in zip(generator.norms, seen, strict=True)
    ]
    return eqx.tree_at(lambda g: g.norms, generator, fixed)


@eqx.filter_jit
def _statistics(generator: Generator, codes: Array, labels: Array) -> list[Array]:
    seen: list[Array] = []
    generator(codes, labels, seen)
    return seen


@eqx.filter_jit
def _generate(generator: Generator, codes: Array, labels: Array) -> Array:
    return generator(codes, labels)


def generate(generator: Generator, codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Slots for many codes, in blocks of one shape."""
    # A power of two, so that few shapes are compiled for any number of rows.
    size = min(_most_rows(generator), 1 << (len(codes) - 1).bit_length())
    return in_chunks(
        lambda *some: _generate(generator, *map(jnp.asarray, some)), codes, labels, size=size
    )


def _most_rows(generator: Generator) -> int:
    """How many rows at once fit into memory comfortably."""
    return generator.most_rows if isinstance(generator, ResidualGenerator) else 4096
