"""Rows of generators that are a little like the present one: from verdicts on these a student sees where to go.

A generator all of whose rows look alike, or all of whose rows are told apart, learns nothing from verdicts
on its own rows.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ...nets import Generator
from ..gpate.student import seen_rows

ROWS_EACH = 20
"""Rows that one of these generators makes: enough for its batch statistics."""
LEAST = 0.1
"""Root mean square, at least, that an array of weights is taken to have: some start at zero, and would not change."""


@eqx.filter_jit
def varied_rows(
    generator: Generator, phi: Any, codes: Array, labels: Array, variety: Array, key: PRNGKeyArray
) -> Array:
    """Rows as teachers see them, each twenty of a generator of its own.

    Args:
        generator: The present one.
        phi: The features that teachers see rows by; None: rows as they are.
        codes: (rows, code).
        labels: (rows,).
        variety: Standard deviation of what is added to a generator's numbers, in parts of the size of
            those in their array.
        key: For what is added.
    """
    numbers, rest = eqx.partition(generator, eqx.is_inexact_array)
    leaves, tree = jax.tree_util.tree_flatten(numbers)
    count = max(1, len(codes) // ROWS_EACH)
    bounds = [len(codes) * n // count for n in range(count + 1)]
    rows = []
    for own, first, last in zip(jax.random.split(key, count), bounds, bounds[1:], strict=False):
        keys = jax.random.split(own, len(leaves))
        moved = [
            leaf
            + variety
            * jnp.maximum(jnp.sqrt((leaf**2).mean()), LEAST)
            * jax.random.normal(k, leaf.shape)
            for leaf, k in zip(leaves, keys, strict=True)
        ]
        other = eqx.combine(jax.tree_util.tree_unflatten(tree, moved), rest)
        rows.append(seen_rows(other, phi, codes[first:last], labels[first:last]))
    return jnp.concatenate(rows)
