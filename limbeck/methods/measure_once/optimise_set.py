"""Move the rows of a small set, by gradient descent, until they agree with all that was measured.

The disagreement has up to four parts: ridge regression on the set should give the teacher's weights; the
set's class means in random networks, or in views, should be the measured ones; regression on random networks'
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

from ...features import RandomConvNets, Views, ridge_weights
from ...schema import Schema
from ..tiles import unpacked
from .network_moments import NetworkMoments, ridge_errors
from .view_means import seen

RIDGE, NETWORK_RIDGE = 1e-3, 0.1
"""Ridge, in units of the kernel's mean diagonal, of regression with the teacher's features and with a
random network's."""
DIRECTION_WEIGHT = 0.01
"""Weight of every direction of the features alike, beside the mean square of the probes along it."""
NETWORKS_PER_STEP, VIEWS_PER_STEP = 2, 1
"""Number of random networks, or of views, looked at in one update, drawn anew each time."""
ADAM = optax.scale_by_adam(b1=0.9, b2=0.99)


class Canvas(eqx.Module):
    """How rows are moved, and what they show.

    Changes of images are blurred by a Gaussian whose deviation is so many pixels, so that no pixel moves alone;
    changes of tables, and of 0 pixels, are as they are. An image may hold several small pictures: what anything
    looks at are these, enlarged, which blurs enough.
    """

    along: Float[Array, "height height"] | None
    """Weights of lines in each blurred line; None: no blur."""
    across: Float[Array, "width width"] | None
    """The same for pixels of a line."""
    shape: tuple[int, int, int] = eqx.field(static=True)
    tiles: int = eqx.field(static=True)
    """Pictures along either side of an image."""

    def __init__(self, schema: Schema, pixels: float, tiles: int = 1) -> None:
        self.along = self.across = None
        self.shape = schema.image.shape if schema.image else (1, schema.slots, 1)
        self.tiles = tiles
        if schema.image and pixels > 0 and tiles == 1:
            self.along, self.across = (_blurring(side, pixels) for side in self.shape[:2])

    def moved(self, start: Array, change: Array) -> Array:
        """Rows after a change, in [0, 1]; derivatives as if they were free, so that none gets stuck."""
        rows = start + self.blurred(change)
        return rows + jax.lax.stop_gradient(jnp.clip(rows, 0.0, 1.0) - rows)

    def pictures(self, rows: Float[Array, "classes each slots"]) -> Array:
        """What rows show: (classes * each, pictures of each, slots)."""
        flat = rows.reshape(-1, rows.shape[2])
        return unpacked(flat, self.shape, self.tiles).reshape(len(flat), self.tiles**2, -1)

    def blurred(self, change: Array) -> Array:
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
    views: Views | None = None
    """Views in which classes were measured."""
    view_means: Float[Array, "views classes part"] | None = None
    """Mean features of each class in each view."""

    @property
    def looking(self) -> int:
        """Number of random networks or views."""
        if self.views is not None:
            return self.views.views
        return self.networks.networks if self.networks is not None else 0

    def blind(self) -> Objective:
        """The teacher's part alone."""
        return Objective(features=self.features, teacher=self.teacher, probes=self.probes)


class ObjectiveWeights(NamedTuple):
    """How much each part of the disagreement counts."""

    teacher: float
    """Weight of disagreement with the teacher."""
    class_means: float
    """Weight of the distance of class means in random networks, or views, from the measured ones."""
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
    canvas: Canvas,
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
        canvas: How rows change, and what they show.
        seed: Seed of the draw of what is looked at in each update.
        progress: Called with the fraction done.
    """
    anchor = jnp.asarray(start, jnp.float32)
    change = jnp.zeros_like(anchor)
    state = ADAM.init(change)
    rng = np.random.default_rng(seed)
    each = VIEWS_PER_STEP if objective.views is not None else NETWORKS_PER_STEP
    count, some = max(objective.looking, 1), min(each, objective.looking)
    for step in range(steps):
        rate = learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        chosen = jnp.asarray(rng.choice(count, some, replace=False))
        place = jnp.asarray(rng.integers(canvas.tiles**2))
        change, state = _update(
            change, state, anchor, (chosen, place), jnp.float32(rate), objective, canvas, weights
        )
        progress((step + 1) / steps)
    return np.asarray(canvas.moved(anchor, change))


@eqx.filter_jit
def _update(
    change: Array,
    state: Any,
    anchor: Array,
    drawn: tuple[Array, Array],
    rate: Array,
    objective: Objective,
    canvas: Canvas,
    weights: ObjectiveWeights,
) -> tuple[Array, Any]:
    def loss(change: Array) -> Array:
        rows = canvas.moved(anchor, change)
        away = ((rows - anchor) ** 2).sum(axis=2).mean()
        shown = canvas.pictures(rows), len(rows)
        return _disagreement(*shown, objective, weights, *drawn) + weights.nearness * away

    moves, state = ADAM.update(jax.grad(loss)(change), state)
    return change - rate * moves, state


def _disagreement(
    pictures: Float[Array, "images places slots"],
    classes: int,
    objective: Objective,
    weights: ObjectiveWeights,
    chosen: Array,
    place: Array,
) -> Array:
    """The weighted sum of what teacher and networks say: the teacher looks at the pictures at one place of
    each image, so that it costs the same however many an image holds, and networks at all."""
    labels = jax.nn.one_hot(jnp.repeat(jnp.arange(classes), len(pictures) // classes), classes)
    learned = ridge_weights(objective.features(pictures[:, place]), labels, RIDGE)
    loss = weights.teacher * (1 - _cosine(learned, objective.teacher, objective.probes))
    flat = pictures.reshape(-1, pictures.shape[2])
    if objective.views is not None and objective.view_means is not None:
        looks = jnp.stack([objective.views.look(flat, number) for number in chosen])
        loss += weights.class_means * _mean_distance(looks, objective.view_means[chosen])
    if objective.networks is not None and objective.network_moments is not None:
        features = objective.networks.separate(flat, chosen)
        measured = objective.network_moments.of_networks(chosen)
        loss += weights.class_means * _mean_distance(features, measured.class_means)
        all_labels = jnp.repeat(labels, pictures.shape[1], axis=0)
        loss += weights.errors * _regression_errors(features, all_labels, measured)
    return loss


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
    """Of several sets the one whose class means in random networks, or views, are nearest to the measured ones;
    the first where none were measured."""
    if not objective.looking:
        return starts[0]
    distances = []
    for start in starts:
        flat = jnp.asarray(start.reshape(-1, start.shape[2]), jnp.float32)
        distances.append(float(_all_distances(flat, objective)))
    return starts[int(np.argmin(distances))]


def _all_distances(rows: Array, objective: Objective) -> Array:
    """Mean squared distance of a set's class means from the measured ones, over all networks or views."""
    if objective.views is not None and objective.view_means is not None:
        views, means = objective.views, objective.view_means
        each = [
            _mean_distance(seen(views, rows, number)[None], own[None])
            for number, own in enumerate(means)
        ]
        return jnp.stack(each).mean()
    assert objective.networks is not None and objective.network_moments is not None
    every = jnp.arange(objective.networks.networks)
    features = eqx.filter_jit(objective.networks.separate)(rows, every)
    return _mean_distance(features, objective.network_moments.class_means)
