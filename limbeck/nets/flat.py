"""Networks whose numbers are one flat vector, as private gradients want them."""

from __future__ import annotations

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


def seen_images(
    slots: Float[Array, "rows slots"], shape: tuple[int, int, int]
) -> Float[Array, "rows height width channels"]:
    """Pixels in [0, 1] as networks see them: about zero, by constants alone, none of the rows'."""
    return 4 * slots.reshape(-1, *shape) - 2


@dataclass(frozen=True, kw_only=True)
class FlatNetwork:
    """The field's ConvNet with a logit per class, its numbers in one vector.

    Args:
        shape: Height, width and channels of an image.
        classes: Number of classes.
        filters: Filters of each layer.
    """

    shape: tuple[int, int, int]
    classes: int
    filters: int

    def _network(self, key: PRNGKeyArray) -> ConvNet:
        return ConvNet(self.shape, self.classes, width=self.filters, key=key)

    @property
    def size(self) -> int:
        """Numbers that it learns; none is made to count them."""
        return weights_of(eqx.filter_eval_shape(self._network, jax.random.key(0)))

    def start(self, key: PRNGKeyArray) -> Float[Array, " size"]:
        """Numbers of a fresh one."""
        return ravel_pytree(self._network(key))[0]

    def shaped(self, numbers: Float[Array, " size"]) -> ConvNet:
        """The network that has these numbers."""
        back: Callable[[Array], Any] = ravel_pytree(self._network(jax.random.key(0)))[1]
        return back(numbers)

    def logits(
        self, numbers: Float[Array, " size"], slots: Float[Array, "rows slots"]
    ) -> Float[Array, "rows classes"]:
        return self.shaped(numbers)(seen_images(slots, self.shape))

    def row_loss(self, numbers: Array, slots: Array, label: Array) -> Array:
        """Cross-entropy of one row: what is differentiated, clipped and noised inside the boundary."""
        return -jax.nn.log_softmax(self.logits(numbers, slots[None])[0])[label]

    def mean_loss(self, numbers: Array, slots: Array, labels: Array, weights: Array) -> Array:
        """Cross-entropy of many rows, each counting by its weight."""
        chances = jax.nn.log_softmax(self.logits(numbers, slots))
        own = jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
        return -(weights * own).sum() / weights.sum()
