"""Networks whose numbers are one flat vector, as private gradients want them."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from .convnet import ConvNet
from .discriminator import weights_of
from .layers import Dense


def seen_images(
    slots: Float[Array, "rows slots"], shape: tuple[int, int, int]
) -> Float[Array, "rows height width channels"]:
    """Pixels in [0, 1] as networks see them: about zero, by constants alone, none of the rows'."""
    return 4 * slots.reshape(-1, *shape) - 2


def seen_slots(slots: Float[Array, "rows slots"], columns: int) -> Float[Array, "rows slots"]:
    """A table's slots in [0, 1] as networks see them, of norm one at most: each column has one slot that is not zero.
    So the logistic loss of a linear model has gradients of norm 2 at most, however many columns there are."""
    return slots / math.sqrt(columns)


class DenseNet(eqx.Module):
    """Fully connected, with a logit per class, for rows of norm one at most; none hidden: linear. The last layer
    starts at zero."""

    layers: list[Dense]
    head: Dense

    def __init__(self, widths: tuple[int, ...], classes: int, *, key: PRNGKeyArray) -> None:
        *keys, head_key = jax.random.split(key, len(widths))
        pairs = zip(widths, widths[1:], keys, strict=False)
        self.layers = [Dense(a, b, key=k) for a, b, k in pairs]
        if (
            self.layers
        ):  # the first sees rows of norm one, others rows whose every number is about one
            wide = math.sqrt(widths[0] / 2) * self.layers[0].weight
            self.layers[0] = eqx.tree_at(lambda d: d.weight, self.layers[0], wide)
        head = Dense(widths[-1], classes, key=head_key)
        self.head = eqx.tree_at(lambda d: d.weight, head, jnp.zeros_like(head.weight))

    def __call__(self, rows: Float[Array, "rows width"]) -> Float[Array, "rows classes"]:
        for layer in self.layers:
            rows = jnp.tanh(layer(rows))
        return self.head(rows)


@dataclass(frozen=True, kw_only=True)
class AbstractFlat(abc.ABC):
    """A network whose numbers are one vector.

    Args:
        classes: Number of classes.
    """

    classes: int

    @abc.abstractmethod
    def network(self, key: PRNGKeyArray) -> Any:
        """A fresh one."""

    @property
    def size(self) -> int:
        """Numbers that it learns; none is made to count them."""
        return weights_of(eqx.filter_eval_shape(self.network, jax.random.key(0)))

    def start(self, key: PRNGKeyArray) -> Float[Array, " size"]:
        """Numbers of a fresh one."""
        return ravel_pytree(self.network(key))[0]

    def shaped(self, numbers: Float[Array, " size"]) -> Any:
        """The network that has these numbers."""
        back: Callable[[Array], Any] = ravel_pytree(self.network(jax.random.key(0)))[1]
        return back(numbers)


@dataclass(frozen=True, kw_only=True)
class AbstractFlatClassifier(AbstractFlat):
    """One of encoded rows, with a logit per class."""

    @abc.abstractmethod
    def seen(self, slots: Float[Array, "rows slots"]) -> Array:
        """Rows as it sees them."""

    def logits(
        self, numbers: Float[Array, " size"], slots: Float[Array, "rows slots"]
    ) -> Float[Array, "rows classes"]:
        return self.shaped(numbers)(self.seen(slots))

    def row_loss(self, numbers: Array, slots: Array, label: Array) -> Array:
        """Cross-entropy of one row: what is differentiated, clipped and noised inside the boundary."""
        return -jax.nn.log_softmax(self.logits(numbers, slots[None])[0])[label]

    def mean_loss(self, numbers: Array, slots: Array, labels: Array, weights: Array) -> Array:
        """Cross-entropy of many rows, each counting by its weight."""
        chances = jax.nn.log_softmax(self.logits(numbers, slots))
        own = jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
        return -(weights * own).sum() / weights.sum()


@dataclass(frozen=True, kw_only=True)
class FlatNetwork(AbstractFlatClassifier):
    """The field's ConvNet.

    Args:
        shape: Height, width and channels of an image.
        filters: Filters of each layer.
    """

    shape: tuple[int, int, int]
    filters: int

    def network(self, key: PRNGKeyArray) -> ConvNet:
        return ConvNet(self.shape, self.classes, width=self.filters, key=key)

    def seen(self, slots: Float[Array, "rows slots"]) -> Array:
        return seen_images(slots, self.shape)


@dataclass(frozen=True, kw_only=True)
class FlatDense(AbstractFlatClassifier):
    """Dense layers, for rows of a table.

    Args:
        width: Slots of a row.
        columns: Columns that they are of.
        hidden: Widths of the hidden layers.
    """

    width: int
    columns: int
    hidden: tuple[int, ...]

    def network(self, key: PRNGKeyArray) -> DenseNet:
        return DenseNet((self.width, *self.hidden), self.classes, key=key)

    def seen(self, slots: Float[Array, "rows slots"]) -> Array:
        return seen_slots(slots, self.columns)
