"""Per-row gradients of kernel regression under the fully connected NTK, never made one by one.

The kernel depends on two rows through their product and squares alone, so row l's gradient for
support row j is a combination of the row itself and of the support:

    g_lj = a_lj x_l + sum_i C_lij s_i,     C_lij = -(v_li u_lj + u_li v_lj) E_ij   (i != j)

with v = (K + ridge)^-1 k_l, u = (K + ridge)^-1 Y r_l, r_l the residual and E the kernel's slope in the
product. In an orthonormal basis of the support it has only as many coordinates as there are support
rows, which gives its norm; and the clipped sum over l is a few matrix products. All in float64; norms
are rounded up by more than the arithmetic can err, so a rounding error costs accuracy, not privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._ntk import FullyConnectedNTK
from ._regression import centred, with_ridge
from ._support import Support

CHUNK_BYTES = 1 << 23
"""Memory for one chunk of rows times support times basis: about a processor's cache."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Margins of a norm: of itself, and of the sizes of what was added up to it (sums of at most
some thousand float64 terms err by 1e-13 of those)."""


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
    """Coefficients of the rows' gradients, (rows, support) each."""

    row: Array
    itself: Array
    u: Array
    v: Array


class Group(NamedTuple):
    """Support rows that are free in the same places, and the support's coordinates there."""

    members: np.ndarray
    places: np.ndarray
    basis: np.ndarray
    coordinates: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class TangentGradients:
    """Norms and weighted sums of the gradients of rows, for `Private.gradients`.

    Args:
        kernel: The tangent kernel.
        support: The learned rows; parameters are their free numbers.
        ridge: Of the regression, in units of the kernel's mean diagonal.
        class_weights: Factor of the loss of each class's rows.
        view: From slots in [0, 1] to what the kernel sees.
    """

    kernel: FullyConnectedNTK
    support: Support
    ridge: float
    class_weights: np.ndarray
    view: Callable[[Any], Any] = lambda slots: slots

    def prepare(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Upper bounds of all rows' gradient norms, and the weighted sum of the gradients."""
        with jax.enable_x64(True):
            placed = self.support.place(parameters)
            groups = self._groups(placed)
            support, targets = jnp.asarray(placed), jnp.asarray(self.support.targets, jnp.float64)
            rows = jnp.asarray(self.view(np.asarray(slots, np.float64)), jnp.float64)
            weights = jnp.asarray(self.class_weights, jnp.float64)[jnp.asarray(labels)]
            shared = _share(self.kernel, support, targets, self.ridge)
            wanted = centred(jnp.asarray(labels), targets.shape[1])
            each = _coefficients(self.kernel, shared, support, rows, wanted, weights, self.ridge)
            norms = _norms(shared, groups, rows, each)
            # A row without a finite norm leaves no trace, not even as 0 x infinity.
            finite = jnp.asarray(np.isfinite(norms))[:, None]
            rows, *clean = (jnp.where(finite, a, 0.0) for a in (rows, *each))

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            with jax.enable_x64(True):
                scale = jnp.asarray(factors, jnp.float64)
                total = np.asarray(_total(shared, support, rows, Each(*clean), scale))
            return self.support.pick(total)

        return np.where(np.isfinite(norms), norms, np.inf), weighted_sum

    def _groups(self, placed: np.ndarray) -> list[Group]:
        count, slots = placed.shape
        free = np.ones(slots, bool) if self.support.free is None else self.support.free
        found = []
        for number, mask in enumerate(np.atleast_2d(free)):
            members = np.arange(count) if self.support.shared else np.array([number])
            basis, coordinates = np.linalg.qr(placed[:, mask].T)
            found.append(Group(members, np.flatnonzero(mask), basis, coordinates.T))
        return found


@eqx.filter_jit
def _share(kernel: FullyConnectedNTK, support: Array, targets: Array, ridge: float) -> Shared:
    count, dim = support.shape
    product, square = support @ support.T / dim, (support**2).mean(axis=1)
    value, slope, stretch = _slopes(kernel, product, square, square)
    diagonal, own = jax.jvp(kernel.of_square, (square,), (jnp.ones_like(square),))
    beside = 1.0 - jnp.eye(count)
    gram = with_ridge(value * beside + jnp.diag(diagonal), ridge)
    factor = jnp.linalg.cholesky(gram)
    inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(count))
    inverse = (inverse + inverse.T) / 2
    return Shared(
        inverse, inverse @ targets, slope * beside / dim, stretch * beside / dim, own / dim
    )


