"""Norms of gradients under the fully connected NTK, from products of rows and support alone.

Row l's gradient for support row j is g_lj = a_lj x_l + c_lj s_j - sum_i P_ji s_i with
P = D_u E D_v + D_v E D_u, D_u the diagonal matrix of u_l. Its square is a quadratic form in
the products of x_l and the support. `_squares` writes the matrix of coefficients down and multiplies
it by the support's Gram matrix: support^3 operations a row. But u = A r lies in a space of as many
dimensions as there are classes; `_squares_by_class` works the form out for pairs of classes,
and support^2 x classes^2 / 2 operations are left for a row.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

CHUNK_BYTES = 1 << 22
"""Memory for one chunk of rows times support times basis: about a processor's cache."""
RELATIVE = 1e-9
"""Margin of a norm for what the clipped sum may err in itself."""


class Shared(NamedTuple):
    """What all rows of a step have in common."""

    inverse: Array
    """(K + ridge)^-1."""
    weights: Array
    """The same times the targets."""
    slope: Array
    """Of the kernel in the product of two support rows; 0 on the diagonal."""
    stretch: Array
    """Of the kernel in the second row's square; 0 on the diagonal."""
    own: Array
    """Of the diagonal in a row's own square."""


class Each(NamedTuple):
    """Coefficients of the rows' gradients, (rows, support) but for the last."""

    row: Array
    itself: Array
    u: Array
    v: Array
    residual: Array
    """(rows, classes): u is this times the weights."""


class Group(NamedTuple):
    """Support rows that are free in the same places."""

    members: np.ndarray
    places: np.ndarray


def norms_of(
    shared: Shared, groups: list[Group], support: Array, rows: Array, each: Each
) -> np.ndarray:
    """Upper bounds of the norms of all rows' gradients, (rows,)."""
    count, size = each.u.shape
    classes = each.residual.shape[1]
    bound = np.zeros(count)
    for members, places in groups:
        whole = len(places) == rows.shape[1]
        here, held = (rows, support) if whole else (rows[:, places], support[:, places])
        grams = _grams(here, held)
        # What float64 can err in sums of so many products, in parts of the terms' own size.
        error = 8 * (size + len(places) + classes) * 2.0**-53
        with np.errstate(invalid="ignore", over="ignore"):
            if len(members) == size and _pays(count, size, classes):
                square, scale = _squares_by_class(shared, grams, each)
            else:
                square, scale = _squares_in_chunks(shared, members, grams, each)
            bound += np.maximum(square, 0.0) + error * np.asarray(scale) ** 2
    return np.sqrt(bound) * (1 + RELATIVE)


@jax.jit
def _grams(rows: Array, support: Array) -> tuple[Array, Array, Array]:
    """Products of rows with the support, squares of rows, products of the support with itself."""
    return rows @ support.T, (rows**2).sum(axis=1), support @ support.T


def _squares_in_chunks(
    shared: Shared, members: np.ndarray, grams: tuple[Array, Array, Array], each: Each
) -> tuple[np.ndarray, np.ndarray]:
    count, size = each.u.shape
    step = min(count, max(1, CHUNK_BYTES // (8 * size * len(members))))
    square, scale = np.zeros(count), np.zeros(count)
    for at in range(0, count, step):
        at = min(at, count - step)  # one shape throughout: the last chunk overlaps
        found = _squares(step, at, shared.slope, members, grams, each)
        square[at : at + step], scale[at : at + step] = found
    return square, scale


@functools.partial(jax.jit, static_argnums=0)
def _squares(
    step: int,
    start: Array | int,
    slope: Array,
    members: Array,
    grams: tuple[Array, Array, Array],
    each: Each,
) -> tuple[Array, Array]:
    """Squared norms of the gradients of `step` rows for some members of the support, and the size of
    the terms they are added up from."""
    gram = grams[2]
    parts = (jax.lax.dynamic_slice_in_dim(a, start, step) for a in (*each, *grams[:2]))
    row, itself, u, v, _, across, own = parts
    us, vs, here = u, v, slope
    if len(members) < len(slope):
        row, itself, us, vs = (a[:, members] for a in (row, itself, u, v))
        here = slope[members]
    # The gradient is row x_l + sum_i mixed_i s_i: (rows, members, support).
    mixed = here * (us[:, :, None] * v[:, None, :] + vs[:, :, None] * u[:, None, :])
    mixed = itself[:, :, None] * jnp.eye(len(slope))[members] - mixed
    along = (mixed.reshape(-1, len(slope)) @ gram).reshape(mixed.shape)
    square = (mixed * (along + 2 * row[:, :, None] * across[:, None, :])).sum(axis=(1, 2))
    square = square + (row**2).sum(axis=1) * own
    size = jnp.sqrt((mixed**2).sum(axis=(1, 2)) * jnp.trace(gram))
    return square, size + jnp.linalg.norm(row, axis=1) * jnp.sqrt(own)


def _pays(count: int, size: int, classes: int) -> bool:
    """Whether pairs of classes are fewer than support rows, by enough to pay for their forms."""
    pairs = classes * (classes + 1) // 2
    return (pairs + classes) / size + pairs / count < 1


def _squares_by_class(
    shared: Shared, grams: tuple[Array, Array, Array], each: Each
) -> tuple[np.ndarray, np.ndarray]:
    """As `_squares`, for all rows and a whole support. In NumPy, whose products of large matrices are
    several times as fast as those in XLA's loops."""
    across, own, gram = map(np.asarray, grams)
    row, itself, u, v, residual = map(np.asarray, each)
    slope, weights = np.asarray(shared.slope), np.asarray(shared.weights)

    # sum_j u_j^2 v' A_j v with A_j = D(E_j) G D(E_j), by pairs of classes: v' (G o E D(w w') E) v.
    square = np.zeros_like(own)
    for first, second in zip(*np.triu_indices(weights.shape[1]), strict=True):
        form = (slope * (weights[:, first] * weights[:, second])) @ slope
        form *= gram
        twice = 1.0 if first == second else 2.0
        square += twice * residual[:, first] * residual[:, second] * _along(v @ form, v)

    # v' A_j u and u' A_j u, by single classes.
    linear, quadratic = np.zeros_like(v), np.zeros_like(v)
    for weight, part in zip(weights.T, residual.T, strict=True):
        form = slope * (gram @ (slope * weight[:, None]))
        linear += part[:, None] * (v @ form)
        quadratic += part[:, None] * (residual @ (weights.T @ form))
    square += _along(v, 2 * u * linear + v * quadratic)
    # The rest: the row's own terms, the support rows' own, and both with the sums above.
    paired = slope * gram
    held = itself * np.diag(gram) / 2 + row * across - u * (v @ paired) - v * (u @ paired)
    along = u * ((v * across) @ slope) + v * ((u * across) @ slope)
    square += 2 * (_along(itself, held) - _along(row, along)) + _along(row, row) * own
    # The terms' size, where u counts by what it is added up from.
    largest = (weights**2).sum(axis=1) * (residual**2).sum(axis=1)[:, None]
    mixed = 4 * _along(largest @ slope**2, v**2) + _along(itself, itself)
    size = np.sqrt(mixed * np.trace(gram))
    return square, size + np.linalg.norm(row, axis=1) * np.sqrt(own)


def _along(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Products row by row, (rows,)."""
    return np.einsum("ls,ls->l", one, other)
