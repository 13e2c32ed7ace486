"""Per-row gradients of kernel regression where the kernel has finite features, in a few products.

With k(x, s) = phi(x).phi(s), row l's gradient in the features of support row j is of low rank,

    G_lj = u_lj (phi_l - Phi^T v_l) - v_lj Phi^T u_l - t_l phi_j,     t_l = 2 ridge/m (u_l . v_l),

and in the support's own numbers it is J_j^T G_lj, J_j being the derivative of phi at s_j. The support's
features, the solve and the derivative are shared by all rows. Norms in the support's numbers take
one product with J_j per row and support row, made in chunks and forgotten; the clipped sum
takes one per support row, since J_j^T is linear.

Norms and sum must know the same J_j. Where a picture is flat, wavelets see nothing but rounding, and its
phase decides the derivative: another precision, or another order of additions, is another J_j. So
features must write their derivative down (`derivative`), and that one matrix is used in both places.
Gradients through other features are made one by one (`PulledGradients`).

A row's norm and size must be the same wherever it stands in a batch. NumPy's products of float64 are so in
batches of whole tiles, which `Private` gives; its products of float32 are not, XLA's are.

`FeatureSpaceGradients` is a mechanism of limbeck's own: it clips, and lets noise be added, in feature
space, where norms are nearly free; the noisy sum is pulled back afterwards as post-processing. With a
`basis` the regression itself is on a few public combinations of the features, phi B. Rows' features never
change: they are made once and kept, and a step is a few products of small matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array

from ...features import Support, centred, features_of
from .ghost_plain import filled
from .row_gradients import RowSums

PICTURES = 32
"""Products with a derivative that are made at once: more only move memory."""
WIDE = 512
"""Rows, and slots, that a product with a derivative's matrix takes at once."""
KEPT = 2**29
"""Bytes of derivatives that are kept from the norms to the sum; beyond, they are made again."""
RELATIVE = 1e-9
"""Margin of a norm for the arithmetic of factors."""
SINGLE, DOUBLE = 2.0**-24, 2.0**-53
"""What a rounding errs by, in parts."""
BLOCK = 512
"""Features that are added up in one go where a total is pulled back: blocks of sums round less often."""
HUGE = 1e75
"""Larger numbers could overflow in products of three, summed over many rows: such rows are left out."""


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
        """Upper bounds of the gradients' norms in feature space, (rows,).

        With e = phi_l - Phi^T v, w = Phi^T u and z = Phi^T v the gradient is u e^T - v w^T - t Phi, and its
        square is six products of short vectors. Each errs by fewer than 2 (size + support + 8)
        roundings of the square of the terms' norm.
        """
        square, phi_square = np.zeros(len(self.u)), (self.phi**2).sum()
        for at in range(0, len(self.rows), 256):  # whole tiles
            part = slice(at, at + 256)
            u, v, trace = self.u[part], self.v[part], self.trace[part]
            z, w = v @ self.phi, u @ self.phi
            e = self.rows[part].astype(np.float64) - z
            uu, vv, uv = _dots(u, u), _dots(v, v), _dots(u, v)
            square[part] = uu * _dots(e, e) + vv * _dots(w, w) - 2 * uv * _dots(e, w)
            square[part] += trace * (trace * phi_square + 2 * (_dots(z, w) - _dots(e, w)))
        roundings = 12 * (self.rows.shape[1] + self.u.shape[1] + 8)
        terms = np.linalg.norm(self.terms(), axis=1)
        above = np.maximum(square, 0.0) + roundings * DOUBLE * terms**2
        return np.sqrt(above) * (1 + RELATIVE)

    def terms(self) -> np.ndarray:
        """Norms of what the gradients are added up from, every sign positive, (rows, support);
        infinite for rows whose sums could overflow."""
        u, v, trace = abs(self.u), abs(self.v), abs(self.trace)[:, None]
        long_u, long_v = (np.linalg.norm(a, axis=1)[:, None] for a in (u, v))
        long_row = np.linalg.norm(self.rows.astype(np.float64), axis=1)[:, None]
        mixed = (u * long_v + v * long_u) * np.linalg.norm(self.phi)
        sizes = u * long_row + mixed + trace * np.linalg.norm(self.phi, axis=1)
        tame = abs(self.phi).max(initial=0.0) < HUGE
        for array in (u, v, trace, long_row):
            tame = tame & (array.max(axis=1) < HUGE)
        return np.where(tame[:, None], sizes, np.inf)

    @property
    def roundings(self) -> int:
        """On the longest way from a row's numbers to `total`."""
        return len(self.rows) + len(self.phi) + 16

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


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Inner products row by row."""
    return np.einsum("ij,ij->i", left, right)


def _double_product(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Rows times a matrix in float64, some rows at a time: always of whole tiles."""
    parts = (rows[at : at + 256].astype(np.float64) for at in range(0, len(rows), 256))
    return np.concatenate([part @ matrix for part in parts])


