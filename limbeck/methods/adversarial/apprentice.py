"""PATE-GAN's student: a discriminator that learns from what teachers say about generated rows.

Everything here is post-processing: it sees generated rows and noisy verdicts, never a row of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from ...nets import Discriminator
from ..gpate.discriminator_spec import DiscriminatorSpec

MOMENTUM = 0.5
"""Of its Adam, as GANs have it."""


class Lessons:
    """The latest generated rows with the teachers' noisy verdicts.

    Args:
        questions: How many questions are remembered.
        points: Rows in each.
        width: Numbers in a row as teachers see it.
    """

    def __init__(self, questions: int, points: int, width: int) -> None:
        self.rows = np.zeros((questions, points, width), np.float32)
        self.labels = np.zeros((questions, points), np.int32)
        self.real = np.zeros((questions, points), np.float32)
        self.weights = np.zeros((questions, points), np.float32)
        self._noted = 0

    def note(self, rows: Any, labels: Any, real: np.ndarray) -> None:
        """Keep an answer, in the place of the oldest."""
        at = self._noted % len(self.rows)
        self.rows[at], self.labels[at] = np.asarray(rows), np.asarray(labels)
        self.real[at], self.weights[at] = real, 1.0
        self._noted += 1

    def flat(self) -> tuple[np.ndarray, ...]:
        """Rows, labels, how real they look, and weights that add up to one; of one shape always."""
        width = self.rows.shape[-1]
        weights = self.weights.ravel() / self.weights.sum()
        return self.rows.reshape(-1, width), self.labels.ravel(), self.real.ravel(), weights


@dataclass(frozen=True, kw_only=True)
class Apprentice:
    """How the student learns, and what the generator learns from it.

    Args:
        network: The description of its network.
        learning_rate: Step size of its Adam.
        decay: Share of its weights that it forgets in a step.
    """

    network: DiscriminatorSpec
    learning_rate: float
    decay: float

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate, b1=MOMENTUM)

    def start(self, key: PRNGKeyArray) -> tuple[Discriminator, Any]:
        """A fresh one, and its optimiser's state."""
        network = self.network.build(key)
        return network, self._optimiser.init(eqx.filter(network, eqx.is_inexact_array))

    @eqx.filter_jit
    def learned(
        self, network: Discriminator, state: Any, rows: Any, labels: Any, real: Any, weights: Any
    ) -> tuple[Discriminator, Any]:
        """The network and its optimiser's state after a step on the logistic loss, which is linear in `real`:
        noise stays unbiased even where it takes `real` out of [0, 1]."""
        learned, rest = eqx.partition(network, eqx.is_inexact_array)

        def loss(learned: Any) -> Array:
            logits = eqx.combine(learned, rest)(rows, labels)
            return (jax.nn.softplus(logits) - real * logits) @ weights

        change, state = self._optimiser.update(jax.grad(loss)(learned), state)
        kept = jax.tree_util.tree_map(lambda w: (1 - self.decay) * w, learned)
        return eqx.combine(optax.apply_updates(kept, change), rest), state

    @staticmethod
    @eqx.filter_jit
    def directions(network: Discriminator, rows: Array, labels: Array) -> Array:
        """Where each generated row should go to look more real to it."""
        return -jax.grad(lambda x: jax.nn.softplus(-network(x, labels)).mean())(rows)


def share_real(votes: np.ndarray, answering: np.ndarray) -> np.ndarray:
    """The share of teachers to whom each row looks real, as noisy as their votes.

    Args:
        votes: Noisy numbers of votes (points, 2): generated, real.
        answering: How many teachers vote on each point; public.

    >>> share_real(np.array([[30.0, 70.0], [-2.0, 50.0]]), np.array([100, 40])).tolist()
    [0.7, 1.15]
    """
    return 0.5 + (votes[:, 1] - votes[:, 0]) / (2 * answering)
