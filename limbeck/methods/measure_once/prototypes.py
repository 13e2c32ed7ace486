"""Private prototypes: cluster means of each class, found and measured with noisy sums alone.

Class means, then a few rounds of k-means within each class in a space of low frequencies, then
one sum of rows per cluster. Every row is in one cluster of one class, so a round is one sum.
What is known about the noise is used to remove it: small coefficients are shrunk (Wiener).
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
"""Of the histogram of a row's values."""
COUNT_WEIGHT = 0.15
"""Weight of a row's count beside its clipped coordinates, in parts of their bound."""
HISTOGRAM_WEIGHT = 0.25


def clip(rows: Array, radius: float) -> Array:
    norms = jnp.sqrt((rows**2).sum(axis=1, keepdims=True) + 1e-12)
    return rows * jnp.minimum(1.0, radius / norms)


class Centred(eqx.Module):
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
    """Centroids of each class in a low-dimensional space, and which one is nearest to a row."""

    basis: Float[Array, "slots low"]
    means: Float[Array, "classes slots"]
    centroids: Float[Array, "classes clusters low"]
    handicaps: Float[Array, "classes clusters"]
    """Added to squared distances, so that large clusters shrink."""

    @property
    def groups(self) -> int:
        return self.centroids.shape[0] * self.centroids.shape[1]

    def low(self, rows: Array, labels: Array) -> Array:
        return (rows - self.means[labels]) @ self.basis

    def assign(self, low: Array, labels: Array) -> Array:
        apart = ((low[:, None] - self.centroids[labels]) ** 2).sum(axis=2) + self.handicaps[labels]
        return labels * self.centroids.shape[1] + apart.argmin(axis=1)


class ClusterSums(eqx.Module):
    """A round of k-means: the clipped low coordinates of each row, and a count, per cluster."""

    clusters: Clusters
    radius: float = eqx.field(static=True)

    @property
    def groups(self) -> int:
        return self.clusters.groups

    @property
    def size(self) -> int:
        return self.clusters.basis.shape[1] + 1

    @property
    def norm_bound(self) -> float:
        return cluster_bound(self.radius)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        low = self.clusters.low(rows, labels)
        count = jnp.full((len(rows), 1), self.radius * COUNT_WEIGHT)
        both = jnp.concatenate([clip(low, self.radius), count], axis=1)
        return both, self.clusters.assign(low, labels)


class PrototypeSums(eqx.Module):
    """Rows less their class's mean, a count, and a histogram of their values, per cluster."""

    clusters: Clusters
    radius: float = eqx.field(static=True)

    @property
    def groups(self) -> int:
        return self.clusters.groups

    @property
    def size(self) -> int:
        return self.clusters.basis.shape[0] + 1 + BINS

    @property
    def norm_bound(self) -> float:
        return prototype_bound(self.radius)

    def __call__(self, rows: Array, labels: Array) -> tuple[Array, Array]:
        low = self.clusters.low(rows, labels)
        count = jnp.full((len(rows), 1), self.radius * COUNT_WEIGHT)
        # Shares of values per bin: their norm is at most one.
        bins = jnp.clip((rows * BINS).astype(jnp.int32), 0, BINS - 1)
        shares = (bins[:, :, None] == jnp.arange(BINS)).mean(axis=1)
        parts = [
            clip(rows - self.clusters.means[labels], self.radius),
            count,
            shares * (self.radius * HISTOGRAM_WEIGHT),
        ]
        return jnp.concatenate(parts, axis=1), self.clusters.assign(low, labels)


def cluster_bound(radius: float) -> float:
    return radius * math.hypot(1.0, COUNT_WEIGHT)


def prototype_bound(radius: float) -> float:
    return radius * math.sqrt(1 + COUNT_WEIGHT**2 + HISTOGRAM_WEIGHT**2)


