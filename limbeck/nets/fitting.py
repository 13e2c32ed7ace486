"""The training loop of everything that is fitted freely: Adam on a loss of a module, a fresh key and data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from ..comparable import comparable

Module = TypeVar("Module")


def fit(
    module: Module,
    loss: Callable[[Module, Array, Any], Array],
    *,
    data: Any = None,
    batches: Iterator[Any] | None = None,
    steps: int,
    learning_rate: float,
    falling: bool = True,
    memory: float = 0.99,
    key: PRNGKeyArray,
    progress: Callable[[float], None] = lambda done: None,
) -> Module:
    """Minimise loss(module, key, data) with Adam; the last iterate counts.

    Args:
        module: Where to start: arrays in a module, tuple or the like.
        loss: A scalar; its key is fresh in every step.
        data: Arrays handed to the loss: noisy measurements, where rows are private.
        batches: Gives other data for every step, in place of `data`.
        steps: Number of updates.
        learning_rate: Learning rate of the first step.
        falling: Whether it falls to zero along a cosine.
        memory: Adam's, of squared gradients.
        key: Split into one key per step, for the loss.
        progress: Called with the fraction done.
    """
    weights, rest = eqx.partition(module, eqx.is_inexact_array)
    held, other = eqx.partition(rest, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    leaves, tree = jax.tree_util.tree_flatten(other)
    form = tuple(leaves), tree
    start, step = _descent(comparable(loss), form, learning_rate, steps, falling, memory)
    state = start(weights)
    for number, step_key in enumerate(jax.random.split(key, steps)):
        some = data if batches is None else next(batches)
        weights, state = step(weights, held, state, some, step_key)
        if number % 10 == 9 or number == steps - 1:
            jax.block_until_ready(jax.tree_util.tree_leaves(weights)[0])
            progress((number + 1) / steps)
    return eqx.combine(weights, rest)


@functools.lru_cache(maxsize=8)
def _descent(
    loss: Callable[..., Array],
    form: tuple[Any, Any],
    learning_rate: float,
    steps: int,
    falling: bool,
    memory: float,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The state to begin with, and a step, of modules of one form: the leaves that are no arrays, and the tree.

    One compiled step called many times, not a compiled loop: inside XLA's CPU loops convolutions
    run on one thread, three times slower.
    """
    optimiser = optax.adam(rate_schedule(learning_rate, steps, falling), b1=0.9, b2=memory)
    leaves, tree = form
    other = jax.tree_util.tree_unflatten(tree, leaves)

    @jax.jit
    def step(weights: Any, held: Any, state: Any, data: Any, key: Array) -> tuple[Any, Any]:
        gradient = jax.grad(lambda w: loss(eqx.combine(w, held, other), key, data))(weights)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(weights, updates), state

    return optimiser.init, step


def rate_schedule(first: float, steps: int, falling: bool = True) -> Any:
    """Learning rates of so many steps: all the first one, or falling to zero along half a cosine."""
    return optax.cosine_decay_schedule(first, steps) if falling else first


def moving_average(mean: Module, now: Module, memory: float | Array) -> Module:
    """The running mean of networks' numbers, with the present ones taken in; what is no number stays."""
    before, weights = (eqx.filter(net, eqx.is_inexact_array) for net in (mean, now))
    mixed = jax.tree_util.tree_map(lambda m, n: memory * m + (1 - memory) * n, before, weights)
    return eqx.combine(mixed, now)
