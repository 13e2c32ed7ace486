"""Tangent features of small random networks, as outer products (Yang et al. 2024, DP-NTK).

phi(x) is the gradient of the sum of a network's outputs by all its weights, divided by its norm. A
dense layer's gradient is an outer product of what came back to it and what went into it, so phi(x)
is known by a few short factors. Neither rows nor means ever need the whole of it: norms are
products of norms, and the sum over many rows is one matrix product per layer.

All outputs have the same gradient, because they are summed. So it is kept once, times the root of
their number: the kernel is the same, and there are not ten equal copies to be noised.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..draws import uniform
from ..errors import LimbeckError, positive

BlockFactors = tuple[tuple[Array, Array], ...]
"""For each block of features two matrices, (rows, left) and (rows, right): a row's features are the
outer product of its two lines."""

SQUARE_FLOOR = 1e-12
"""Squared norm below which features are not scaled up to norm 1."""
VARIANCE_FLOOR = 1e-5
"""Variance that layer norm adds to that of its inputs."""


class Layer(eqx.Module):
    """A dense layer, weights and bias uniform in +-1/sqrt(inputs), as PyTorch starts them."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray) -> None:
        weight_key, bias_key = jax.random.split(key)
        limit = inputs**-0.5
        self.weight = uniform(weight_key, (outputs, inputs), -limit, limit, jnp.float32)
        self.bias = uniform(bias_key, (outputs,), -limit, limit, jnp.float32)

    def __call__(self, x: Array) -> Array:
        return x @ self.weight.T + self.bias


