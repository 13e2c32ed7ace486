"""The one training loop: Adam on a loss of a module, a fresh key and public data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import optax
from jaxtyping import Array, PRNGKeyArray

Module = TypeVar("Module", bound=eqx.Module)


def fit(
    module: Module,
    loss: Callable[[Module, Array, Any], Array],
    *,
    data: Any,
    steps: int,
    learning_rate: float,
    key: PRNGKeyArray,
    progress: Callable[[float], None] = lambda done: None,
) -> Module:
    """Minimise loss(module, key, data) with Adam and a cosine schedule; the last iterate counts.

    Args:
        module: Where to start.
        loss: A scalar; its key is fresh in every step.
        data: Public arrays (noisy measurements) handed to the loss.
        steps: Number of updates.
        learning_rate: Learning rate of the first step; it falls to zero along a cosine.
        key: Split into one key per step, for the loss.
        progress: Called with the fraction done.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, steps), b1=0.9, b2=0.99)
    weights, rest = eqx.partition(module, eqx.is_inexact_array)
    state = optimiser.init(weights)

    # One compiled step called many times, not a compiled loop: inside XLA's CPU loops convolutions
    # run on one thread, three times slower.
    @jax.jit
    def step(weights: Any, state: Any, data: Any, key: Array) -> tuple[Any, Any]:
        gradient = jax.grad(lambda w: loss(eqx.combine(w, rest), key, data))(weights)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(weights, updates), state

    for number, step_key in enumerate(jax.random.split(key, steps)):
        weights, state = step(weights, state, data, step_key)
        if number % 10 == 9 or number == steps - 1:
            jax.block_until_ready(jax.tree_util.tree_leaves(weights)[0])
            progress((number + 1) / steps)
    return eqx.combine(weights, rest)
