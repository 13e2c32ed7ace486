"""Per-row gradients of kernel regression under the fully connected NTK, never made one by one.

The kernel depends on two rows through their product and squares alone, so row l's gradient for
support row j is a combination of the row itself and of the support:

    g_lj = a_lj x_l + sum_i C_lij s_i,     C_lij = -(v_li u_lj + u_li v_lj) E_ij   (i != j)

with v = (K + ridge)^-1 k_l, u = (K + ridge)^-1 Y r_l, r_l the residual and E the kernel's slope in the
product. So its norm needs no more than the products of rows and support with each other, and the
clipped sum over l is a few matrix products. All in float64; norms are rounded up by more than the
arithmetic can err, so a rounding error costs accuracy, not privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...features import FullyConnectedNTK, Support, centred, with_ridge
from .ghost_norms import Each, Group, Shared, norms_of
from .row_gradients import RowSums

SWEPT = 200
"""Support rows up to which the kernel matrix is inverted without LAPACK."""


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

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        """Bounds of all rows' gradients, and their weighted sum."""
        with jax.enable_x64(True):
            placed = self.support.place(parameters)
            support, targets = jnp.asarray(placed), jnp.asarray(self.support.targets, jnp.float64)
            rows = jnp.asarray(self.view(np.asarray(slots, np.float64)), jnp.float64)
            weights = jnp.asarray(self.class_weights, jnp.float64)[jnp.asarray(labels)]
            shared = _share(self.kernel, support, targets, self.ridge)
            wanted = centred(jnp.asarray(labels), targets.shape[1])
            each = _coefficients(self.kernel, shared, support, rows, wanted, weights, self.ridge)
            norms, sizes = norms_of(shared, self._groups(), support, rows, each)
            finite = np.isfinite(norms) & np.isfinite(sizes)
            if not finite.all():
                # A row without a finite norm leaves no trace, not even as 0 x infinity.
                kept = jnp.asarray(finite)[:, None]
                rows, *clean = (jnp.where(kept, a, 0.0) for a in (rows, *each))
                each = Each(*clean)

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            with jax.enable_x64(True):
                scale = jnp.asarray(factors, jnp.float64)
                total = np.asarray(_total(shared, support, rows, each, scale))
            return self.support.pick(total)

        # u, its product with v over rows and with the support over the support; a few in between.
        roundings = len(rows) + len(support) + 16
        return RowSums(np.where(finite, norms, np.inf), sizes, roundings, weighted_sum)

    def _groups(self) -> list[Group]:
        count, slots = self.support.start.shape
        free = np.ones(slots, bool) if self.support.free is None else self.support.free
        every = np.arange(count)
        if self.support.shared:
            return [Group(every, np.flatnonzero(free))]
        return [Group(every[j : j + 1], np.flatnonzero(free[j])) for j in every]


@eqx.filter_jit
def _share(kernel: FullyConnectedNTK, support: Array, targets: Array, ridge: float) -> Shared:
    count, dim = support.shape
    product, square = support @ support.T / dim, (support**2).mean(axis=1)
    value, slope, stretch = _slopes(kernel, product, square, square)
    slope = (slope + slope.T) / 2  # norms take it to be the same both ways, to the last bit
    diagonal, own = jax.jvp(kernel.of_square, (square,), (jnp.ones_like(square),))
    beside = 1.0 - jnp.eye(count)
    gram = with_ridge(value * beside + jnp.diag(diagonal), ridge)
    inverse = _inverse(gram)
    return Shared(
        inverse, inverse @ targets, slope * beside / dim, stretch * beside / dim, own / dim
    )


def _inverse(gram: Array) -> Array:
    """Of a positive definite matrix. A small one is swept here: after a call to LAPACK its threads
    go on spinning for some 25 ms, on the cores that the rest of a small step needs."""
    count = len(gram)
    if count > SWEPT:
        factor = jnp.linalg.cholesky(gram)
        inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(count))
        return (inverse + inverse.T) / 2

    def sweep(k: Array, a: Array) -> Array:
        row = a[k]
        pivot = row[k]
        a = a - row[:, None] * row / pivot
        a = a.at[k].set(row / pivot).at[:, k].set(row / pivot)
        return a.at[k, k].set(-1 / pivot)

    return -jax.lax.fori_loop(0, count, sweep, gram)


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
    return Each(u * slope / dim, itself, u, v, residual)


@jax.jit
def _total(shared: Shared, support: Array, rows: Array, each: Each, factors: Array) -> Array:
    u = each.u * factors[:, None]
    pairs = u.T @ each.v
    mixed = -shared.slope * (pairs + pairs.T) + jnp.diag(factors @ each.itself)
    return (each.row * factors[:, None]).T @ rows + mixed @ support
