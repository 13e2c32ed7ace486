"""What the noisy answers of measure-once say: each noisy sum is read once, and freed of noise as far as
that goes. Nothing here sees a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...features import Fourier, RandomConvNets, Scattering, Views
from ...privacy import Measurement
from ...schema import Schema
from ..class_counts import COUNTS, class_weights
from . import view_means
from .network_moments import NetworkMoments, denoised_moments, prototype_features
from .prototypes import Prototypes, denoised_means, denoised_prototypes, row_radius

MEAN, CLASS_MEANS, CLUSTERS = "mean", "class means", "clusters"
PROTOTYPES, NETWORKS, VIEWS, TEACHER = "prototypes", "random networks", "views", "teacher"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that a distilled set is made from."""

    features: Scattering | Fourier
    """The feature map on which the teacher is a linear predictor."""
    teacher: np.ndarray
    """The teacher's weights (features, classes)."""
    prototypes: Prototypes | None = None
    """Cluster means of each class; None where none were measured."""
    networks: RandomConvNets | None = None
    """Random networks whose features were measured; None for tables and for goal "ridge"."""
    network_moments: NetworkMoments | None = None
    """What was measured of these features."""
    views: Views | None = None
    """Views in which classes were measured; None where random networks' moments were."""
    view_means: np.ndarray | None = None
    """Mean features of each class in each view, (views, classes, part)."""

    @property
    def looked(self) -> bool:
        """Whether it is known how rows look to networks."""
        return self.networks is not None or self.views is not None


def read_findings(
    schema: Schema,
    measured: Mapping[str, Measurement],
    *,
    features: Scattering | Fourier,
    networks: RandomConvNets | None,
    views: Views | None,
) -> Findings:
    """All noisy answers, read.

    Args:
        schema: The settled schema.
        measured: The noisy answers by name; those that were not asked for are not there.
        features: The feature map that the teacher was trained with.
        networks: The random networks that were measured, if any were.
        views: The views that were measured, if any were.
    """
    findings = Findings(features=features, teacher=measured[TEACHER].values)
    if PROTOTYPES not in measured:
        return findings
    prototypes = read_prototypes(schema, measured)
    findings = replace(findings, prototypes=prototypes)
    counts = measured[COUNTS].values
    if views is not None:
        base = np.asarray(view_means.prototype_features(views, prototypes))
        sums = measured[VIEWS].values.reshape(base.shape)
        means = view_means.denoised_view_means(views, base, sums, counts)
        return replace(findings, views=views, view_means=means)
    if networks is None:
        return findings
    sums = measured[NETWORKS]
    base = np.asarray(prototype_features(networks, prototypes))
    moments = denoised_moments(networks, base, sums.values, counts, sums.noise)
    return replace(findings, networks=networks, network_moments=moments)


def noisy_rows(measured: Mapping[str, Measurement]) -> float:
    """The noisy number of all rows, at least 1."""
    return class_weights(measured[COUNTS].values)[1]


def read_mean(schema: Schema, measured: Mapping[str, Measurement]) -> np.ndarray:
    """The mean of all rows, (slots,)."""
    rows, sums = np.asarray([noisy_rows(measured)]), measured[MEAN]
    grey = np.full(schema.slots, 0.5)
    return np.asarray(denoised_means(schema, grey, sums.values, rows, sums.noise)[0])


def read_class_means(schema: Schema, measured: Mapping[str, Measurement]) -> np.ndarray:
    """The mean row of each class, (classes, slots)."""
    centre, sums = read_mean(schema, measured), measured[CLASS_MEANS]
    return denoised_means(schema, centre, sums.values, measured[COUNTS].values, sums.noise)


def read_prototypes(schema: Schema, measured: Mapping[str, Measurement]) -> Prototypes:
    """The mean row, size and histogram of each cluster."""
    means, sums = read_class_means(schema, measured), measured[PROTOTYPES]
    return denoised_prototypes(schema, means, sums.values, row_radius(schema), sums.noise)
