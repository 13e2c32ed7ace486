"""Image networks whose random or given weights serve as features: LeNet and ResNet-18.

Both see one image at a time and hold no batch statistics: where the originals normalise over the
batch, these normalise over groups of channels of the image itself.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import uniform
from ..errors import LimbeckError

Kind = TypeVar("Kind", eqx.nn.Conv2d, eqx.nn.Linear)


class LeNet(eqx.Module):
    """LeNet-5 with ReLU: two convolutions with pooling, three dense layers."""

    convolutions: list[eqx.nn.Conv2d]
    dense: list[eqx.nn.Linear]
    shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, *, shape: tuple[int, int, int], classes: int, key: PRNGKeyArray) -> None:
        height, width, channels = shape
        keys = jax.random.split(key, 5)
        if min(height, width) < 12:
            raise LimbeckError(f"LeNet needs images of 12 x 12 or more, got {height} x {width}.")
        self.shape = shape
        self.convolutions = [
            _started(eqx.nn.Conv2d, channels, 6, 5, padding=2, key=keys[0]),
            _started(eqx.nn.Conv2d, 6, 16, 5, key=keys[1]),
        ]
        inside = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
        sizes = [inside, 120, 84, classes]
        pairs = zip(sizes[:-1], sizes[1:], keys[2:], strict=True)
        self.dense = [_started(eqx.nn.Linear, a, b, key=k) for a, b, k in pairs]

    def __call__(self, image: Float[Array, "channels height width"]) -> Float[Array, " classes"]:
        x = image
        for convolution in self.convolutions:
            x = _halved(jax.nn.relu(convolution(x)))
        x = x.ravel()
        for layer in self.dense[:-1]:
            x = jax.nn.relu(layer(x))
        return self.dense[-1](x)


class Block(eqx.Module):
    """Two convolutions with a way past them."""

    convolutions: list[eqx.nn.Conv2d]
    norms: list[eqx.nn.GroupNorm]
    past: eqx.nn.Conv2d | None

    def __init__(self, inputs: int, outputs: int, stride: int, *, key: PRNGKeyArray) -> None:
        keys = jax.random.split(key, 3)
        self.convolutions = [
            _started(
                eqx.nn.Conv2d, inputs, outputs, 3, stride, padding=1, use_bias=False, key=keys[0]
            ),
            _started(eqx.nn.Conv2d, outputs, outputs, 3, padding=1, use_bias=False, key=keys[1]),
        ]
        self.norms = [eqx.nn.GroupNorm(_groups(outputs), outputs) for _ in range(2)]
        changed = stride > 1 or inputs != outputs
        self.past = (
            _started(eqx.nn.Conv2d, inputs, outputs, 1, stride, key=keys[2]) if changed else None
        )

    def layers(self, x: Array) -> tuple[Array, Array]:
        """What comes out of the first layer, and of both."""
        first = jax.nn.relu(self.norms[0](self.convolutions[0](x)))
        y = self.norms[1](self.convolutions[1](first))
        return first, jax.nn.relu(y + (x if self.past is None else self.past(x)))


class ResNet18(eqx.Module):
    """ResNet-18 for small images: a 3x3 stem without pooling, four stages of two blocks."""

    stem: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm
    stages: list[list[Block]]
    head: eqx.nn.Linear
    shape: tuple[int, int, int] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(
        self, *, shape: tuple[int, int, int], classes: int, width: int = 64, key: PRNGKeyArray
    ) -> None:
        keys = iter(jax.random.split(key, 10))
        self.shape, self.width = shape, width
        self.stem = _started(
            eqx.nn.Conv2d, shape[2], width, 3, padding=1, use_bias=False, key=next(keys)
        )
        self.norm = eqx.nn.GroupNorm(_groups(width), width)
        self.stages, inputs = [], width
        for stage in range(4):
            outputs = width * 2**stage
            first = Block(inputs, outputs, 1 if stage == 0 else 2, key=next(keys))
            self.stages.append([first, Block(outputs, outputs, 1, key=next(keys))])
            inputs = outputs
        self.head = _started(eqx.nn.Linear, inputs, classes, key=next(keys))

    def activations(
        self, image: Float[Array, "channels height width"], *, every_layer: bool = False
    ) -> list[Array]:
        """What the four stages make of an image, or the 17 layers before the last, (channels, height, width)
        each."""
        x = jax.nn.relu(self.norm(self.stem(image)))
        of_layers, of_stages = [x], []
        for stage in self.stages:
            for block in stage:
                first, x = block.layers(x)
                of_layers += [first, x]
            of_stages.append(x)
        return of_layers if every_layer else of_stages

    def __call__(self, image: Float[Array, "channels height width"]) -> Float[Array, " classes"]:
        return self.head(self.activations(image)[-1].mean(axis=(1, 2)))


def _started(kind: type[Kind], *sizes: Any, key: PRNGKeyArray, **settings: Any) -> Kind:
    """A layer with the weights that Equinox starts it with, drawn without compiling for its shape."""
    layer = eqx.filter_eval_shape(kind, *sizes, key=key, **settings)
    limit = 1 / math.sqrt(math.prod(layer.weight.shape[1:]))
    weight_key, bias_key = jax.random.split(key)
    weight = uniform(weight_key, layer.weight.shape, -limit, limit, layer.weight.dtype)
    layer = eqx.tree_at(lambda of_layer: of_layer.weight, layer, weight)
    if layer.bias is None:
        return layer
    bias = uniform(bias_key, layer.bias.shape, -limit, limit, layer.bias.dtype)
    return eqx.tree_at(lambda of_layer: of_layer.bias, layer, bias)


def _halved(x: Float[Array, "channels height width"]) -> Array:
    """2x2 averages; an odd last row or column is dropped."""
    channels, height, width = x.shape[0], x.shape[1] // 2, x.shape[2] // 2
    x = x[:, : 2 * height, : 2 * width].reshape(channels, height, 2, width, 2)
    return x.mean(axis=(2, 4))


def _groups(channels: int) -> int:
    return next(
        g for g in (32, 16, 8, 4, 2, 1) if channels % g == 0 and channels >= 2 * g or g == 1
    )
