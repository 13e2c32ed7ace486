"""A discriminator whose numbers are one flat vector, as private gradients want them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ...nets import ClassLogits, weights_of

LOSSES: dict[str, Callable[[Array], Array]] = {
    "logistic": lambda logit: jax.nn.softplus(-logit),
    "wasserstein": lambda logit: -logit,
}
"""Loss of a real row by its logit, and of a generated row by its logit's negative."""


@dataclass(frozen=True, kw_only=True)
class FlatDiscriminator:
    """A dense network with one logit per class; a row is judged by the logit of its label.

    Args:
        width: Numbers in a row.
        classes: Number of classes.
        hidden: Widths of the hidden layers.
        loss: logistic or wasserstein.
    """

    width: int
    classes: int
    hidden: tuple[int, ...]
    loss: str

    def _network(self, key: PRNGKeyArray) -> ClassLogits:
        return ClassLogits(width=self.width, classes=self.classes, hidden=self.hidden, key=key)

    @property
    def size(self) -> int:
        """Numbers that it learns, counted without making a network."""
        return weights_of(eqx.filter_eval_shape(self._network, jax.random.key(0)))

    def start(self, key: PRNGKeyArray) -> Float[Array, " size"]:
        """The numbers of a fresh network."""
        return ravel_pytree(self._network(key))[0]

    def logits(
        self, numbers: Float[Array, " size"], rows: Float[Array, "rows width"], labels: Array
    ) -> Float[Array, " rows"]:
        """Each row's logit for its label: the higher, the more real it seems."""
        _, shaped = ravel_pytree(self._network(jax.random.key(0)))
        network: Any = shaped(numbers)
        return network(rows, labels)

    def real_loss(self, numbers: Array, slots: Array, label: Array) -> Array:
        """The loss by one real row: what is differentiated, clipped and noised inside the boundary."""
        return LOSSES[self.loss](self.logits(numbers, slots[None], label[None])[0])

    def generated_loss(self, numbers: Array, slots: Array, label: Array) -> Array:
        """The loss by one generated row."""
        return LOSSES[self.loss](-self.logits(numbers, slots[None], label[None])[0])

    def generated_gradient(
        self,
        numbers: Float[Array, " size"],
        rows: Float[Array, "rows width"],
        labels: Int[Array, " rows"],
        clip: float,
    ) -> Float[Array, " size"]:
        """Mean gradient of generated rows, each clipped as real ones are, so that neither side outweighs
        the other."""
        each = jax.vmap(jax.grad(self.generated_loss), (None, 0, 0))(numbers, rows, labels)
        norms = jnp.sqrt((each**2).sum(axis=1))
        return (each * jnp.minimum(1.0, clip / jnp.maximum(norms, 1e-12))[:, None]).mean(axis=0)
