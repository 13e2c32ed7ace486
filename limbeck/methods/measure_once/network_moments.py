"""What fresh convolutional networks see in the rows, measured once: means of each class and moments.

With both, the error that ridge regression on any small set makes on all the rows, with a network's
features, is known without the rows: it is a quadratic function of the regression's weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...features import RandomConvNets, split_blocks
from .prototypes import Prototypes

RADIUS = 0.5
"""Norm of a row's residual features that is expected."""


class NetworkResiduals(eqx.Module):
    """Features of random networks less the class's at its prototypes: multiplied by themselves,
    network by network, and by the class. As one contribution, both parts weighing the same."""

    networks: RandomConvNets
    at_prototypes: Float[Array, "classes size"]

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
    part = networks.size // networks.networks
    return (*[(part, part)] * networks.networks, (networks.size, classes))


def class_weight(networks: RandomConvNets) -> float:
    """Of a class's sums beside the moments, with which a residual of the expected norm, spread evenly
    over the networks, adds as much to the one as to the other."""
    return RADIUS / math.sqrt(networks.networks)


def network_bound(networks: RandomConvNets) -> float:
    return math.sqrt(2) * RADIUS * class_weight(networks)


def mean_features(networks: RandomConvNets, prototypes: Prototypes) -> Array:
    """Mean features (classes, size) of the networks at the prototypes, weighted by their sizes."""
    rows, sizes, _ = prototypes
    phi = eqx.filter_jit(networks)(jnp.asarray(rows.reshape(-1, rows.shape[2]), jnp.float32))
    weights = jnp.asarray(sizes / sizes.sum(axis=1, keepdims=True), jnp.float32)
    return jnp.einsum("ck,ckf->cf", weights, phi.reshape(*sizes.shape, -1))


class Seen(NamedTuple):
    """What the noisy sums say about the features of the rows, each network's of norm 1."""

    means: Float[Array, "networks classes part"]
    """Of the classes."""
    moments: Float[Array, "networks part part"]
    """Mean products of two features over all rows."""
    shares: Float[Array, " classes"]
    """Of the classes among the rows."""


def read_networks(
    networks: RandomConvNets,
    at_prototypes: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
) -> Seen:
    """Means and moments from the noisy sums of `NetworkResiduals`.

    Args:
        networks: That were measured.
        at_prototypes: What was taken from the features, (classes, size).
        sums: As measured, of any shape.
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
    found = (base + shift, within + crossed + crossed.swapaxes(1, 2), shares)
    return Seen(*(jnp.asarray(part, jnp.float32) for part in found))


def positive_part(matrix: np.ndarray, noise: float) -> np.ndarray:
    """The likely matrix of moments behind one that carries white noise.

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
    means: Float[Array, "classes part"],
    moments: Float[Array, "part part"],
    shares: Float[Array, " classes"],
) -> Float[Array, ""]:
    """Mean squared error over all rows of a linear predictor of centred labels, up to a constant."""
    classes = len(means)
    wanted = means.T * shares @ (jnp.eye(classes) - 1 / classes)
    return (weights * (moments @ weights - 2 * wanted)).sum()
