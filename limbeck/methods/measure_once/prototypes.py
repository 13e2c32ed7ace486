"""Private prototypes: cluster means of each class, found and measured with noisy sums alone.

Class means, then a few rounds of k-means within each class in a space of low frequencies, then
one sum of rows per cluster. Every row is in one cluster of one class, so a round is one sum.
What is known about the noise is used to remove it: small coefficients are shrunk (Wiener's filter).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.fft import dctn, idctn
from scipy.ndimage import gaussian_filter

from ...schema import Schema

BINS = 16
"""Number of bins of the histogram of a row's values."""
COUNT_WEIGHT, HISTOGRAM_WEIGHT = 0.15, 0.25
"""Weights of a row's count and of its histogram beside its clipped coordinates, in parts of the norm
to which those are clipped."""
MEAN_RADIUS, CLASS_RADIUS, COARSE_RADIUS, ROW_RADIUS = 0.6, 0.3, 0.2, 0.22
"""Norms to which rows are clipped, in units of the root of the slots: rows less grey, less the mean of
all, the coarse part of rows less their class's mean, and these rows whole. From what images of any
kind are like."""


def row_radius(schema: Schema, part: float = ROW_RADIUS) -> float:
    """A norm to which rows are clipped: so large a part of the root of the slots."""
    return part * float(np.sqrt(schema.slots))


def clip(rows: Array, radius: float) -> Array:
    """Rows scaled down to a norm of at most `radius`."""
    norms = jnp.sqrt((rows**2).sum(axis=1, keepdims=True) + 1e-12)
    return rows * jnp.minimum(1.0, radius / norms)


class CentredRows(eqx.Module):
    """Rows less a public centre, clipped."""

    centre: Float[Array, " slots"]
    radius: float = eqx.field(static=True)

    @property
    def size(self) -> int:
        return len(self.centre)

    @property
    def norm_bound(self) -> float:
        return self.radius

    def __call__(self, rows: Array) -> Array:
        return clip(rows - self.centre, self.radius)


class Clusters(eqx.Module):
    """Centroids of each class among the coarse parts of rows, and which one is nearest to a row."""

    basis: Float[Array, "slots coarse"]
    """Orthonormal basis of what is coarse in a row."""
    means: Float[Array, "classes slots"]
    """Noisy mean row of each class, which is subtracted first."""
    centroids: Float[Array, "classes clusters coarse"]
    handicaps: Float[Array, "classes clusters"]
    """Added to squared distances, so that large clusters shrink."""

    @property
    def groups(self) -> int:
        """Number of clusters of all classes."""
        return self.centroids.shape[0] * self.centroids.shape[1]

    def coarse(self, rows: Array, labels: Array) -> Array:
        """Coarse coordinates of rows, less their class's mean."""
        return (rows - self.means[labels]) @ self.basis

    def nearest(self, coarse: Array, labels: Array) -> Array:
        """The cluster, numbered through all classes, whose centroid is nearest among the class's own."""
        squares = ((coarse[:, None] - self.centroids[labels]) ** 2).sum(axis=2)
        return labels * self.centroids.shape[1] + (squares + self.handicaps[labels]).argmin(axis=1)


class AbstractClusterMap(eqx.Module):
    """A vector of each row, summed over the rows of each cluster."""

    clusters: Clusters
    radius: float = eqx.field(static=True)
    """Norm to which a row's coordinates are clipped."""

    @property
    def groups(self) -> int:
        return self.clusters.groups

    def _count(self, rows: Array) -> Array:
        """A column that sums to the number of rows, weighted."""
        return jnp.full((len(rows), 1), self.radius * COUNT_WEIGHT)


class ClusterSums(AbstractClusterMap):
    """A round of k-means: the clipped coarse coordinates of each row, and a count, per cluster."""

    @property
    def size(self) -> int:
        return self.clusters.basis.shape[1] + 1

    @property
    def norm_bound(self) -> float:
        return cluster_bound(self.radius)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        coarse = self.clusters.coarse(rows, labels)
        both = jnp.concatenate([clip(coarse, self.radius), self._count(rows)], axis=1)
        return both, self.clusters.nearest(coarse, labels)