def _slopes(
    kernel: FullyConnectedNTK, product: Array, left: Array, right: Array
) -> tuple[Array, Array, Array]:
    """The kernel of pairs, its slope in their product, and in the right row's square."""
    left, right = left[:, None], jnp.broadcast_to(right[None, :], product.shape)
    one = jnp.ones_like(product)
    value, slope = jax.jvp(lambda p: kernel.of_products(p, left, right), (product,), (one,))
    _, stretch = jax.jvp(lambda r: kernel.of_products(product, left, r), (right,), (one,))
    return value, slope, stretch


@eqx.filter_jit
def _coefficients(
    kernel: FullyConnectedNTK,
    shared: Shared,
    support: Array,
    rows: Array,
    wanted: Array,
    weights: Array,
    ridge: float,
) -> Each:
    count, dim = support.shape
    product = rows @ support.T / dim
    value, slope, stretch = _slopes(
        kernel, product, (rows**2).mean(axis=1), (support**2).mean(axis=1)
    )
    classes = wanted.shape[1]
    residual = (value @ shared.weights - wanted) * weights[:, None] / classes
    u = residual @ shared.weights.T
    v = value @ shared.inverse
    trace = ridge / count * (u * v).sum(axis=1, keepdims=True)
    # A square's slope is twice the row.
    itself = 2 * (
        u * stretch / dim
        - u * (v @ shared.stretch)
        - v * (u @ shared.stretch)
        - shared.own * (u * v + trace)
    )
    return Each(u * slope / dim, itself, u, v)


def _norms(shared: Shared, groups: list[Group], rows: Array, each: Each) -> np.ndarray:
    count, size = each.u.shape
    square, scale = np.zeros(count), np.zeros(count)
    for members, places, basis, coordinates in groups:
        here = rows if len(places) == rows.shape[1] else rows[:, places]
        along, beside, error = _positions(shared, members, basis, coordinates, here, each)
        scale += np.asarray(error)
        step = max(1, CHUNK_BYTES // (8 * size * len(members)))
        for at in range(0, count, step):
            part = slice(at, at + step)
            arrays = (*each, along, beside)
            square[part] += np.asarray(
                _squares(shared.slope, members, coordinates, *(a[part] for a in arrays))
            )
    with np.errstate(invalid="ignore", over="ignore"):
        return np.sqrt(square) * (1 + RELATIVE) + ABSOLUTE * scale


@jax.jit
def _positions(
    shared: Shared, members: Array, basis: Array, coordinates: Array, rows: Array, each: Each
) -> tuple[Array, Array, Array]:
    """Rows along the basis and their distance from it; the size of what a gradient is made of."""
    along = rows @ basis
    beside = jnp.linalg.norm(rows - along @ basis.T, axis=1)
    row, itself, u, v = (jnp.linalg.norm(a, axis=1) for a in each)
    mixed = 2 * abs(shared.slope).max() * u * v + itself
    error = mixed * jnp.linalg.norm(coordinates) + row * jnp.linalg.norm(rows, axis=1)
    return along, beside, error


@jax.jit
def _squares(
    slope: Array,
    members: Array,
    coordinates: Array,
    row: Array,
    itself: Array,
    u: Array,
    v: Array,
    along: Array,
    beside: Array,
) -> Array:
    """Squared norms of the gradients of some rows for some members of the support."""
    if len(members) < len(slope):
        slope, row, itself = slope[members], row[:, members], itself[:, members]
        us, vs, held = u[:, members], v[:, members], coordinates[members]
    else:
        us, vs, held = u, v, coordinates
    # (rows, members, support)
    mixed = slope * (us[:, :, None] * v[:, None, :] + vs[:, :, None] * u[:, None, :])
    gradient = row[:, :, None] * along[:, None, :] + itself[:, :, None] * held
    gradient = gradient - mixed @ coordinates
    return (gradient**2).sum(axis=(1, 2)) + (row**2).sum(axis=1) * beside**2


@jax.jit
def _total(shared: Shared, support: Array, rows: Array, each: Each, factors: Array) -> Array:
    u = each.u * factors[:, None]
    pairs = u.T @ each.v
    mixed = -shared.slope * (pairs + pairs.T) + jnp.diag(factors @ each.itself)
    return (each.row * factors[:, None]).T @ rows + mixed @ support
