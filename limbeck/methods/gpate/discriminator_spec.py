"""The network of a G-PATE teacher, described in plain numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from ...nets import ClassLogits, Discriminator, Published, weights_of

KINDS = ("per-class", "published")


@dataclass(frozen=True, kw_only=True)
class DiscriminatorSpec:
    """From which discriminators are built; equal descriptions build equal networks of a key.

    Args:
        kind: per-class (dense, a logit for each class) or published (the paper's: the label beside
            each layer, batch normalisation, for images a convolution).
        width: Numbers in a row as teachers see it.
        classes: Number of classes.
        hidden: Widths of the hidden layers; none: the network is linear.
        filters: Of the published network's convolution; 0: it has none.
        shape: Height, width and channels, where a row is an image; the convolution needs it.
    """

    kind: str
    width: int
    classes: int
    hidden: tuple[int, ...] = ()
    filters: int = 0
    shape: tuple[int, int, int] | None = None

    def build(self, key: PRNGKeyArray) -> Discriminator:
        """A fresh network."""
        if self.kind == "per-class":
            return ClassLogits(width=self.width, classes=self.classes, hidden=self.hidden, key=key)
        return Published(
            width=self.width,
            classes=self.classes,
            hidden=self.hidden,
            filters=self.filters,
            shape=self.shape,
            key=key,
        )

    @property
    def weights(self) -> int:
        """Number of weights in a network; none is built to count them."""
        return weights_of(eqx.filter_eval_shape(self.build, jax.random.key(0)))
