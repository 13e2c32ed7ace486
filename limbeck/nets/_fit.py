"""The one training loop: Adam on a loss of a module and a key, compiled some steps at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
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
        learning_rate: Of the first step; falls to nothing along a cosine.
        key: For the loss.
        progress: Called with the fraction done.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, steps), b1=0.9, b2=0.99)
    weights, rest = eqx.partition(module, eqx.is_inexact_array)
    state = optimiser.init(weights)
    block = max(1, min(25, steps // 20))

    def step(carry: Any, key: Array) -> tuple[Any, None]:
        weights, state, data = carry
        gradient = jax.grad(lambda w: loss(eqx.combine(w, rest), key, data))(weights)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(weights, updates), state, data), None

    @jax.jit
    def run(weights: Any, state: Any, data: Any, keys: Array) -> Any:
        return jax.lax.scan(step, (weights, state, data), keys)[0]

    keys = jax.random.split(key, steps)
    for start in range(0, steps, block):
        weights, state, _ = run(weights, state, data, keys[start : start + block])
        jax.block_until_ready(jax.tree_util.tree_leaves(weights)[0])
        progress(min(1.0, (start + block) / steps))
    return eqx.combine(jax.tree_util.tree_map(jnp.asarray, weights), rest)
