"""The teacher of G-PATE: a discriminator with an optimiser of its own, on rows of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ...nets import Discriminator
from ...schema import Schema
from .gradient_aggregator import GradientAggregator


class Builder(Protocol):
    """Settings that discriminators are made from; equal ones make equal networks of a key."""

    def discriminator(self, schema: Schema, key: PRNGKeyArray) -> Discriminator:
        """A fresh one."""


class Question(NamedTuple):
    """What all teachers are shown and asked about: public."""

    rows: Float[Array, "points width"]
    """Generated rows, as teachers see rows."""
    labels: Int[Array, " points"]
    asked: Float[Array, "asked width"]
    """Where gradients are wanted."""
    asked_labels: Int[Array, " asked"]
    matrices: Any
    """Projections of their gradients, or None."""


class State(NamedTuple):
    """What a teacher remembers; nobody else ever sees it."""

    weights: Any
    moments: Any


@dataclass(frozen=True, kw_only=True)
class Critic:
    """One of many discriminators: learns real rows from generated ones, and says where to improve.

    Args:
        builder: Makes a fresh discriminator.
        schema: Of the rows.
        seed: Public; each teacher's start follows from it and its number.
        same_start: Whether all start alike, which makes them agree more.
        aggregator: The form of its answers.
        count: Number of teachers.
        batch: Rows it sees at a time.
        turns: Looks at rows before an answer.
        learning_rate: Of its Adam.
        decay: Part of the weights that is forgotten in a step.
        momentum: Of its Adam.
    """

    builder: Builder
    schema: Schema
    seed: int = field(compare=False)
    same_start: bool
    aggregator: GradientAggregator
    count: int
    batch: int
    turns: int
    learning_rate: float
    decay: float = 0.0
    momentum: float = 0.5

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate, b1=self.momentum)

    @property
    def classes(self) -> int:
        return len(self.schema.classes)

    def start(self, seed: Any, number: Any) -> State:
        weights = self._fresh(seed, number)[0]
        return State(weights, self._optimiser.init(weights))

    def learn(
        self, state: State, rows: Array, labels: Array, present: Array, question: Question
    ) -> State:
        """One step of Adam on the logistic loss.

        Generated rows weigh as much in a class as the real ones at hand: a teacher that has no
        rows of a class learns nothing about it.
        """
        here = present / jnp.maximum(present.sum(), 1)
        share = jax.nn.one_hot(labels, self.classes).T @ here
        made = jax.nn.one_hot(question.labels, self.classes).sum(axis=0)
        weight = (share / jnp.maximum(made, 1))[question.labels]

        def loss(weights: Any) -> Array:
            net = self._net(weights)
            real = jax.nn.softplus(-net(rows, labels)) @ here
            return real + jax.nn.softplus(net(question.rows, question.labels)) @ weight

        gradient = jax.grad(loss)(state.weights)
        change, moments = self._optimiser.update(gradient, state.moments)
        kept = jax.tree_util.tree_map(lambda w: (1 - self.decay) * w, state.weights)
        return State(optax.apply_updates(kept, change), moments)

    def answer(self, state: State, question: Question) -> Array:
        """Where each row in question should go to look more real, in the aggregator's form."""
        net = self._net(state.weights)

        def seems_made(rows: Array) -> Array:
            return jax.nn.softplus(-net(rows, question.asked_labels)).mean()

        return self.aggregator.answer(-jax.grad(seems_made)(question.asked), question.matrices)

    def _fresh(self, seed: Any, number: Any) -> tuple[Any, Any]:
        key = jax.random.key(seed)
        if not self.same_start:
            key = jax.random.fold_in(key, number)
        built = self.builder.discriminator(self.schema, key)
        return eqx.partition(built, eqx.is_inexact_array)

    def _net(self, weights: Any) -> Discriminator:
        net: Discriminator = eqx.combine(weights, self._fresh(0, 0)[1])
        return net