class PrototypeSums(AbstractClusterMap):
    """Rows less their class's mean, a count, and a histogram of their values, per cluster."""

    @property
    def size(self) -> int:
        return self.clusters.basis.shape[0] + 1 + BINS

    @property
    def norm_bound(self) -> float:
        return prototype_bound(self.radius)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        coarse = self.clusters.coarse(rows, labels)
        # Shares of values per bin: their norm is at most one.
        bins = jnp.clip((rows * BINS).astype(jnp.int32), 0, BINS - 1)
        shares = (bins[:, :, None] == jnp.arange(BINS)).mean(axis=1)
        parts = [
            clip(rows - self.clusters.means[labels], self.radius),
            self._count(rows),
            shares * (self.radius * HISTOGRAM_WEIGHT),
        ]
        return jnp.concatenate(parts, axis=1), self.clusters.nearest(coarse, labels)


def cluster_bound(radius: float) -> float:
    """Largest norm of what `ClusterSums` makes of a row."""
    return radius * math.hypot(1.0, COUNT_WEIGHT)


def prototype_bound(radius: float) -> float:
    """Largest norm of what `PrototypeSums` makes of a row."""
    return radius * math.sqrt(1 + COUNT_WEIGHT**2 + HISTOGRAM_WEIGHT**2)


def coarse_basis(schema: Schema, frequencies: int = 9) -> np.ndarray:
    """An orthonormal basis (slots, coarse) of what is coarse in a row: low frequencies of an image, or
    all of a table's row. From the schema alone."""
    if not schema.image:
        return np.eye(schema.slots)
    height, width, channels = schema.image.shape
    kept = min(frequencies, height, width)
    y, x = (
        np.cos(np.pi * (np.arange(n)[:, None] + 0.5) * np.arange(kept) / n)
        * np.sqrt(np.where(np.arange(kept) == 0, 1, 2) / n)
        for n in (height, width)
    )
    waves = np.einsum("ya,xb->yxab", y, x)
    # Of a square of frequencies, the corner of the finest is left out.
    mask = np.add.outer(np.arange(kept), np.arange(kept)) <= frequencies
    return np.einsum("yxf,cd->yxcfd", waves[:, :, mask], np.eye(channels)).reshape(schema.slots, -1)


def start_clusters(schema: Schema, means: np.ndarray, count: int, seed: int) -> Clusters:
    """Centroids around the class means, as far apart as the coarse parts of rows may well be."""
    basis = coarse_basis(schema)
    rng = np.random.default_rng(seed)
    scale = np.full(basis.shape[1], 0.15 * np.sqrt(schema.slots / basis.shape[1]))
    centroids = scale * rng.standard_normal((len(means), count, basis.shape[1]))
    return Clusters(
        basis=jnp.asarray(basis, jnp.float32),
        means=jnp.asarray(means, jnp.float32),
        centroids=jnp.asarray(centroids, jnp.float32),
        handicaps=jnp.zeros((len(means), count)),
    )


def updated_clusters(
    clusters: Clusters, sums: np.ndarray, radius: float, noise: float, *, last: bool, seed: int
) -> Clusters:
    """Clusters after a round of k-means.

    Centroids become noisy means, shrunk to zero where noise is large; small clusters get a
    handicap in their favour, and all but the last round replace very small ones by one half of a large one.

    Args:
        clusters: Clusters before the round.
        sums: Noisy sums of `ClusterSums`, of any shape.
        radius: Norm to which coordinates were clipped.
        noise: Standard deviation of each sum's noise.
        last: Whether no round follows.
        seed: Seed of the direction in which a large cluster is split.
    """
    classes, count, size = clusters.centroids.shape
    sums = sums.reshape(classes, count, size + 1)
    unit = radius * COUNT_WEIGHT
    # Below the counts' own noise a size says nothing, and would divide noise by next to nothing.
    sizes = np.maximum(sums[..., -1] / unit, max(1.0, noise / unit))
    means = sums[..., :-1] / sizes[..., None]
    variance = (noise / sizes[..., None]) ** 2
    signal = np.maximum((means**2 - variance).mean(axis=(0, 1)), 1e-12)
    means = means * signal / (signal + variance)
    share = sizes / sizes.mean(axis=1, keepdims=True)
    handicaps = np.asarray(clusters.handicaps) / 2 + 0.5 * signal.sum() / 4 * np.log(
        np.maximum(share, 0.05)
    )
    if not last:
        rng = np.random.default_rng(seed)
        for c in range(classes):
            for k in np.flatnonzero(share[c] < 0.25):
                big = share[c].argmax()
                step = 0.3 * np.sqrt(signal) * rng.standard_normal(size)
                means[c, k], means[c, big] = means[c, big] + step, means[c, big] - step
                share[c, [k, big]] = share[c, big] / 2
                handicaps[c, k] = handicaps[c, big] = 0.0
    return eqx.tree_at(
        lambda c: (c.centroids, c.handicaps),
        clusters,
        (jnp.asarray(means, jnp.float32), jnp.asarray(handicaps, jnp.float32)),
    )


