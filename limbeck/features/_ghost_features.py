"""Per-row gradients of kernel regression where the kernel has finite features, in a few products.

With k(x, s) = phi(x).phi(s), row l's gradient in the features of support row j is of low rank,

    G_lj = u_lj (phi_l - Phi^T v_l) - v_lj Phi^T u_l - t_l phi_j,     t_l = 2 ridge/m (u_l . v_l),

and in the support's own numbers it is J_j^T G_lj, J_j being the derivative of phi at s_j. The support's
features, the solve and the derivative are shared by all rows. Norms in the support's numbers take
one product with J_j per row and support row, made in chunks and forgotten; the clipped sum
takes one per support row, since J_j^T is linear.

`FeatureSpaceGradients` is a mechanism of limbeck's own: it clips, and lets noise be added, in feature
space, where norms are nearly free; the noisy sum is pulled back afterwards as post-processing.
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

from ._regression import centred
from ._support import Support

PICTURES = 32
"""Products with a derivative that are made at once: more only move memory."""
WIDE = 512
"""Rows whose errors go through a derivative's matrix at once."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Margins of a norm in feature space: of itself, and of the sizes of what was added up to it (sums of at
most some thousand float64 terms err by 1e-13 of those)."""
RELATIVE_32, ABSOLUTE_32 = 1e-5, 2e-6
"""Margins of a norm whose last product is made in float32: of itself, and of the largest it could
be (norm of the derivative times norm in feature space)."""

Sums = Callable[[np.ndarray], np.ndarray]


class LowRank(NamedTuple):
    """Gradients in feature space by their factors, in float64."""

    phi: np.ndarray
    """Features of the support, (support, size)."""
    rows: np.ndarray
    """Features of the rows, (rows, size), as they came."""
    u: np.ndarray
    v: np.ndarray
    trace: np.ndarray
    """(rows,)."""

    def norms(self) -> np.ndarray:
        """Upper bounds of the gradients' norms in feature space, (rows,)."""
        basis, coordinates = np.linalg.qr(self.phi.T)
        held = coordinates.T
        square, size = np.zeros(len(self.u)), np.linalg.norm(held)
        for at in range(0, len(self.rows), 256):
            part = slice(at, at + 256)
            u, v, trace = self.u[part], self.v[part], self.trace[part]
            rows = self.rows[part].astype(np.float64)
            along = rows @ basis
            beside = np.linalg.norm(rows - along @ basis.T, axis=1)
            left = u[:, :, None] * (along - v @ held)[:, None, :]
            left -= v[:, :, None] * (u @ held)[:, None, :] + trace[:, None, None] * held
            square[part] = (left**2).sum(axis=(1, 2)) + (u**2).sum(axis=1) * beside**2
        long_u, long_v = np.linalg.norm(self.u, axis=1), np.linalg.norm(self.v, axis=1)
        terms = long_u * np.linalg.norm(self.rows, axis=1) + 2 * size * long_u * long_v
        return np.sqrt(square) * (1 + RELATIVE) + ABSOLUTE * (terms + abs(self.trace) * size)

    def halves(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """What some rows' gradients are made of, (rows, size) each: phi_l - Phi^T v and Phi^T u."""
        errors = self.rows[rows] - self.v[rows] @ self.phi
        return errors.astype(np.float32), (self.u[rows] @ self.phi).astype(np.float32)

    def total(self, factors: np.ndarray) -> np.ndarray:
        """Sum over rows of factor times gradient, (support, size)."""
        u = self.u * factors[:, None]
        pairs = u.T @ self.v
        own = np.zeros_like(self.phi)
        for at in range(0, len(u), 256):
            part = slice(at, at + 256)
            own += u[part].T @ self.rows[part].astype(np.float64)
        return own - (pairs + pairs.T) @ self.phi - (factors @ self.trace) * self.phi

    def without(self, gone: np.ndarray) -> LowRank:
        """The same with nothing left of some rows, not even as 0 x infinity."""
        if not gone.any():
            return self
        kept = ~gone[:, None]
        rows, u, v = (np.where(kept, a, 0.0) for a in (self.rows, self.u, self.v))
        return LowRank(self.phi, rows, u, v, np.where(gone, 0.0, self.trace))


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureSpaceGradients:
    """Gradients in the support's features, which are the parameters, (support x size) flat.

    Args:
        features: x -> phi(x), a row at a time.
        targets: What each support row is regressed to.
        ridge: Of the regression, in units of the kernel's mean diagonal.
        class_weights: Factor of the loss of each class's rows.
        view: From slots in [0, 1] to what the features see.
    """

    features: Any
    targets: np.ndarray
    ridge: float
    class_weights: np.ndarray
    view: Callable[[Any], Any] = lambda slots: slots

    def prepare(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, Sums]:
        phi = np.asarray(parameters, np.float64).reshape(len(self.targets), -1)
        low = self.factors(phi, slots, labels)
        with np.errstate(all="ignore"):
            norms = low.norms()
        clean = low.without(~np.isfinite(norms))
        total = lambda factors: clean.total(factors).ravel()  # noqa: E731
        return np.where(np.isfinite(norms), norms, np.inf), total

    def factors(self, phi: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> LowRank:
        rows = features_of(self.features, self.view(np.asarray(slots, np.float32)))
        with np.errstate(all="ignore"):
            return self._factors(phi, rows, labels)

    def _factors(self, phi: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> LowRank:
        count, classes = self.targets.shape
        gram = phi @ phi.T
        gram += self.ridge * np.trace(gram) / count * np.eye(count)
        if np.isfinite(gram).all():
            inverse = np.linalg.pinv(gram, hermitian=True)
        else:
            inverse = np.full_like(gram, np.nan)
        weights = inverse @ self.targets
        value = np.concatenate(
            [rows[at : at + 256].astype(np.float64) @ phi.T for at in range(0, len(rows), 256)]
        )
        wanted = np.asarray(centred(labels, classes), np.float64)
        residual = (value @ weights - wanted) * self.class_weights[labels][:, None] / classes
        u, v = residual @ weights.T, value @ inverse
        return LowRank(phi, rows, u, v, 2 * self.ridge / count * (u * v).sum(axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureGradients:
    """Gradients in the support's own numbers, exact, through any features.

    Args:
        features: x -> phi(x), a row at a time.
        support: The learned rows; parameters are their free numbers.
        ridge, class_weights, view: As in `FeatureSpaceGradients`.
    """

    features: Any
    support: Support
    ridge: float
    class_weights: np.ndarray
    view: Callable[[Any], Any] = lambda slots: slots

    def prepare(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, Sums]:
        """Upper bounds of all rows' gradient norms, and the weighted sum of the gradients."""
        support = self.support.place(parameters).astype(np.float32)
        inner = FeatureSpaceGradients(
            features=self.features,
            targets=self.support.targets,
            ridge=self.ridge,
            class_weights=self.class_weights,
            view=self.view,
        )
        phi = features_of(self.features, support).astype(np.float64)
        low = inner.factors(phi, slots, labels)
        with np.errstate(all="ignore"):
            norms = self._norms(low, support)
        clean = low.without(~np.isfinite(norms))

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            # In float64: rounding of a sum of many rows is beyond any one row's margin.
            with jax.enable_x64(True):
                wide = jax.tree_util.tree_map(
                    lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf,
                    self.features,
                )
                back = pull_back(wide, np.asarray(support, np.float64), clean.total(factors))
            return self.support.pick(back)

        return np.where(np.isfinite(norms), norms, np.inf), weighted_sum

    def _norms(self, low: LowRank, support: np.ndarray) -> np.ndarray:
        count, slots = len(low.rows), support.shape[1]
        square, largest = np.zeros(count), np.zeros(count)
        # Wide batches go through the derivative as a matrix, narrow ones through vjp's.
        road = _by_matrix(self.features, low) if count > 2 * slots else _by_products
        for j, row in enumerate(support):
            free = jnp.asarray(self.support.masks[j], jnp.float32)
            steepest = float(_steepness(self.features, row[None]))
            found, terms = road(self.features, low, row, free, j)
            square += found
            largest += terms * steepest**2
        return np.sqrt(square) * (1 + RELATIVE_32) + ABSOLUTE_32 * np.sqrt(largest)


def _by_products(
    features: Any, low: LowRank, row: np.ndarray, free: Array, j: int
) -> tuple[np.ndarray, np.ndarray]:
    """Squares of all rows' gradients for support row j, and of their terms' sizes."""
    count = len(low.rows)
    square, size = np.zeros(count), np.zeros(count)
    own = low.phi[j].astype(np.float32)
    for at in range(0, count, PICTURES):
        part = slice(at, at + PICTURES)
        scalars = [low.u[part, j], low.v[part, j], low.trace[part]]
        given = [_filled(a.astype(np.float32), PICTURES) for a in (*low.halves(part), *scalars)]
        found, terms = _squares(features, row, free, own, *given)
        square[part], size[part] = (np.asarray(a)[: count - at] for a in (found, terms))
    return square, size


def _by_matrix(features: Any, low: LowRank) -> Any:
    """The same by the derivative's matrix, made once per support row. Rows' errors are one wide
    product with it; what lies in the span of the support's features is pulled back as a few columns,
    in float64, since large coefficients may cancel there."""
    parts = [slice(at, at + WIDE) for at in range(0, len(low.rows), WIDE)]
    halves = [low.halves(part) for part in parts]
    errors = [_filled(error, WIDE) for error, _ in halves]
    long_error, long_mixed = (
        np.concatenate([np.linalg.norm(half[k], axis=1) for half in halves]) for k in (0, 1)
    )

    def road(
        features: Any, low: LowRank, row: np.ndarray, free: Array, j: int
    ) -> tuple[np.ndarray, np.ndarray]:
        derivative = derivative_of(features, row)
        columns = low.phi @ np.asarray(derivative, np.float64).T
        square = np.zeros(len(low.rows))
        for part, error in zip(parts, errors, strict=True):
            rest = low.v[part, j, None] * (low.u[part] @ columns) + np.outer(
                low.trace[part], columns[j]
            )
            given = [_filled(a.astype(np.float32), WIDE) for a in (low.u[part, j], rest)]
            found = np.asarray(_wide_squares(derivative, free, error, *given))
            square[part] = found[: len(rest)]
        size = abs(low.u[:, j]) * long_error + abs(low.v[:, j]) * long_mixed
        return square, (size + abs(low.trace) * np.linalg.norm(low.phi[j])) ** 2

    return road


def features_of(features: Any, rows: np.ndarray, chunk: int = 128) -> np.ndarray:
    """Features of many rows in chunks of one shape."""
    parts = []
    for at in range(0, len(rows), chunk):
        piece = rows[at : at + chunk]
        full = np.pad(piece, [(0, min(chunk, len(rows)) - len(piece)), (0, 0)])
        parts.append(np.asarray(_apply(features, full))[: len(piece)])
    return np.concatenate(parts)


def pull_back(features: Any, support: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
    """From gradients in the support's features to gradients in its numbers: free of rows."""
    parts = [
        np.asarray(_pull(features, support[at : at + PICTURES], cotangents[at : at + PICTURES]))
        for at in range(0, len(support), PICTURES)
    ]
    return np.concatenate(parts)


@eqx.filter_jit
def _apply(features: Any, rows: Any) -> Array:
    return features(rows)


@eqx.filter_jit
def _pull(features: Any, support: Any, cotangents: Any) -> Array:
    _, back = jax.vjp(features, support)
    return back(cotangents)[0]


@eqx.filter_jit
def _squares(
    features: Any,
    row: Any,
    free: Any,
    own: Any,
    errors: Any,
    mixed: Any,
    u: Any,
    v: Any,
    trace: Any,
) -> tuple[Array, Array]:
    """Squared norms of J^T G, and of the terms of G, for some rows and one support row."""
    terms = u[:, None] * errors, v[:, None] * mixed, trace[:, None] * own
    gradient = terms[0] - terms[1] - terms[2]
    _, back = jax.vjp(features, row[None])  # once; only the products are many
    pulled = jax.vmap(lambda g: back(g[None])[0][0])(gradient)
    size = sum(jnp.linalg.norm(t, axis=1) for t in terms)
    return ((pulled * free) ** 2).sum(axis=1), size**2


@jax.jit
def _wide_squares(derivative: Array, free: Array, errors: Array, u: Array, rest: Array) -> Array:
    pulled = u[:, None] * (errors @ derivative.T) - rest
    return ((pulled * free) ** 2).sum(axis=1)


def derivative_of(features: Any, row: np.ndarray) -> Array:
    """The derivative at one row, (slots, size)."""
    slots = len(row)
    parts = []
    for at in range(0, slots, PICTURES):
        directions = np.zeros((PICTURES, slots), np.float32)
        at = min(at, max(0, slots - PICTURES))
        for k in range(min(PICTURES, slots)):
            directions[k, at + k] = 1.0
        parts.append((at, np.asarray(_pushed(features, row, directions))))
    found = np.zeros((slots, parts[0][1].shape[1]), np.float32)
    for at, part in parts:
        found[at : at + PICTURES] = part[: min(PICTURES, slots)]
    return jnp.asarray(found)


@eqx.filter_jit
def _pushed(features: Any, row: Any, directions: Any) -> Array:
    # Copies of the row rather than vmap: XLA (jaxlib 0.10.2, CPU) miscompiles scattering's
    # vmapped jvp.
    copies = jnp.broadcast_to(row, directions.shape)
    return jax.jvp(features, (copies,), (directions,))[1]


@eqx.filter_jit
def _steepness(features: Any, row: Array) -> Array:
    """Twice the largest singular value of the derivative at a row, by a few power iterations."""
    _, back = jax.vjp(features, row)
    x = jnp.sign(jnp.sin(1.0 + jnp.arange(row.size, dtype=row.dtype))).reshape(row.shape)
    for _ in range(3):
        x = x / jnp.maximum(jnp.linalg.norm(x), 1e-30)
        x = back(jax.jvp(features, (row,), (x,))[1])[0]
    return 2 * jnp.sqrt(jnp.linalg.norm(x))


def _filled(array: np.ndarray, size: int) -> np.ndarray:
    """Zeros appended up to one shape, so that code is compiled once."""
    return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))