def low_basis(schema: Schema, frequencies: int = 9) -> np.ndarray:
    """An orthonormal basis (slots, low) of what is coarse in a row: low frequencies of an image, or
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
    coarse = np.einsum("ya,xb->yxab", y, x)
    # Of a square of frequencies, the corner of the finest is left out.
    mask = np.add.outer(np.arange(kept), np.arange(kept)) <= frequencies
    flat = coarse[:, :, mask]
    return np.einsum("yxf,cd->yxcfd", flat, np.eye(channels)).reshape(schema.slots, -1)


def start_clusters(schema: Schema, means: np.ndarray, count: int, seed: int) -> Clusters:
    """Centroids around the class means, as far apart as the coarse parts of rows may well be."""
    basis = low_basis(schema)
    rng = np.random.default_rng(seed)
    scale = np.full(basis.shape[1], 0.15 * np.sqrt(schema.slots / basis.shape[1]))
    centroids = scale * rng.standard_normal((len(means), count, basis.shape[1]))
    return Clusters(
        basis=jnp.asarray(basis, jnp.float32),
        means=jnp.asarray(means, jnp.float32),
        centroids=jnp.asarray(centroids, jnp.float32),
        handicaps=jnp.zeros((len(means), count)),
    )


def update(
    clusters: Clusters, sums: np.ndarray, radius: float, noise: float, *, last: bool, seed: int
) -> Clusters:
    """Centroids after a round: noisy means, shrunk where noise is large, balanced, re-seeded."""
    classes, count, low = clusters.centroids.shape
    sums = sums.reshape(classes, count, low + 1)
    unit = radius * COUNT_WEIGHT
    # Below the counts' own noise a size says nothing, and would divide noise by next to nothing.
    sizes = np.maximum(sums[..., -1] / unit, max(1.0, noise / unit))
    means = sums[..., :-1] / sizes[..., None]
    spread = (noise / sizes[..., None]) ** 2
    signal = np.maximum((means**2 - spread).mean(axis=(0, 1)), 1e-12)
    means = means * signal / (signal + spread)
    share = sizes / sizes.mean(axis=1, keepdims=True)
    handicaps = np.asarray(clusters.handicaps) / 2 + 0.5 * signal.sum() / 4 * np.log(
        np.maximum(share, 0.05)
    )
    if not last:
        rng = np.random.default_rng(seed)
        for c in range(classes):
            for k in np.flatnonzero(share[c] < 0.25):
                big = share[c].argmax()
                step = 0.3 * np.sqrt(signal) * rng.standard_normal(low)
                means[c, k], means[c, big] = means[c, big] + step, means[c, big] - step
                share[c, [k, big]] = share[c, big] / 2
                handicaps[c, k] = handicaps[c, big] = 0.0
    return eqx.tree_at(
        lambda c: (c.centroids, c.handicaps),
        clusters,
        (jnp.asarray(means, jnp.float32), jnp.asarray(handicaps, jnp.float32)),
    )


def wiener(deviations: np.ndarray, variances: np.ndarray, schema: Schema) -> np.ndarray:
    """Deviations (rows, slots) with white noise of known variances (rows,) removed as far as it goes.

    Per frequency (images) or slot (tables), the signal's power over all rows is what the noise's
    does not explain; each coefficient keeps the part that is likely signal.
    """
    if schema.image:
        height, width, channels = schema.image.shape
        shaped = deviations.reshape(-1, height, width, channels)
        found = dctn(shaped, axes=(1, 2), norm="ortho")
    else:
        found = deviations
    noise = np.maximum(variances, 1e-12).reshape(-1, *[1] * (found.ndim - 1))
    # Rows of little noise tell most about the power.
    weights = (1 / noise) / (1 / noise).sum()
    power = np.maximum(((found**2 - noise) * weights).sum(axis=0), 0.0)
    if schema.image:
        power = gaussian_filter(power, (1.0, 1.0, 0.0), mode="nearest")
    kept = found * power / np.maximum(power + noise, 1e-12)
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
    shares: np.ndarray
    """Noisy histograms of values (classes, clusters, BINS), shrunk towards the class's."""


def read_means(
    schema: Schema, centre: np.ndarray, sums: np.ndarray, counts: np.ndarray, noise: float
) -> np.ndarray:
    """Denoised means (groups, slots) from noisy sums of centred rows."""
    counts = np.maximum(counts, 1.0)
    return centre + wiener(sums / counts[:, None], (noise / counts) ** 2, schema)


def read_prototypes(
    schema: Schema, means: np.ndarray, sums: np.ndarray, radius: float, noise: float
) -> Prototypes:
    """Prototypes from the noisy sums of `PrototypeSums`."""
    classes, slots = means.shape
    sums = sums.reshape(classes, -1, slots + 1 + BINS)
    unit = radius * COUNT_WEIGHT
    sizes = np.maximum(sums[..., slots] / unit, max(1.0, 2 * noise / unit))
    deviations = (sums[..., :slots] / sizes[..., None]).reshape(-1, slots)
    kept = wiener(deviations, (noise / sizes.ravel()) ** 2, schema)
    rows = np.clip(means[:, None] + kept.reshape(classes, -1, slots), 0.0, 1.0)
    shares = sums[..., slots + 1 :] / (radius * HISTOGRAM_WEIGHT)
    together = shares.sum(axis=1, keepdims=True) / sizes.sum(axis=1)[:, None, None]
    own = shares / sizes[..., None]
    doubt = (noise / (radius * HISTOGRAM_WEIGHT) / sizes[..., None]) ** 2
    signal = max(float(((own - together) ** 2 - doubt).mean()), 1e-12)
    return Prototypes(rows, sizes, together + (own - together) * signal / (signal + doubt))
