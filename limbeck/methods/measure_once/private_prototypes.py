"""How class means and prototypes are asked for: the questions, and one after the other their answers.

Methods that begin with them (measure-once, DP-KIP) share this file, and each says how much of its budget
goes to them. What the answers say is read in `findings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...privacy import Asked, MapSpec, Measurement, Private, Sum
from ...schema import Schema
from .findings import (
    CLASS_MEANS,
    CLUSTERS,
    MEAN,
    PROTOTYPES,
    noisy_rows,
    read_class_means,
    read_mean,
)
from .prototypes import (
    BINS,
    CLASS_RADIUS,
    COARSE_RADIUS,
    MEAN_RADIUS,
    CentredRows,
    Clusters,
    ClusterSums,
    PrototypeSums,
    cluster_bound,
    coarse_basis,
    prototype_bound,
    row_radius,
    start_clusters,
    updated_clusters,
)

KMEANS_ROUNDS = 4
"""Rounds of k-means that find the clusters."""
PROTOTYPE_NOISE = 0.08
"""Standard deviation of the noise in a prototype's value that is put up with, in units of the value's
range; decides how many prototypes are measured."""


def asked_class_means(schema: Schema, shares: Mapping[str, float]) -> list[Asked]:
    """The mean of all rows, then those of the classes, with their shares of the budget."""
    classes, slots = len(schema.classes), schema.slots
    radius = row_radius(schema, MEAN_RADIUS)
    mean = Sum(name=MEAN, bound=radius, size=slots, groups=1, by="all")
    radius = row_radius(schema, CLASS_RADIUS)
    means = Sum(name=CLASS_MEANS, bound=radius, size=slots, groups=classes)
    return [
        Asked(question=mean, share=shares[MEAN]),
        Asked(question=means, share=shares[CLASS_MEANS]),
    ]


def asked_prototypes(schema: Schema, most: int, shares: Mapping[str, float]) -> list[Asked]:
    """Rounds of k-means and the sums of rows per cluster, at most so many clusters for each class."""
    groups = len(schema.classes) * most
    rounds = [
        Sum(
            name=f"{CLUSTERS}/{number}",
            bound=cluster_bound(row_radius(schema, COARSE_RADIUS)),
            size=coarse_basis(schema).shape[1] + 1,
            groups=groups,
            by="map",
        )
        for number in range(KMEANS_ROUNDS)
    ]
    prototypes = Sum(
        name=PROTOTYPES,
        bound=prototype_bound(row_radius(schema)),
        size=schema.slots + 1 + BINS,
        groups=groups,
        by="map",
    )
    return [
        *(Asked(question=one, share=shares[CLUSTERS] / KMEANS_ROUNDS) for one in rounds),
        Asked(question=prototypes, share=shares[PROTOTYPES]),
    ]


def measure_class_means(
    private: Private, measured: dict[str, Measurement], seed: int
) -> np.ndarray:
    """Ask for the mean and the class means, add the answers to `measured` (where the class counts are
    already), and read the means (classes, slots)."""
    schema = private.schema
    measured[MEAN] = private.ask(MEAN, _spec("mean_map", seed))
    centre = read_mean(schema, measured)
    measured[CLASS_MEANS] = private.ask(CLASS_MEANS, _spec("class_map", seed), {"centre": centre})
    return read_class_means(schema, measured)


def measure_prototypes(
    private: Private, measured: dict[str, Measurement], most: int, seed: int
) -> None:
    """Ask for class means, rounds of k-means and prototypes, each question depending on the answers
    before it, and add the answers to `measured`."""
    schema = private.schema
    means = measure_class_means(private, measured, seed)
    # As many clusters as can be told from noise; noise and counts are public by now.
    size = noisy_rows(measured) / len(means)
    affordable = size * PROTOTYPE_NOISE / max(private.noise_of(PROTOTYPES), 1e-9)
    clusters = start_clusters(schema, means, int(np.clip(affordable, 1, most)), seed)
    radius = row_radius(schema, COARSE_RADIUS)
    for number in range(KMEANS_ROUNDS):
        name = f"{CLUSTERS}/{number}"
        answer = private.ask(name, _spec("cluster_map", seed), {"clusters": vars(clusters)})
        measured[name] = answer
        last = number == KMEANS_ROUNDS - 1
        clusters = updated_clusters(
            clusters, answer.values, radius, answer.noise, last=last, seed=seed + number
        )
    measured[PROTOTYPES] = private.ask(
        PROTOTYPES, _spec("prototype_map", seed), {"clusters": vars(clusters)}
    )


def _spec(maker: str, seed: int) -> MapSpec:
    return MapSpec(factory=f"{__name__}:{maker}", seed=seed)


# ---- the maps that are measured: what a row adds to a sum ----------------------------------------


def mean_map(schema: Schema, seed: int) -> CentredRows:
    """Rows less a grey one."""
    return CentredRows(jnp.full(schema.slots, 0.5), row_radius(schema, MEAN_RADIUS))


def class_map(schema: Schema, seed: int, centre: np.ndarray) -> CentredRows:
    """Rows less the noisy mean of all."""
    return CentredRows(jnp.asarray(centre, jnp.float32), row_radius(schema, CLASS_RADIUS))


def cluster_map(schema: Schema, seed: int, clusters: Mapping[str, Array]) -> ClusterSums:
    """Coarse parts of rows, by their nearest centroid."""
    return ClusterSums(Clusters(**clusters), row_radius(schema, COARSE_RADIUS))


def prototype_map(schema: Schema, seed: int, clusters: Mapping[str, Array]) -> PrototypeSums:
    """Rows less their class's mean, by their nearest centroid."""
    return PrototypeSums(Clusters(**clusters), row_radius(schema))
