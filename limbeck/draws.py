"""Public random numbers for weights, codes and starts: JAX's own draws, compiled for few shapes.

JAX compiles a draw for each shape anew, which takes up to a second, far longer than the draw.
A number depends on its key and its place alone, so a few lengths do for all shapes.
Nothing here is noise: that comes from `privacy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

SHORTEST, LONGEST = 1 << 6, 1 << 22
"""Numbers drawn at once: powers of four within these; more than the longest, as many as asked for."""


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    """What `jax.random.normal` draws.

    >>> key = jax.random.key(0)
    >>> bool((normal(key, (5, 7)) == jax.random.normal(key, (5, 7))).all())
    True
    """
    return _drawn(lambda length: jax.random.normal(key, (length,)), key, shape)


def uniform(
    key: PRNGKeyArray,
    shape: tuple[int, ...],
    low: Any = 0.0,
    high: Any = 1.0,
    dtype: Any = float,
) -> Array:
    """What `jax.random.uniform` draws."""
    return _drawn(lambda length: jax.random.uniform(key, (length,), dtype, low, high), key, shape)


def _drawn(draw: Callable[[int], Array], key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    if isinstance(key, jax.core.Tracer) or count > LONGEST:  # compiled with what is around it
        return draw(count).reshape(shape)
    length = SHORTEST
    while length < count:
        length *= 4
    return jnp.asarray(np.asarray(draw(length))[:count].reshape(shape))
