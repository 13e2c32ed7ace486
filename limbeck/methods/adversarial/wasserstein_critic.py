"""A critic that estimates how far generated rows are from those of its shard (Gulrajani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...nets import Discriminator
from ..gpate.critic import GradientCritic, Weighted

FLOOR = 1e-12
"""Added to the square of a slope: at zero a root has no derivative."""


@dataclass(frozen=True, kw_only=True)
class WassersteinCritic(GradientCritic):
    """Says how generated rows should change to look more real; slopes of its judgement are held near 1.

    Args:
        slope_weight: Weight of how far slopes between real and generated rows are from 1.
        size_weight: Weight of the squares of what it says of real rows, so that it does not drift.
    """

    slope_weight: float
    size_weight: float

    def loss(self, network: Discriminator, real: Weighted, generated: Weighted) -> Array:
        rows, labels, weights = real
        others, other_labels, other_weights = generated
        seems = network(rows, labels)
        loss = network(others, other_labels) @ other_weights - seems @ weights
        # Between every real row and a generated one of its class, nearer to the one or to the other.
        partner = others[jnp.argmax(labels[:, None] == other_labels, axis=1)]
        part = (jnp.arange(len(rows))[:, None] + 0.5) / len(rows)
        between = part * rows + (1 - part) * partner
        slopes = jax.grad(lambda x: network(x, labels).sum())(between)
        steep = jnp.sqrt((slopes**2).sum(axis=1) + FLOOR)
        return (
            loss
            + self.slope_weight * ((steep - 1) ** 2 @ weights)
            + self.size_weight * (seems**2 @ weights)
        )

    def seems_generated(self, network: Discriminator, rows: Array, labels: Array) -> Array:
        return -network(rows, labels).sum()
