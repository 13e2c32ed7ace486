"""Move the rows of a small set, by gradient descent, until they agree with all that was measured.

The disagreement has four parts: ridge regression on the set should give the teacher's weights; the
set's class means in random networks should be the measured ones; regression on these networks'
features should make few errors on the measured rows; and rows should stay near where they began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ...features import RandomConvNets, ridge_weights
from ...schema import Schema
from .network_moments import NetworkMoments, ridge_errors

RIDGE, NETWORK_RIDGE = 1e-3, 0.1
"""Ridge, in units of the kernel's mean diagonal, of regression with the teacher's features and with a
random network's."""
DIRECTION_WEIGHT = 0.01
"""Weight of every direction of the features alike, beside the mean square of the probes along it."""
NETWORKS_PER_STEP = 2
"""Number of random networks looked at in one update, drawn anew each time."""
ADAM = optax.scale_by_adam(b1=0.9, b2=0.99)


class Blur(eqx.Module):
    """Changes of images blurred by a Gaussian whose deviation is so many pixels, so that no pixel moves
    alone; changes of tables, and of 0 pixels, as they are."""

    along: Float[Array, "height height"] | None
    """Weights of lines in each blurred line; None: no blur."""
    across: Float[Array, "width width"] | None
    """The same for pixels of a line."""
    shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, schema: Schema, pixels: float) -> None:
        self.along = self.across = None
        self.shape = schema.image.shape if schema.image else (1, schema.slots, 1)
        if schema.image and pixels > 0:
            self.along, self.across = (_blurring(side, pixels) for side in self.shape[:2])

    def __call__(self, change: Array) -> Array:
        if self.along is None or self.across is None:
            return change
        images = change.reshape(*change.shape[:-1], *self.shape)
        blurred = jnp.einsum("yv,xw,...vwc->...yxc", self.along, self.across, images)
        return blurred.reshape(change.shape)


def _blurring(size: int, pixels: float) -> Array:
    apart = np.subtract.outer(np.arange(size), np.arange(size))
    weights = np.exp(-(apart**2) / (2 * pixels**2))
    return jnp.asarray(weights / weights.sum(axis=1, keepdims=True), jnp.float32)


class Objective(eqx.Module):
    """What a set is to agree with: all of it measured, none of it rows."""

    features: Any
    """The feature map on which the teacher is a linear predictor."""
    teacher: Float[Array, "size classes"]
    """The teacher's weights."""
    probes: Float[Array, "probes size"] | None = None
    """Features of rows at which set and teacher should predict the same; None: only their weights
    are compared."""
    networks: RandomConvNets | None = None
    """Random networks whose features were measured."""
    network_moments: NetworkMoments | None = None
    """What was measured of these features."""


class ObjectiveWeights(NamedTuple):
    """How much each part of the disagreement counts."""

    teacher: float
    """Weight of disagreement with the teacher."""
    class_means: float
    """Weight of the distance of class means in random networks from the measured ones."""
    errors: float
    """Weight of what regression on random networks' features gets wrong of the measured rows."""
    nearness: float
    """Weight of the squared distance from the start."""


def optimise_set(
    start: np.ndarray,
    objective: Objective,
    *,
    steps: int,
    learning_rate: float,
    weights: ObjectiveWeights,
    blur: Blur,
    seed: int,
    progress: Callable[[float], None],
) -> np.ndarray:
    """Rows (classes, per class, slots) in [0, 1], moved from `start` so that they disagree least with the
    objective: the last iterate.

    Args:
        start: Rows (classes, per class, slots) to begin with.
        objective: What to agree with.
        steps: Updates by Adam, its rate falling along a cosine.
        learning_rate: Learning rate of the first update.
        weights: Weights of the parts of the disagreement.
        blur: Applied to every change of the rows.
        seed: Seed of the draw of networks looked at in each update.
        progress: Called with the fraction done.
    """
    anchor = jnp.asarray(start, jnp.float32)
    change = jnp.zeros_like(anchor)
    state = ADAM.init(change)
    rng = np.random.default_rng(seed)
    count = objective.networks.networks if objective.networks else 1
    some = min(NETWORKS_PER_STEP, count) if objective.networks else 0
    for step in range(steps):
        rate = learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        chosen = jnp.asarray(rng.choice(count, some, replace=False))
        change, state = _update(
            change, state, anchor, chosen, jnp.float32(rate), objective, blur, weights
        )
        progress((step + 1) / steps)
    return np.asarray(_bounded(anchor + blur(change)))