class AbstractTangent(eqx.Module):
    """Features of norm one, given by the factors of their blocks."""

    @property
    @abc.abstractmethod
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Sizes of the two factors of each block."""

    @abc.abstractmethod
    def outputs(self, row: Float[Array, " slots"]) -> Float[Array, " outputs"]:
        """The network's outputs for one row, of whose sum `gradients` is the gradient."""

    @abc.abstractmethod
    def gradients(self, rows: Float[Array, "rows slots"]) -> BlockFactors:
        """The gradient of the summed outputs, as factors."""

    @property
    def size(self) -> int:
        return sum(left * right for left, right in self.blocks)

    @property
    def norm_bound(self) -> float:
        return 1.0

    def __call__(self, rows: Float[Array, "rows slots"]) -> BlockFactors:
        pairs = self.gradients(rows)
        square = sum((a**2).sum(axis=1) * (b**2).sum(axis=1) for a, b in pairs)
        scale = jax.lax.rsqrt(jnp.maximum(square, SQUARE_FLOOR))[:, None]
        return tuple((a, b * scale) for a, b in pairs)

    def flat(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        """The features written out, which takes much more memory than their factors."""
        each = [(a[:, :, None] * b[:, None, :]).reshape(len(rows), -1) for a, b in self(rows)]
        return jnp.concatenate(each, axis=1)


class DenseTangent(AbstractTangent):
    """Of a fully connected network: ReLU between layers, layer norm before the outputs.

    As published, a single hidden layer has a ReLU before the norm, and the last of several has none.

    >>> phi = DenseTangent(slots=6, widths=(4,), outputs=3, key=jax.random.key(0))
    >>> phi.blocks, phi.flat(jnp.ones((2, 6))).shape
    (((4, 7), (1, 5)), (2, 33))
    """

    layers: list[Layer]
    head: Layer

    def __init__(
        self, *, slots: int, widths: Sequence[int], outputs: int, key: PRNGKeyArray
    ) -> None:
        positive(outputs=outputs, **{f"widths[{i}]": w for i, w in enumerate(widths)})
        keys = jax.random.split(key, len(widths) + 1)
        sizes = (slots, *widths)
        self.layers = [
            Layer(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys[1:], strict=False)
        ]
        self.head = Layer(sizes[-1], outputs, key=keys[0])

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        dense = ((len(layer.bias), layer.weight.shape[1] + 1) for layer in self.layers)
        return (*dense, (1, self.head.weight.shape[1] + 1))

    def outputs(self, row: Float[Array, " slots"]) -> Float[Array, " outputs"]:
        return self.head(_normalised(self._activations(row[None])[-1])[0])[0]

    def gradients(self, rows: Float[Array, "rows slots"]) -> BlockFactors:
        *inputs, last = self._activations(rows)
        normal, deviation = _normalised(last)
        summed = self.head.weight.sum(axis=0)
        # Back through the layer norm, whose mean and deviation depend on all its inputs.
        along = (normal * summed).mean(axis=1, keepdims=True)
        back = (summed - summed.mean() - normal * along) / deviation
        pairs: list[tuple[Array, Array]] = []
        alone = len(self.layers) == 1
        for number in reversed(range(len(self.layers))):
            if alone or number < len(self.layers) - 1:
                reached = last if alone else inputs[number + 1]
                back = jnp.where(reached > 0, back, 0)
            pairs.insert(0, (back, _with_one(inputs[number])))
            back = back @ self.layers[number].weight
        return (*pairs, _head_pair(normal, self.head))

    def _activations(self, rows: Array) -> list[Array]:
        """What goes into each layer, and last into the norm."""
        activations = [rows]
        for number, layer in enumerate(self.layers):
            x = layer(activations[-1])
            plain = len(self.layers) > 1 and number == len(self.layers) - 1
            activations.append(x if plain else jax.nn.relu(x))
        return activations


class StripTangent(AbstractTangent):
    """Of a one-dimensional convolution along a table's slots, with or without a dense layer after it.

    ReLU after either, no norm. Channels of the convolution, then the width of the dense layer.

    >>> phi = StripTangent(slots=6, widths=(4, 3), side=1, outputs=2, key=jax.random.key(0))
    >>> phi.blocks  # the kernels, the dense layer, the outputs
    ((1, 8), (3, 25), (1, 4))
    """

    kernels: Layer
    dense: Layer | None
    head: Layer
    side: int = eqx.field(static=True)
    slots: int = eqx.field(static=True)

    def __init__(
        self, *, slots: int, widths: Sequence[int], side: int, outputs: int, key: PRNGKeyArray
    ) -> None:
        positive(side=side, outputs=outputs, **{f"widths[{i}]": w for i, w in enumerate(widths)})
        if len(widths) > 2 or side > slots:
            raise LimbeckError(
                f"Expected at most two widths and a side of at most {slots} slots, got {len(widths)} "
                f"and {side}."
            )
        keys = jax.random.split(key, 3)
        self.side, self.slots = side, slots
        self.kernels = Layer(side, widths[0], key=keys[0])
        places = widths[0] * (slots - side + 1)
        self.dense = Layer(places, widths[1], key=keys[1]) if len(widths) > 1 else None
        self.head = Layer(widths[1] if len(widths) > 1 else places, outputs, key=keys[2])

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        first, last = (1, self.kernels.weight.size + len(self.kernels.bias)), self.head.weight
        ends = first, (1, last.shape[1] + 1)
        if self.dense is None:
            return ends
        middle = len(self.dense.bias), self.dense.weight.shape[1] + 1
        return ends[0], middle, ends[1]

    def outputs(self, row: Float[Array, " slots"]) -> Float[Array, " outputs"]:
        x = jax.nn.relu(self._convolved(self._windows(row[None]))).reshape(1, -1)
        if self.dense is not None:
            x = jax.nn.relu(self.dense(x))
        return self.head(x)[0]

    def gradients(self, rows: Float[Array, "rows slots"]) -> BlockFactors:
        count, windows = len(rows), self._windows(rows)
        places = jax.nn.relu(self._convolved(windows)).reshape(count, -1)
        back = jnp.broadcast_to(self.head.weight.sum(axis=0), (count, self.head.weight.shape[1]))
        pairs: tuple[tuple[Array, Array], ...] = (_head_pair(places, self.head),)
        if self.dense is not None:
            deep = jax.nn.relu(self.dense(places))
            back = jnp.where(deep > 0, back, 0)
            pairs = ((back, _with_one(places)), _head_pair(deep, self.head))
            back = back @ self.dense.weight
        back = jnp.where(places > 0, back, 0).reshape(count, len(self.kernels.bias), -1)
        # rows x channels x places, rows x places x side -> rows x channels x side, and the biases.
        by_weight = jnp.einsum("rcp,rps->rcs", back, windows).reshape(count, -1)
        kernel = jnp.concatenate([by_weight, back.sum(axis=2)], axis=1)
        return ((jnp.ones((count, 1)), kernel), *pairs)

    def _windows(self, rows: Array) -> Float[Array, "rows places side"]:
        places = self.slots - self.side + 1
        return jnp.stack([rows[:, i : i + places] for i in range(self.side)], axis=2)

    def _convolved(self, windows: Array) -> Float[Array, "rows channels places"]:
        return self.kernels(windows).transpose(0, 2, 1)


class HeterogeneousTangent(eqx.Module):
    """Tangent features of numbers, and beside them indicators of categories over the root of their number: as
    in DP-NTK's paper, each part of norm 1, so the root of 2 together.

    >>> some = DenseTangent(slots=1, widths=(4,), outputs=1, key=jax.random.key(0))
    >>> phi = HeterogeneousTangent(tangent=some, numbers=(0,), codes=(1, 2, 3, 4), categories=2)
    >>> phi.blocks, round(phi.norm_bound, 4)
    (((4, 2), (1, 5), (1, 4)), 1.4142)
    """

    tangent: DenseTangent | StripTangent | None
    numbers: tuple[int, ...] = eqx.field(static=True)
    """Slots of numbers and of their gaps."""
    codes: tuple[int, ...] = eqx.field(static=True)
    """Slots of categories."""
    categories: int = eqx.field(static=True)

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        beside = ((1, len(self.codes)),) if self.categories else ()
        return (*(self.tangent.blocks if self.tangent else ()), *beside)

    @property
    def size(self) -> int:
        return sum(left * right for left, right in self.blocks)

    @property
    def norm_bound(self) -> float:
        return float((self.tangent is not None) + (self.categories > 0)) ** 0.5

    def __call__(self, rows: Float[Array, "rows slots"]) -> BlockFactors:
        pairs: BlockFactors = ()
        if self.tangent is not None:
            pairs = self.tangent(rows[:, np.asarray(self.numbers)])
        if not self.categories:
            return pairs
        codes = rows[:, np.asarray(self.codes)] / float(self.categories) ** 0.5
        return (*pairs, (jnp.ones((len(rows), 1), rows.dtype), codes))


def _normalised(x: Array) -> tuple[Array, Array]:
    """Layer norm, one row at a time, and the deviations divided by."""
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = jnp.sqrt((centred**2).mean(axis=1, keepdims=True) + VARIANCE_FLOOR)
    return centred / deviation, deviation


def _with_one(x: Array) -> Array:
    """A layer's input and the one that its bias is multiplied by."""
    return jnp.concatenate([x, jnp.ones((len(x), 1), x.dtype)], axis=1)


def _head_pair(x: Array, head: Layer) -> tuple[Array, Array]:
    """Of all outputs together: each has the gradient (x, 1)."""
    return jnp.ones((len(x), 1), x.dtype), _with_one(x) * len(head.bias) ** 0.5
