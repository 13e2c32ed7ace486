"""Entropic optimal transport between generated rows and a batch, and where it wants the generated ones to go."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SMALLEST_COST = 1e-6
"""Entropy of the first round, at least, where all costs are next to nothing."""


@dataclass(frozen=True, kw_only=True)
class SinkhornGradient:
    """The gradient, by generated rows, of their debiased Sinkhorn loss to a batch as a whole.

    The loss is twice the cost of carrying the generated rows to the batch, less that of carrying them to
    generated rows again, some of which are made anew: without that, few rows would all be drawn to the middle.
    Parameters hold, one after the other, generated rows, those that they are carried to again, and the labels of
    either.

    Args:
        points: Number of generated rows.
        slots: Numbers in a row.
        entropy: Weight of the transport's entropy, in units of the cost.
        rounds: Sinkhorn iterations, in which the entropy falls from the largest cost to that.
        class_cost: Cost of another class.
        absolute: Weight of absolute distances beside squared ones.
        basis: Orthonormal directions (slots, directions) that the gradient is told in; None: slot by slot.
    """

    points: int
    slots: int
    entropy: float
    rounds: int
    class_cost: float
    absolute: float
    basis: np.ndarray | None = field(compare=False)

    @property
    def size(self) -> int:
        """Numbers of a gradient."""
        return self.points * (self.slots if self.basis is None else self.basis.shape[1])

    @property
    def parameters(self) -> int:
        """Numbers that it is made of."""
        return self.points * (2 * self.slots + 1)

    @staticmethod
    def flat(rows: Any, others: Any, labels: Any) -> np.ndarray:
        """Generated rows, others and labels as parameters."""
        parts = [np.ravel(np.asarray(part, np.float32)) for part in (rows, others, labels)]
        return np.concatenate(parts)

    def in_slots(self, gradient: np.ndarray) -> Float[np.ndarray, "points slots"]:
        """A gradient as it moves the slots."""
        rows = gradient.reshape(self.points, -1)
        return rows if self.basis is None else rows @ self.basis.T

    def whole(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The gradient for a batch that is padded to a fixed shape: rows with a negative label are padding."""
        given = jnp.asarray(parameters), slots, jnp.asarray(labels), self.basis
        return np.asarray(self._gradient(*given))

    @partial(jax.jit, static_argnums=0)
    def _gradient(self, parameters: Array, slots: Array, labels: Array, basis: Any) -> Array:
        count = self.points * self.slots
        rows = parameters[:count].reshape(self.points, self.slots)
        others = parameters[count : 2 * count].reshape(self.points, self.slots)
        own = parameters[2 * count :].astype(jnp.int32)
        present = (labels >= 0).astype(jnp.float32)
        even = jnp.full(self.points, 1 / self.points)
        there = self._pull(rows, own, slots, labels, present / present.sum())
        apart = self._pull(rows, own, others, own, even)
        gradient = 2 * there - apart
        return (gradient if basis is None else gradient @ basis).ravel()

    def _pull(self, rows: Array, own: Array, to: Array, labels: Array, weights: Array) -> Array:
        """The gradient of the transport's cost by the rows, (rows, slots), with the plan held fixed."""
        apart = (rows**2).sum(1)[:, None] + (to**2).sum(1) - 2 * rows @ to.T
        cost = jnp.maximum(apart, 0.0) + self.class_cost * (own[:, None] != labels)
        if self.absolute:
            cost += self.absolute * jax.lax.map(lambda row: jnp.abs(row - to).sum(1), rows)
        plan = transport(cost, weights, self.entropy, self.rounds)
        pull = 2 * (plan.sum(1)[:, None] * rows - plan @ to)
        if self.absolute:
            signs = jax.lax.map(lambda r: r[1] @ jnp.sign(r[0] - to), (rows, plan))
            pull += self.absolute * signs
        return pull


def transport(
    cost: Float[Array, "rows others"], weights: Float[Array, " others"], entropy: float, rounds: int
) -> Float[Array, "rows others"]:
    """The plan that carries even masses to given ones, by Sinkhorn's rounds on logarithms.

    Args:
        cost: Of carrying from each to each.
        weights: Mass to be carried to each, together one; 0 for padding.
        entropy: Weight of the plan's entropy in the last round.
        rounds: Number of rounds; entropy falls geometrically from the largest cost.
    """
    start = jnp.maximum(cost.max(), SMALLEST_COST)
    falling = start * (entropy / start) ** jnp.linspace(0.0, 1.0, rounds)
    one = -jnp.log(jnp.float32(len(cost)))
    other = jnp.where(weights > 0, jnp.log(jnp.maximum(weights, 1e-30)), -jnp.inf)

    def turn(left: Array, now: Array) -> tuple[Array, Array]:
        right = -now * jax.nn.logsumexp(one + (left[:, None] - cost) / now, axis=0)
        return -now * jax.nn.logsumexp(other + (right - cost) / now, axis=1), right

    left, rights = jax.lax.scan(turn, jnp.zeros(len(cost)), falling)
    return jnp.exp(one + other + (left[:, None] + rights[-1] - cost) / entropy)


def low_frequencies(shape: tuple[int, int, int], detail: int) -> np.ndarray:
    """Orthonormal cosines (slots, directions) along height and width, so many frequencies of each, for every
    channel.

    >>> low_frequencies((4, 4, 1), 2).shape
    (16, 4)
    """
    height, width, channels = shape

    def cosines(side: int) -> np.ndarray:
        angles = np.outer(np.arange(side) + 0.5, np.arange(min(detail, side))) * np.pi / side
        waves = np.cos(angles)
        return waves / np.linalg.norm(waves, axis=0)

    pictures = np.einsum("ha,wb,cd->hwcabd", cosines(height), cosines(width), np.eye(channels))
    return pictures.reshape(height * width * channels, -1).astype(np.float32)
