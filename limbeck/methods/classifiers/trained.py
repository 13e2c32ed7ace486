"""`TrainedModel`: what a classifier is once it has learned: noisy numbers, free to use on any rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import softmax

from ...errors import LimbeckError
from ...features import features_of
from ...nets import AbstractFlatClassifier, FlatDense, FlatNetwork, filled_network, network_arrays
from ...schema import Schema
from ..measure_once.teacher import linear_features


class HeadOnFeatures(eqx.Module):
    """Encoded rows to logits: linear in fixed features."""

    features: Any
    weights: Float[Array, "size classes"]

    def __call__(self, slots: Float[Array, "rows slots"]) -> Float[Array, "rows classes"]:
        return self.features(slots) @ self.weights


class SeeingNetwork(eqx.Module):
    """Encoded rows to logits: by a network, brought to the form in which it takes them."""

    network: Any
    described: AbstractFlatClassifier = eqx.field(static=True)

    def __call__(self, slots: Float[Array, "rows slots"]) -> Float[Array, "rows classes"]:
        return self.network(self.described.seen(slots))


def flat_network(
    schema: Schema, *, filters: int = 1, hidden: tuple[int, ...] = ()
) -> FlatNetwork | FlatDense:
    """The field's ConvNet for images, dense layers for tables."""
    classes = len(schema.classes)
    if schema.image is None:
        columns = max(len(schema.inputs), 1)
        return FlatDense(width=schema.slots, columns=columns, classes=classes, hidden=tuple(hidden))
    return FlatNetwork(shape=schema.image.shape, classes=classes, filters=filters)


def build_model(
    schema: Schema, facts: Mapping[str, Any], *, key: PRNGKeyArray
) -> HeadOnFeatures | SeeingNetwork:
    """What `facts` of a model describe, untrained."""
    kind = facts["kind"]
    if kind == "head":
        scales = facts["length_scales"]
        features = linear_features(schema, size=facts["features"], length_scales=scales, seed=0)
        weights = np.zeros((features.size, len(schema.classes)), np.float32)
        return HeadOnFeatures(features, jax.numpy.asarray(weights))
    if kind == "network":
        described = flat_network(schema, filters=facts["filters"], hidden=tuple(facts["hidden"]))
        return SeeingNetwork(described.network(key), described)
    raise LimbeckError(f"Expected a model of the kind head or network, got {kind!r}.")


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A classifier of encoded rows."""

    network: HeadOnFeatures | SeeingNetwork
    facts: Mapping[str, Any]
    """What the network is built from again, before its numbers are filled in."""

    kind: ClassVar[str] = "model"

    def chances(self, slots: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, (rows, classes)."""
        return softmax(features_of(self.network, slots).astype(np.float64), axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        return network_arrays(self.network)

    @classmethod
    def load(
        cls, schema: Schema, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> TrainedModel:
        fresh = build_model(schema, facts, key=jax.random.key(0))
        return cls(network=filled_network(fresh, arrays), facts=dict(facts))
