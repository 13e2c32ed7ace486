"""A teacher: a discriminator with an optimiser of its own, on rows of its own."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ...nets import Discriminator
from ...privacy import Question
from .discriminator_spec import DiscriminatorSpec

Weighted = tuple[Array, Array, Array]
"""Rows, their label codes, and how much each counts."""


class Consultation(NamedTuple):
    """What all teachers are shown and asked about in one update; public."""

    rows: Float[Array, "points width"]
    """Generated rows to learn from, as teachers see rows."""
    labels: Int[Array, " points"]
    """Their label codes."""
    asked: Float[Array, "asked width"]
    """Rows at which the gradients of a teacher's judgement are wanted."""
    asked_labels: Int[Array, " asked"]
    """Their label codes."""
    draws: Any
    """What answers need that is drawn anew each time, such as random projections of these gradients
    (asked, width, kept); or None."""


class TeacherState(NamedTuple):
    """What a teacher remembers; nobody else ever sees it."""

    weights: Any
    """Of its network."""
    moments: Any
    """Of its Adam."""
    own: Any
    """Code of the class whose rows it sees alone; -1: it sees all."""
    number: Any
    """Its own number."""


@runtime_checkable
class Aggregator(Protocol):
    """How the gradients of many teachers become one."""

    @property
    def ballot(self) -> Question:
        """The question that is asked of the rows."""

    def drawn(self, key: PRNGKeyArray) -> Any:
        """What answers need that is drawn anew each time; public."""

    def answer(self, gradients: Array, draws: Any, number: Any) -> Array:
        """One teacher's answer by its gradients (points, width)."""

    def restore(self, tallies: Sequence[np.ndarray], draws: Any, answering: np.ndarray) -> Array:
        """One gradient per point, (points, width), by the noisy tallies; sees no teacher.

        Args:
            tallies: What the ballot answers.
            draws: What teachers' answers were made with.
            answering: How many teachers answer about each point; public.
        """


@dataclass(frozen=True, kw_only=True)
class AbstractCritic(abc.ABC):
    """One of many discriminators: it learns to tell real rows of its shard from generated ones, and
    answers questions about generated ones.

    Args:
        network: The description of its network.
        seed: Public; each teacher's start follows from it and its number.
        same_start: Whether all teachers start with the same weights, so that they agree more.
        count: Number of teachers.
        of_class: How many of them see the rows of each class alone, if classes have their own.
        batch: Rows that it sees at a time.
        turns: How often it sees rows before it answers.
        learning_rate: Step size of its Adam.
        decay: Share of its weights that it forgets in a step.
        momentum: Of its Adam.
    """

    network: DiscriminatorSpec
    seed: int = field(compare=False)
    same_start: bool
    count: int
    of_class: tuple[int, ...] = ()
    batch: int
    turns: int
    learning_rate: float
    decay: float = 0.0
    momentum: float = 0.5

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate, b1=self.momentum)

    def start(self, seed: Any, number: Any) -> TeacherState:
        """A teacher with this number that has seen nothing yet."""
        weights = self._fresh(seed, number)[0]
        borders = jnp.cumsum(jnp.asarray(self.of_class or (0,)))
        own = jnp.searchsorted(borders, number, side="right") if self.of_class else -1
        own, number = (jnp.asarray(n, jnp.int32) for n in (own, number))
        return TeacherState(weights, self._optimiser.init(weights), own, number)

    def learn(
        self,
        state: TeacherState,
        rows: Array,
        labels: Array,
        present: Array,
        question: Consultation,
    ) -> TeacherState:
        """One step of Adam on the loss.

        Generated rows weigh as much in a class as the real ones at hand: a teacher that has no
        rows of a class learns nothing about it.
        """
        here = present / jnp.maximum(present.sum(), 1)
        share = jax.nn.one_hot(labels, self.network.classes).T @ here
        asked = jax.nn.one_hot(question.labels, self.network.classes).sum(axis=0)
        weight = (share / jnp.maximum(asked, 1))[question.labels]

        def loss(weights: Any) -> Array:
            network = self.network_of(weights)
            return self.loss(
                network, (rows, labels, here), (question.rows, question.labels, weight)
            )

        gradient = jax.grad(loss)(state.weights)
        change, moments = self._optimiser.update(gradient, state.moments)
        kept = jax.tree_util.tree_map(lambda w: (1 - self.decay) * w, state.weights)
        learned = optax.apply_updates(kept, change)
        return TeacherState(learned, moments, state.own, state.number)

    def loss(self, network: Discriminator, real: Weighted, generated: Weighted) -> Array:
        """What the network loses by real rows and by generated ones: the logistic loss."""
        rows, labels, weights = real
        loss = jax.nn.softplus(-network(rows, labels)) @ weights
        rows, labels, weights = generated
        return loss + jax.nn.softplus(network(rows, labels)) @ weights

    @abc.abstractmethod
    def answer(self, state: TeacherState, question: Any) -> Array:
        """What it has to say."""

    def knows(self, state: TeacherState, labels: Array) -> Array:
        """Which labels it may know something about: of classes that are not its own, it says nothing."""
        return (state.own < 0) | (labels == state.own)

    # Weights are what a teacher learns; the rest of a network is the same for all.
    def _fresh(self, seed: Any, number: Any) -> tuple[Any, Any]:
        key = jax.random.key(seed)
        if not self.same_start:
            key = jax.random.fold_in(key, number)
        return eqx.partition(self.network.build(key), eqx.is_inexact_array)

    def network_of(self, weights: Any) -> Discriminator:
        """The network with these weights."""
        network: Discriminator = eqx.combine(weights, self._fresh(0, 0)[1])
        return network


@dataclass(frozen=True, kw_only=True)
class GradientCritic(AbstractCritic):
    """Says how generated rows should change to look more real.

    Args:
        aggregator: Gives answers the form in which they are added up.
    """

    aggregator: Aggregator

    def answer(self, state: TeacherState, question: Consultation) -> Array:
        """Where each row in question should go, in the aggregator's form."""
        network = self.network_of(state.weights)

        asked = self.knows(state, question.asked_labels)
        slopes = jax.grad(self.seems_generated, 1)(network, question.asked, question.asked_labels)
        gradients = jnp.where(asked[:, None], -slopes, 0.0)
        return self.aggregator.answer(gradients, question.draws, state.number)

    def seems_generated(self, network: Discriminator, rows: Array, labels: Array) -> Array:
        """How generated rows look, in one number."""
        return jax.nn.softplus(-network(rows, labels)).mean()