@eqx.filter_jit
def _update(
    change: Array,
    state: Any,
    anchor: Array,
    chosen: Array,
    rate: Array,
    objective: Objective,
    blur: Blur,
    weights: ObjectiveWeights,
) -> tuple[Array, Any]:
    def loss(change: Array) -> Array:
        return _disagreement(_bounded(anchor + blur(change)), anchor, objective, weights, chosen)

    moves, state = ADAM.update(jax.grad(loss)(change), state)
    return change - rate * moves, state


def _bounded(rows: Array) -> Array:
    """Values in [0, 1]; derivatives as if they were free, so that none gets stuck at a bound."""
    return rows + jax.lax.stop_gradient(jnp.clip(rows, 0.0, 1.0) - rows)


def _disagreement(
    rows: Array, anchor: Array, objective: Objective, weights: ObjectiveWeights, chosen: Array
) -> Array:
    """The weighted sum of the four parts, the networks' over those chosen for this update."""
    classes, each, slots = rows.shape
    flat = rows.reshape(-1, slots)
    labels = jax.nn.one_hot(jnp.repeat(jnp.arange(classes), each), classes)
    learned = ridge_weights(objective.features(flat), labels, RIDGE)
    loss = (
        weights.teacher * (1 - _cosine(learned, objective.teacher, objective.probes))
        + weights.nearness * ((rows - anchor) ** 2).sum(axis=2).mean()
    )
    if objective.networks is None or objective.network_moments is None:
        return loss
    features = objective.networks.separate(flat, chosen)
    measured = objective.network_moments.of_networks(chosen)
    return (
        loss
        + weights.class_means * _mean_distance(features, measured.class_means)
        + weights.errors * _regression_errors(features, labels, measured)
    )


def _cosine(learned: Array, teacher: Array, probes: Array | None) -> Array:
    """Cosine between the weights of two linear predictors, each followed by its predictions at the
    probes.

    The teacher's weights are mostly noise in directions no row has; probes tell which matter.
    """
    if probes is not None:
        scale = 1 / jnp.sqrt(len(probes) * DIRECTION_WEIGHT)
        learned, teacher = (jnp.concatenate([w, scale * (probes @ w)]) for w in (learned, teacher))
    return (learned * teacher).sum() / jnp.maximum(
        jnp.linalg.norm(learned) * jnp.linalg.norm(teacher), 1e-9
    )


def _mean_distance(
    features: Float[Array, "networks rows part"], measured: Float[Array, "networks classes part"]
) -> Array:
    """Mean squared distance of the set's class means from the measured ones."""
    networks, classes, part = measured.shape
    means = features.reshape(networks, classes, -1, part).mean(axis=2)
    return ((means - measured) ** 2).sum(axis=2).mean()


def _regression_errors(
    features: Float[Array, "networks rows part"], labels: Array, measured: NetworkMoments
) -> Array:
    """What ridge regression on the set gets wrong of the measured rows, mean over the networks."""
    learned = jax.vmap(ridge_weights, (0, None, None))(features, labels, NETWORK_RIDGE)
    each = jax.vmap(ridge_errors, (0, 0, 0, None))
    return each(learned, *measured).mean()


def nearest_start(starts: Sequence[np.ndarray], objective: Objective) -> np.ndarray:
    """Of several sets the one whose class means in random networks are nearest to the measured ones;
    the first where no networks were measured."""
    if objective.networks is None or objective.network_moments is None:
        return starts[0]
    every = jnp.arange(objective.networks.networks)
    look, distances = eqx.filter_jit(objective.networks.separate), []
    for start in starts:
        flat = jnp.asarray(start.reshape(-1, start.shape[2]), jnp.float32)
        means = objective.network_moments.class_means
        distances.append(float(_mean_distance(look(flat, every), means)))
    return starts[int(np.argmin(distances))]