def _inverse(gram: np.ndarray) -> np.ndarray:
    """Of a positive definite matrix; of one that is not so, by rounding, its pseudo-inverse."""
    if not np.isfinite(gram).all():
        return np.full_like(gram, np.nan)
    try:
        factor = scipy.linalg.cho_factor(gram, lower=True)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(gram, hermitian=True)
    inverse = scipy.linalg.cho_solve(factor, np.eye(len(gram)))
    return (inverse + inverse.T) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureSpaceGradients:
    """Gradients in the support's features, which are the parameters, (support x size) flat. Rows are
    given by their features, too (`row_features`).

    Args:
        features: x -> phi(x), a row at a time.
        targets: What each support row is regressed to.
        ridge: Of the regression, in units of the kernel's mean diagonal.
        class_weights: Factor of the loss of each class's rows.
        view: From slots in [0, 1] to what the features see.
        basis: Orthonormal directions (size, few), in place of all features: phi(x) B; None: all.
    """

    features: Any
    targets: np.ndarray
    ridge: float
    class_weights: np.ndarray
    view: Callable[[Any], Any] = lambda slots: slots
    basis: np.ndarray | None = None

    def row_features(self, slots: np.ndarray) -> np.ndarray:
        """What `prepare` wants to know of rows (rows, slots): their features, in float32."""
        return self.of_seen(self.view(np.asarray(slots, np.float32)))

    def of_seen(self, rows: np.ndarray) -> np.ndarray:
        """Features in the directions of the basis, of rows as the features see them."""
        phi = features_of(self.features, rows)
        if self.basis is None:
            return phi
        with np.errstate(all="ignore"):
            return _double_product(phi, self.basis).astype(np.float32)

    def prepare(self, parameters: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> RowSums:
        phi = np.asarray(parameters, np.float64).reshape(len(self.targets), -1)
        with np.errstate(all="ignore"):
            low = self.factors(phi, rows, labels)
            norms, sizes = low.norms(), np.linalg.norm(low.terms(), axis=1)
        clean = low.without(~np.isfinite(norms))
        total = lambda factors: clean.total(factors).ravel()  # noqa: E731
        return RowSums(np.where(np.isfinite(norms), norms, np.inf), sizes, low.roundings, total)

    def factors(self, phi: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> LowRank:
        count, classes = self.targets.shape
        gram = phi @ phi.T
        gram += self.ridge * np.trace(gram) / count * np.eye(count)
        inverse = _inverse(gram)
        weights = inverse @ self.targets
        value = _double_product(rows, phi.T)
        wanted = np.asarray(centred(labels, classes), np.float64)
        residual = (value @ weights - wanted) * self.class_weights[labels][:, None] / classes
        u, v = residual @ weights.T, value @ inverse
        return LowRank(phi, rows, u, v, 2 * self.ridge / count * (u * v).sum(axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class _ThroughFeatures:
    """Gradients in the support's own numbers.

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

    def low_rank(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, LowRank]:
        """The support as features see it, and the gradients in feature space."""
        placed = self.support.place(parameters).astype(np.float32)
        inner = FeatureSpaceGradients(
            features=self.features,
            targets=self.support.targets,
            ridge=self.ridge,
            class_weights=self.class_weights,
            view=self.view,
        )
        phi = features_of(self.features, placed).astype(np.float64)
        with np.errstate(all="ignore"):
            return placed, inner.factors(phi, inner.row_features(slots), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureGradients(_ThroughFeatures):
    """Exact norms and sums, through features that know the `derivative` at a row as a matrix."""

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        """Bounds of all rows' gradients, and their weighted sum."""
        placed, low = self.low_rank(parameters, slots, labels)
        derivatives = _Matrices(self.features, placed)
        with np.errstate(all="ignore"):
            norms, sizes = derivatives.bounds(low, self.support.masks)
        finite = np.isfinite(norms) & np.isfinite(sizes)
        clean = low.without(~finite)

        def weighted_sum(factors: np.ndarray) -> np.ndarray:
            return self.support.pick(derivatives.back(clean.total(factors)))

        roundings = low.roundings + BLOCK + low.phi.shape[1] // BLOCK + 4
        return RowSums(np.where(finite, norms, np.inf), sizes, roundings, weighted_sum)


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
        matrix = np.asarray(self.features.derivative(self.support[j]))
        if (len(self.kept) + 1) * matrix.nbytes <= KEPT:
            self.kept[j] = matrix
        return matrix

    def bounds(self, low: LowRank, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds of the norms of all rows' gradients, and the sizes of their terms.

        Rows' errors are one wide product in float32; what lies in the span of the support's features is
        pulled back as a few columns, in float64, since large coefficients may cancel there. Sums
        of n products of float32 err by at most (n + 1) roundings of the norms' product, the norm
        of a matrix being Frobenius'; products may also vanish below 2**-126. All the rest
        errs by so many roundings of float64, in parts of the sizes.
        """
        count, size = low.rows.shape
        square, single, sizes = np.zeros(count), np.zeros(count), np.zeros(count)
        errors = [low.errors(slice(at, at + WIDE)) for at in range(0, count, WIDE)]
        long_error = np.concatenate(
            [np.linalg.norm(error.astype(np.float64), axis=1) for error in errors]
        )
        terms = low.terms()
        for j, mask in enumerate(masks):
            derivative, steepness = self[j], 0.0
            for at in range(0, len(derivative), WIDE):
                some = derivative[at : at + WIDE]
                columns = low.phi @ some.T.astype(np.float64)
                steepness += float(np.sum(some.astype(np.float64) ** 2))
                for number, error in enumerate(errors):
                    part = slice(number * WIDE, (number + 1) * WIDE)
                    u, v, trace = low.u[part, j], low.v[part, j], low.trace[part]
                    pulled = u[:, None] * np.asarray(_product(error, some), np.float64)
                    pulled -= v[:, None] * (low.u[part] @ columns) + np.outer(trace, columns[j])
                    pulled *= mask[at : at + WIDE]
                    square[part] += np.einsum("ls,ls->l", pulled, pulled)
            single += steepness * (low.u[:, j] * long_error) ** 2
            sizes += steepness * terms[:, j] ** 2
        sizes = np.sqrt(sizes)
        lost = 2.0**-126 * size * len(derivative) * np.linalg.norm(low.u, axis=1)
        norms = np.sqrt(square) + (size + 8) * SINGLE * np.sqrt(single) + lost
        roundings = 64 * (size + len(low.phi) + len(derivative))
        return (norms + roundings * DOUBLE * sizes) * (1 + RELATIVE), sizes

    def back(self, cotangents: np.ndarray) -> np.ndarray:
        pulled = np.zeros((len(cotangents), self.support.shape[1]))
        for j, cotangent in enumerate(cotangents):
            derivative = self[j]
            for at in range(0, derivative.shape[1], BLOCK):
                part = slice(at, at + BLOCK)
                pulled[j] += derivative[:, part].astype(np.float64) @ cotangent[part]
        return pulled


@dataclass(frozen=True, eq=False, kw_only=True)
class PulledGradients(_ThroughFeatures):
    """Gradients through any features, made one by one by products with their derivative."""

    chunk: int = 64
    """Rows whose gradients are made at once: a whole tile of NumPy's products, so that a row's does
    not depend on its place."""

    def blocks(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Gradients of some rows at a time."""
        placed, low = self.low_rank(parameters, slots, np.maximum(labels, 0))
        with np.errstate(all="ignore"):
            for at in range(0, len(labels), self.chunk):
                part = slice(at, at + self.chunk)
                if (labels[part] >= 0).any():
                    yield at, self._pulled(placed, low, part)[: len(labels) - at]

    def _pulled(self, placed: np.ndarray, low: LowRank, part: slice) -> np.ndarray:
        pulled = np.empty((self.chunk, *placed.shape))
        given = (filled(array[part], self.chunk) for array in (low.rows, low.u, low.v, low.trace))
        low = LowRank(low.phi, *given)
        errors, mixed, u, v, trace = low.errors(slice(None)), low.u @ low.phi, *low[2:]
        for j, row in enumerate(placed):
            gradients = u[:, j, None] * errors - v[:, j, None] * mixed
            gradients -= np.outer(trace, low.phi[j])
            pulled[:, j] = _pull_many(self.features, row, gradients.astype(np.float32))
        return pulled[:, self.support.masks]


@eqx.filter_jit
def _pull_many(features: Any, row: Any, cotangents: Any) -> Array:
    """J^T times many cotangents, for one support row."""
    _, back = jax.vjp(features, row[None])  # once; only the products are many
    return jax.vmap(lambda g: back(g[None])[0][0])(cotangents)


@jax.jit
def _product(rows: Any, matrix: Any) -> Array:
    return jnp.matmul(rows, matrix.T, precision=jax.lax.Precision.HIGHEST)
