"""Per-row gradients of kernel regression where the kernel has finite features, in a few products.

With k(x, s) = phi(x).phi(s), row l's gradient in the features of support row j is of low rank,

    G_lj = u_lj (phi_l - Phi^T v_l) - v_lj Phi^T u_l - t_l phi_j,     t_l = 2 ridge/m (u_l . v_l),

and in the support's own numbers it is J_j^T G_lj, J_j being the derivative of phi at s_j. The support's
features, the solve and the derivative are shared by all rows. Norms in the support's numbers take
one product with J_j per row and support row, made in chunks and forgotten; the clipped sum
takes one per support row, since J_j^T is linear.

Norms and sum must know the same J_j. Where a picture is flat, wavelets see nothing but rounding, and its
phase decides the derivative: another precision, or another order of additions, is another J_j. So
features that can write their derivative down are used by that one matrix, in both places.

`FeatureSpaceGradients` is a mechanism of limbeck's own: it clips, and lets noise be added, in feature
space, where norms are nearly free; the noisy sum is pulled back afterwards as post-processing.
"""

from __future__ import annotations

import math
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
"""Rows, and slots, that a product with a derivative's matrix takes at once."""
KEPT = 2**29
"""Bytes of derivatives that are kept from the norms to the sum; beyond, they are made again."""
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

    def errors(self, rows: slice) -> np.ndarray:
        """What the support's features leave of some rows', phi_l - Phi^T v, (rows, size)."""
        return (self.rows[rows] - self.v[rows] @ self.phi).astype(np.float32)

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
        make = _Matrices if hasattr(self.features, "derivative") else _Products
        derivatives = make(self.features, support)
        with np.errstate(all="ignore"):
            square, largest = derivatives.squares(low, self.support.masks)
            norms = np.sqrt(square) * (1 + RELATIVE_32) + ABSOLUTE_32 * np.sqrt(largest)
        clean = low.without(~np.isfinite(norms))

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            return self.support.pick(derivatives.back(clean.total(factors)))

        return np.where(np.isfinite(norms), norms, np.inf), weighted_sum


class _Matrices:
    """Derivatives of features that can write them down, one matrix per support row.

    A matrix is made of float32 numbers; sums with it are made in float64, since rounding of a sum of many
    rows is beyond any one row's margin.
    """

    def __init__(self, features: Any, support: np.ndarray) -> None:
        self.features, self.support = features, support
        self.kept: dict[int, np.ndarray] = {}

    def __getitem__(self, j: int) -> np.ndarray:
        """(slots, size)."""
        if j in self.kept:
            return self.kept[j]
        made = np.asarray(self.features.derivative(self.support[j]))
        if (len(self.kept) + 1) * made.nbytes <= KEPT:
            self.kept[j] = made
        return made

    def squares(self, low: LowRank, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared norms of all rows' gradients, and what the squares of their terms may amount to.

        Rows' errors are one wide product; what lies in the span of the support's features is pulled
        back as a few columns, in float64, since large coefficients may cancel there.
        """
        square, largest = np.zeros(len(low.rows)), np.zeros(len(low.rows))
        errors = [low.errors(slice(at, at + WIDE)) for at in range(0, len(low.rows), WIDE)]
        long_error = np.concatenate([np.linalg.norm(error, axis=1) for error in errors])
        mixed = ((low.u @ (low.phi @ low.phi.T)) * low.u).sum(axis=1)
        long_mixed = np.sqrt(np.maximum(mixed, 0.0))
        for j, mask in enumerate(masks):
            derivative = self[j]
            for at in range(0, len(derivative), WIDE):
                some = derivative[at : at + WIDE]
                columns = low.phi @ some.T.astype(np.float64)
                for number, error in enumerate(errors):
                    part = slice(number * WIDE, (number + 1) * WIDE)
                    u, v, trace = low.u[part, j], low.v[part, j], low.trace[part]
                    rest = v[:, None] * (low.u[part] @ columns) + np.outer(trace, columns[j])
                    # NumPy's product of float32 is twice as fast as XLA's on CPU.
                    pulled = u[:, None].astype(np.float32) * (error @ some.T)
                    pulled -= rest.astype(np.float32)
                    pulled *= mask[at : at + WIDE]
                    square[part] += (pulled**2).sum(axis=1)
            steep = _steepness(derivative.__rmatmul__, derivative.__matmul__, derivative[:, 0])
            size = abs(low.u[:, j]) * long_error + abs(low.v[:, j]) * long_mixed
            largest += (steep * (size + abs(low.trace) * np.linalg.norm(low.phi[j]))) ** 2
        return square, largest

    def back(self, cotangents: np.ndarray) -> np.ndarray:
        found = np.zeros((len(cotangents), self.support.shape[1]))
        for j, cotangent in enumerate(cotangents):
            derivative = self[j]
            for at in range(0, len(derivative), WIDE):
                part = slice(at, at + WIDE)
                found[j, part] = derivative[part].astype(np.float64) @ cotangent
        return found


class _Products:
    """Derivatives of any features, by vjp's in float64."""

    def __init__(self, features: Any, support: np.ndarray) -> None:
        self.support = support.astype(np.float64)
        with jax.enable_x64(True):
            self.features = jax.tree_util.tree_map(
                lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf,
                features,
            )

    def squares(self, low: LowRank, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `_Matrices`."""
        count = len(low.rows)
        square, largest = np.zeros(count), np.zeros(count)
        with jax.enable_x64(True):
            for j, (row, mask) in enumerate(zip(self.support, masks, strict=True)):
                steep = _steepness(
                    lambda x, row=row: _push(self.features, row[None], x[None]),
                    lambda y, row=row: _pull(self.features, row[None], y)[0],
                    row,
                )
                for at in range(0, count, PICTURES):
                    part = slice(at, at + PICTURES)
                    factors = low.errors(part), low.u[part] @ low.phi
                    scalars = low.u[part, j], low.v[part, j], low.trace[part]
                    given = [_filled(a, PICTURES) for a in (*factors, *scalars)]
                    found, size = _squares(self.features, row, mask, low.phi[j], *given)
                    square[part] += np.asarray(found)[: count - at]
                    largest[part] += (steep * np.asarray(size)[: count - at]) ** 2
        return square, largest

    def back(self, cotangents: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return pull_back(self.features, self.support, cotangents)


def _steepness(push: Callable[..., Any], pull: Callable[..., Any], like: np.ndarray) -> float:
    """Twice the largest singular value of a derivative, by a few power iterations."""
    x = np.sign(np.sin(1.0 + np.arange(len(like)))).astype(like.dtype)
    for _ in range(3):
        x = x / max(np.linalg.norm(x), like.dtype.type(1e-30))
        x = np.asarray(pull(push(x)))
    return 2 * math.sqrt(np.linalg.norm(x))


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
def _push(features: Any, rows: Any, directions: Any) -> Array:
    return jax.jvp(features, (rows,), (directions,))[1]


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
    """Squared norms of J^T G, and sizes of the terms of G, for some rows and one support row."""
    terms = u[:, None] * errors, v[:, None] * mixed, trace[:, None] * own
    gradient = terms[0] - terms[1] - terms[2]
    _, back = jax.vjp(features, row[None])  # once; only the products are many
    pulled = jax.vmap(lambda g: back(g[None])[0][0])(gradient)
    size = sum(jnp.linalg.norm(t, axis=1) for t in terms)
    return ((pulled * free) ** 2).sum(axis=1), size


def _filled(array: np.ndarray, size: int) -> np.ndarray:
    """Zeros appended up to one shape, so that code is compiled once."""
    return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))
