"""Norms of gradients under the fully connected NTK, from products of rows and support alone.

Row l's gradient for support row j is g_lj = a_lj x_l + c_lj s_j - sum_i P_ji s_i with
P = D_u E D_v + D_v E D_u, D_u the diagonal matrix of u_l. Its square is a quadratic form in
the products of x_l and the support. `_squares` writes the matrix of coefficients down and multiplies
it by the support's Gram matrix: support^3 operations a row. But u = A r lies in a space of as many
dimensions as there are classes; `_squares_by_class` works the form out for pairs of classes,
and support^2 x classes^2 / 2 operations are left for a row. The forms are symmetric, so that of each
only blocks on and above the diagonal are made and multiplied: five eighths of them, with four a side.
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
"""Margin of a norm for the arithmetic of factors."""
BLOCK = 128
"""Support rows whose part of a symmetric form is multiplied at once."""
HUGE = 1e75
"""Larger numbers could overflow in products of three, summed over many rows: such rows are left out."""


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
) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of the norms of all rows' gradients, and the sizes of their terms, (rows,) each.

    The squares are sums and products of terms that `_sizes` bounds. No number passes through more than
    some support^2 + slots + classes^2 roundings on its way, so a square errs by no more
    than that times the unit roundoff times the squared size; 32 is generous.
    """
    count, support_rows = each.u.shape
    classes = each.residual.shape[1]
    square = np.zeros(count)
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = _sizes(shared, support, rows, each)
        for members, places in groups:
            whole = len(places) == rows.shape[1]
            here, kept = (rows, support) if whole else (rows[:, places], support[:, places])
            grams = _grams(here, kept)
            if len(members) == support_rows and _pays(count, support_rows, classes):
                square += np.maximum(_squares_by_class(shared, grams, each), 0.0)
            else:
                square += np.maximum(_squares_in_chunks(shared, members, grams, each), 0.0)
        roundings = support_rows**2 + rows.shape[1] + classes**2
        norms = np.sqrt(square + 32 * roundings * 2.0**-53 * sizes**2) * (1 + RELATIVE)
    return norms, sizes


def _sizes(shared: Shared, support: Array, rows: Array, each: Each) -> np.ndarray:
    """Norms of the sums of all rows' terms with every sign positive, bounded above, (rows,).

    The mixed terms |E_ij| (|u_i v_j| + |v_i u_j|), E being symmetric, have at most twice the norm of
    |E_ij| |u_i v_j|, where u counts by what it is added up from. In the slots, a matrix of
    coefficients times the support has at most the product of both norms (Frobenius).
    """
    row, itself, _, v, residual = map(np.asarray, each)
    slope, weights = np.asarray(shared.slope), np.asarray(shared.weights)
    largest = np.outer((residual**2).sum(axis=1), (weights**2).sum(axis=1))
    mixed = 4 * _along(largest @ np.maximum(slope**2, slope.T**2), v**2) + _along(itself, itself)
    size = np.sqrt(mixed) * np.linalg.norm(support)
    size += np.linalg.norm(row, axis=1) * np.linalg.norm(rows, axis=1)
    tame = max(abs(np.asarray(a)).max(initial=0.0) for a in (slope, weights, support)) < HUGE
    for array in (row, itself, each.u, v, residual, rows):
        tame = tame & (abs(np.asarray(array)).max(axis=1) < HUGE)
    return np.where(tame, size, np.inf)


@jax.jit
def _grams(rows: Array, support: Array) -> tuple[Array, Array, Array]:
    """Products of rows with the support, squares of rows, products of the support with itself."""
    return rows @ support.T, (rows**2).sum(axis=1), support @ support.T


def _squares_in_chunks(
    shared: Shared, members: np.ndarray, grams: tuple[Array, Array, Array], each: Each
) -> np.ndarray:
    count, size = each.u.shape
    step = min(count, max(1, CHUNK_BYTES // (8 * size * len(members))))
    square = np.zeros(count)
    for at in range(0, count, step):
        at = min(at, count - step)  # one shape throughout: the last chunk overlaps
        square[at : at + step] = _squares(step, at, shared.slope, members, grams, each)
    return square


@functools.partial(jax.jit, static_argnums=0)
def _squares(
    step: int,
    start: Array | int,
    slope: Array,
    members: Array,
    grams: tuple[Array, Array, Array],
    each: Each,
) -> Array:
    """Squared norms of the gradients of `step` rows for some members of the support."""
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
    return square + (row**2).sum(axis=1) * own


def _pays(count: int, size: int, classes: int) -> bool:
    """Whether pairs of classes are fewer than support rows, by enough to pay for their forms."""
    pairs = classes * (classes + 1) // 2
    return (pairs + classes) / size + pairs / count < 1


def _squares_by_class(shared: Shared, grams: tuple[Array, Array, Array], each: Each) -> np.ndarray:
    """As `_squares`, for all rows and a whole support. In NumPy, whose products of large matrices are
    several times as fast as those in XLA's loops."""
    across, own, gram = map(np.asarray, grams)
    row, itself, u, v, residual = map(np.asarray, each)
    slope, weights = np.asarray(shared.slope), np.asarray(shared.weights)

    # sum_j u_j^2 v' A_j v with A_j = D(E_j) G D(E_j), by pairs of classes: v' (G o E D(w w') E) v.
    square = np.zeros_like(own)
    for first, second in zip(*np.triu_indices(weights.shape[1]), strict=True):
        both = slope * (weights[:, first] * weights[:, second])
        twice = 1.0 if first == second else 2.0
        square += twice * residual[:, first] * residual[:, second] * _form(v, both, slope, gram)

    # v' A_j u and u' A_j u, by single classes.
    linear, quadratic = np.zeros_like(v), np.zeros_like(v)
    for weight, part in zip(weights.T, residual.T, strict=True):
        form = slope * (gram @ (slope * weight[:, None]))
        linear += part[:, None] * (v @ form)
        quadratic += part[:, None] * (residual @ (weights.T @ form))
    square += _along(v, 2 * u * linear + v * quadratic)
    # The rest: the row's own terms, the support rows' own, and both with the sums above.
    paired = slope * gram
    other_part = itself * np.diag(gram) / 2 + row * across - u * (v @ paired) - v * (u @ paired)
    along = u * ((v * across) @ slope) + v * ((u * across) @ slope)
    return square + 2 * (_along(itself, other_part) - _along(row, along)) + _along(row, row) * own


def _form(v: np.ndarray, left: np.ndarray, right: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """v' (gram o left right) v for each row v, where that matrix is symmetric: (rows,)."""
    total = np.zeros(len(v))
    for at in range(0, len(gram), BLOCK):
        here = slice(at, at + BLOCK)
        above = (left[: at + BLOCK] @ right[:, here]) * gram[: at + BLOCK, here]
        above[:at] *= 2.0  # what is below the diagonal is the same
        total += _along(v[:, : at + BLOCK] @ above, v[:, here])
    return total


def _along(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Products row by row, (rows,)."""
    return np.einsum("ls,ls->l", one, other)