def wiener_filtered(deviations: np.ndarray, variances: np.ndarray, schema: Schema) -> np.ndarray:
    """Deviations (rows, slots) with white noise of known variances (rows,) removed as far as it goes.

    Per frequency (images) or slot (tables), the signal's power is the mean square over all rows less
    the noise's variance; each coefficient is multiplied by signal / (signal + noise).
    """
    if schema.image:
        height, width, channels = schema.image.shape
        shaped = deviations.reshape(-1, height, width, channels)
        coefficients = dctn(shaped, axes=(1, 2), norm="ortho")
    else:
        coefficients = deviations
    noise = np.maximum(variances, 1e-12).reshape(-1, *[1] * (coefficients.ndim - 1))
    # Rows of little noise tell most about the power.
    weights = (1 / noise) / (1 / noise).sum()
    power = np.maximum(((coefficients**2 - noise) * weights).sum(axis=0), 0.0)
    if schema.image:
        power = gaussian_filter(power, (1.0, 1.0, 0.0), mode="nearest")
    kept = coefficients * power / np.maximum(power + noise, 1e-12)
    if schema.image:
        kept = idctn(kept, axes=(1, 2), norm="ortho")
    return kept.reshape(len(deviations), -1)


def match_histogram(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Values moved, their order kept, so that their histogram is the given one."""
    shares = np.maximum(shares, 0.0)
    if shares.sum() <= 0:
        return values
    ends = np.concatenate([[0.0], np.cumsum(shares / shares.sum())])
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / len(values)
    return np.interp(ranks, ends, np.arange(len(ends)) / len(shares))


class Prototypes(NamedTuple):
    """What the noisy sums say about the clusters of each class."""

    rows: np.ndarray
    """Denoised means (classes, clusters, slots), in [0, 1]."""
    sizes: np.ndarray
    """Noisy numbers of rows (classes, clusters), at least 1."""
    histograms: np.ndarray
    """Noisy shares of values per bin (classes, clusters, BINS), shrunk towards the class's."""


def denoised_means(
    schema: Schema, centre: np.ndarray, sums: np.ndarray, counts: np.ndarray, noise: float
) -> np.ndarray:
    """Denoised means (groups, slots) from noisy sums of centred rows."""
    counts = np.maximum(counts, 1.0)
    return centre + wiener_filtered(sums / counts[:, None], (noise / counts) ** 2, schema)


def denoised_prototypes(
    schema: Schema, means: np.ndarray, sums: np.ndarray, radius: float, noise: float
) -> Prototypes:
    """Prototypes from the noisy sums of `PrototypeSums`."""
    classes, slots = means.shape
    sums = sums.reshape(classes, -1, slots + 1 + BINS)
    unit = radius * COUNT_WEIGHT
    sizes = np.maximum(sums[..., slots] / unit, max(1.0, 2 * noise / unit))
    deviations = (sums[..., :slots] / sizes[..., None]).reshape(-1, slots)
    kept = wiener_filtered(deviations, (noise / sizes.ravel()) ** 2, schema)
    rows = np.clip(means[:, None] + kept.reshape(classes, -1, slots), 0.0, 1.0)
    shares = sums[..., slots + 1 :] / (radius * HISTOGRAM_WEIGHT)
    together = shares.sum(axis=1, keepdims=True) / sizes.sum(axis=1)[:, None, None]
    own = shares / sizes[..., None]
    doubt = (noise / (radius * HISTOGRAM_WEIGHT) / sizes[..., None]) ** 2
    signal = max(float(((own - together) ** 2 - doubt).mean()), 1e-12)
    return Prototypes(rows, sizes, together + (own - together) * signal / (signal + doubt))
