"""Means over rows of features that come as factors, and how far such a mean is from a noisy target.

There are two ways to the squared norm of a mean of outer products: the mean itself, one matrix
product; or the inner products of all pairs of rows, from two small Gram matrices, which is cheaper
for few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .tangent import BlockFactors


def unbiased_square(square: Array, own: Array, count: int, debias: float = 1.0) -> Array:
    """|mean|^2 of `count` draws, less a share of its bias: it overstates the square of the expectation by
    the draws' spread over their number.

    Args:
        square: |mean|^2.
        own: Mean of the draws' own squared norms.
        count: Number of draws.
        debias: Share of the bias that is taken away.
    """
    return (1 - debias) * square + debias * (count * square - own) / (count - 1)


def mean_blocks(factors: BlockFactors) -> list[Float[Array, "left right"]]:
    """Mean over rows of their features: a matrix for each block, the mean of outer products."""
    return [a.T @ b / len(a) for a, b in factors]


def split_blocks(flat: Any, blocks: Sequence[tuple[int, int]]) -> list[Any]:
    """Features (..., size) as the matrices that they are."""
    parts, start = [], 0
    for left, right in blocks:
        part = flat[..., start : start + left * right]
        parts.append(part.reshape(*flat.shape[:-1], left, right))
        start += left * right
    return parts


def mismatch(
    factors: BlockFactors, target: Sequence[Array], debias: float = 1.0
) -> Float[Array, ""]:
    """|mean|^2 - 2 mean.target: the squared distance from the target, up to a constant.

    The mean's square is estimated over pairs of different rows, so that it is not overstated by
    the spread of few rows; with `debias` below 1 a part of that stays.
    """
    count = len(factors[0][0])
    square = own = cross = jnp.float32(0.0)
    for (a, b), wanted in zip(factors, target, strict=True):
        if count * (a.shape[1] + b.shape[1]) < a.shape[1] * b.shape[1]:
            square += ((a @ a.T) * (b @ b.T)).sum() / count**2
            cross += ((a @ wanted) * b).sum() / count
        else:
            mean = a.T @ b / count
            square += (mean**2).sum()
            cross += (mean * wanted).sum()
        own += ((a**2).sum(axis=1) * (b**2).sum(axis=1)).sum() / count
    return unbiased_square(square, own, count, debias) - 2 * cross
