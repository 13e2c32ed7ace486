"""Features of random convolutional networks, measured once: class means and second moments.

With both, the squared error that a linear predictor on a network's features makes on all the rows is
known without the rows: it is a quadratic function of the predictor's weights. So one can tell how
well regression on a small set would do on the real rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...features import RandomConvNets, split_blocks
from .prototypes import Prototypes

EXPECTED_NORM = 0.5
"""Norm that a row's features are expected to have, less those of its class's prototypes."""


class NetworkResiduals(eqx.Module):
    """What is measured of a row: its features in random networks, less those of its class's prototypes.

    The residual of each network is multiplied by itself, for second moments, and that of all networks
    by the indicator of the row's class, for class means. Both parts are clipped as one contribution,
    in which either is expected to weigh the same.
    """

    networks: RandomConvNets
    at_prototypes: Float[Array, "classes size"]
    """Mean features of each class's prototypes."""

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return network_blocks(self.networks, len(self.at_prototypes))

    @property
    def chunk(self) -> int:
        return self.networks.chunk

    @property
    def norm_bound(self) -> float:
        return network_bound(self.networks)

    def __call__(self, rows: Array, labels: Array) -> tuple[tuple[Array, Array], ...]:
        residuals = self.networks(rows) - self.at_prototypes[labels]
        own = jax.nn.one_hot(labels, len(self.at_prototypes)) * class_weight(self.networks)
        parts = jnp.split(residuals, self.networks.networks, axis=1)
        return (*((part, part) for part in parts), (residuals, own))


def network_blocks(networks: RandomConvNets, classes: int) -> tuple[tuple[int, int], ...]:
    """Shapes of the matrices that are measured: a network's moments each, then all class means."""
    part = networks.size // networks.networks
    return (*[(part, part)] * networks.networks, (networks.size, classes))


def class_weight(networks: RandomConvNets) -> float:
    """Weight of class sums beside moments, with which a residual of the expected norm, spread evenly
    over the networks, adds as much to the one as to the other."""
    return EXPECTED_NORM / math.sqrt(networks.networks)


def network_bound(networks: RandomConvNets) -> float:
    """Norm to which a row's contribution is clipped: that of a residual of the expected norm."""
    return math.sqrt(2) * EXPECTED_NORM * class_weight(networks)


def prototype_features(networks: RandomConvNets, prototypes: Prototypes) -> Array:
    """Mean features (classes, size) of each class's prototypes, weighted by the sizes of clusters."""
    rows, sizes = prototypes.rows, prototypes.sizes
    phi = eqx.filter_jit(networks)(jnp.asarray(rows.reshape(-1, rows.shape[2]), jnp.float32))
    weights = jnp.asarray(sizes / sizes.sum(axis=1, keepdims=True), jnp.float32)
    return jnp.einsum("ck,ckf->cf", weights, phi.reshape(*sizes.shape, -1))


class NetworkMoments(NamedTuple):
    """What the noisy sums say about the rows' features, those of each network scaled to norm 1."""

    class_means: Float[Array, "networks classes part"]
    """Mean features of each class."""
    second_moments: Float[Array, "networks part part"]
    """Mean products of two features over all rows."""
    class_shares: Float[Array, " classes"]
    """Share of each class among the rows."""

    def of_networks(self, chosen: Int[Array, " some"]) -> NetworkMoments:
        """Those of some networks."""
        return NetworkMoments(
            self.class_means[chosen], self.second_moments[chosen], self.class_shares
        )


def denoised_moments(
    networks: RandomConvNets,
    at_prototypes: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
) -> NetworkMoments:
    """Means and moments from the noisy sums of `NetworkResiduals`.

    Args:
        networks: The networks that were measured.
        at_prototypes: Mean features of each class's prototypes, (classes, size), as subtracted.
        sums: The noisy sums, of any shape.
        counts: Noisy numbers of rows, (classes,).
        noise: Standard deviation of each sum's noise.
    """
    count, classes = networks.networks, len(at_prototypes)
    counts = np.maximum(counts, 1.0)
    *products, residuals = split_blocks(sums.ravel(), network_blocks(networks, classes))
    # Each network's features were scaled by the root of their number.
    scale, shares = math.sqrt(count), counts / counts.sum()
    base = scale * at_prototypes.reshape(classes, count, -1).swapaxes(0, 1)
    means = scale * residuals.T / counts[:, None] / class_weight(networks)
    shift = means.reshape(classes, count, -1).swapaxes(0, 1)
    unit = count / counts.sum()
    within = np.stack([positive_part(unit * part, unit * noise) for part in products])
    # E[f f'] of f = base + residual, from what is known about the residuals.
    crossed = np.einsum("c,ncp,ncq->npq", shares, base, base / 2 + shift)
    parts = (base + shift, within + crossed + crossed.swapaxes(1, 2), shares)
    return NetworkMoments(*(jnp.asarray(part, jnp.float32) for part in parts))


def positive_part(matrix: np.ndarray, noise: float) -> np.ndarray:
    """The likely matrix of second moments behind one that carries white noise.

    Noise alone has eigenvalues up to a known edge: those beyond it are shrunk by as much as noise
    has raised and turned them, the others become one, so that the trace is kept.
    """
    size = len(matrix)
    edge = 2 * math.sqrt(size / 2) * noise  # making it symmetric halves the noise's variance
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = np.where(values > 0, np.sqrt(np.maximum(values**2 - edge**2, 0.0)), 0.0)
    rest = max(values.sum() - kept.sum(), 0.0) / size
    return np.asarray((vectors * (kept + rest)) @ vectors.T)


def ridge_errors(
    weights: Float[Array, "part classes"],
    class_means: Float[Array, "classes part"],
    second_moments: Float[Array, "part part"],
    class_shares: Float[Array, " classes"],
) -> Float[Array, ""]:
    """Mean squared error over all rows of a linear predictor of centred labels, up to a constant."""
    classes = len(class_means)
    products = class_means.T * class_shares @ (jnp.eye(classes) - 1 / classes)
    return (weights * (second_moments @ weights - 2 * products)).sum()
