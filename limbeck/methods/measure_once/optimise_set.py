"""The free part: move a small set until it agrees with everything that was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from scipy.ndimage import affine_transform

from ...features import RandomConvNets, features_of
from ...schema import Schema
from .network_moments import Seen, ridge_errors
from .prototypes import Prototypes, low_basis, match_histogram
from .teacher import ridge_weights

RIDGE, NETWORK_RIDGE = 1e-3, 0.1
"""Of regression with the teacher's features, and with a random network's."""
EVERY_DIRECTION = 0.01
"""Weight of any direction of the features, beside the mean square of the probes along it."""
FINENESS = 1.5
"""Of random pictures: how steeply their amplitudes fall with the frequency."""
NETWORKS_A_STEP = 2
"""Random networks looked at in one update, drawn anew each time."""


ADAM = optax.scale_by_adam(b1=0.9, b2=0.99)


class Blur(eqx.Module):
    """Changes of images blurred by a Gaussian of so many pixels: no pixel moves alone."""

    along: Float[Array, "height height"] | None
    across: Float[Array, "width width"] | None
    shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, schema: Schema, pixels: float) -> None:
        self.along = self.across = None
        self.shape = schema.image.shape if schema.image else (1, schema.slots, 1)
        if schema.image and pixels > 0:
            self.along, self.across = (_blurring(side, pixels) for side in self.shape[:2])

    def __call__(self, change: Array) -> Array:
        if self.along is None or self.across is None:
            return change
        pictures = change.reshape(*change.shape[:-1], *self.shape)
        blurred = jnp.einsum("yv,xw,...vwc->...yxc", self.along, self.across, pictures)
        return blurred.reshape(change.shape)


def _blurring(size: int, pixels: float) -> Array:
    apart = np.subtract.outer(np.arange(size), np.arange(size))
    weights = np.exp(-(apart**2) / (2 * pixels**2))
    return jnp.asarray(weights / weights.sum(axis=1, keepdims=True), jnp.float32)


class Targets(eqx.Module):
    """What was measured, and the features it was measured with."""

    features: Any
    teacher: Float[Array, "size classes"]
    probes: Float[Array, "probes size"] | None = None
    """Features at which agreement with the teacher counts, beside every direction alike."""
    networks: RandomConvNets | None = None
    seen: Seen | None = None
    """By the networks."""


class Weights(NamedTuple):
    """How much each part of the disagreement counts."""

    teacher: float
    means: float
    """Of the classes, in random networks."""
    errors: float
    """Of regression on random networks' features."""
    nearness: float
    """To the start."""


def align(
    start: np.ndarray,
    targets: Targets,
    *,
    steps: int,
    learning_rate: float,
    weights: Weights,
    blur: Blur,
    seed: int,
    progress: Callable[[float], None],
) -> np.ndarray:
    """Rows (classes, per class, slots) in [0, 1] near `start` whose ridge predictor points where the
    teacher does, whose mean features in random networks are the classes', and from which regression
    on those features learns to tell the measured rows apart.

    Args:
        start: Where to begin.
        targets: What to agree with.
        steps: Updates by Adam, its rate falling along a cosine.
        learning_rate: At the start.
        weights: Of the parts.
        blur: Applied to every change.
        seed: Of the networks looked at in each step.
        progress: Called with the fraction done.
    """
    anchor = jnp.asarray(start, jnp.float32)
    change = jnp.zeros_like(anchor)
    state = ADAM.init(change)
    rng = np.random.default_rng(seed)
    count = targets.networks.networks if targets.networks else 1
    some = min(NETWORKS_A_STEP, count) if targets.networks else 0
    for step in range(steps):
        rate = learning_rate * (1 + np.cos(np.pi * step / steps)) / 2
        chosen = jnp.asarray(rng.choice(count, some, replace=False))
        change, state = _update(
            change, state, anchor, chosen, jnp.float32(rate), targets, blur, weights
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
    targets: Targets,
    blur: Blur,
    weights: Weights,
) -> tuple[Array, Any]:
    def loss(change: Array) -> Array:
        return _disagreement(_bounded(anchor + blur(change)), anchor, targets, weights, chosen)

    moves, state = ADAM.update(jax.grad(loss)(change), state)
    return change - rate * moves, state


def _bounded(rows: Array) -> Array:
    """Values in [0, 1]; derivatives as if they were free, so that none gets stuck at a bound."""
    return rows + jax.lax.stop_gradient(jnp.clip(rows, 0.0, 1.0) - rows)


def _disagreement(
    rows: Array, anchor: Array, targets: Targets, weights: Weights, chosen: Array
) -> Array:
    classes, each, slots = rows.shape
    flat = rows.reshape(-1, slots)
    labels = jax.nn.one_hot(jnp.repeat(jnp.arange(classes), each), classes)
    found = ridge_weights(targets.features(flat), labels, RIDGE)
    loss = (
        weights.teacher * (1 - _cosine(found, targets.teacher, targets.probes))
        + weights.nearness * ((rows - anchor) ** 2).sum(axis=2).mean()
    )
    if targets.networks is None or targets.seen is None:
        return loss
    made = targets.networks.separate(flat, chosen)
    wanted = Seen(targets.seen.means[chosen], targets.seen.moments[chosen], targets.seen.shares)
    return (
        loss
        + weights.means * _distance(made, wanted.means)
        + weights.errors * _errors(made, labels, wanted)
    )


def _cosine(found: Array, wanted: Array, probes: Array | None) -> Array:
    """Agreement of two linear predictors: of their weights and of what they say about the probes.

    The teacher's weights are mostly noise in directions no row has; probes tell which matter.
    """
    if probes is not None:
        scale = 1 / jnp.sqrt(len(probes) * EVERY_DIRECTION)
        found, wanted = (jnp.concatenate([w, scale * (probes @ w)]) for w in (found, wanted))
    return (found * wanted).sum() / jnp.maximum(
        jnp.linalg.norm(found) * jnp.linalg.norm(wanted), 1e-9
    )


def _distance(
    made: Float[Array, "networks rows part"], wanted: Float[Array, "networks classes part"]
) -> Array:
    """Mean squared distance of the rows' class means from the measured ones."""
    networks, classes, part = wanted.shape
    means = made.reshape(networks, classes, -1, part).mean(axis=2)
    return ((means - wanted) ** 2).sum(axis=2).mean()


def _errors(made: Float[Array, "networks rows part"], labels: Array, wanted: Seen) -> Array:
    """What ridge regression on the rows gets wrong of the measured ones, mean over the networks."""
    learned = jax.vmap(ridge_weights, (0, None, None))(made, labels, NETWORK_RIDGE)
    each = jax.vmap(ridge_errors, (0, 0, 0, None))
    return each(learned, *wanted).mean()


def nearest_start(starts: Sequence[np.ndarray], targets: Targets) -> np.ndarray:
    """Of several sets the one whose network means are nearest to the measured ones."""
    if targets.networks is None or targets.seen is None:
        return starts[0]
    every = jnp.arange(targets.networks.networks)
    look, found = eqx.filter_jit(targets.networks.separate), []
    for start in starts:
        flat = jnp.asarray(start.reshape(-1, start.shape[2]), jnp.float32)
        found.append(float(_distance(look(flat, every), targets.seen.means)))
    return starts[int(np.argmin(found))]


def known(prototypes: Prototypes, targets: Targets) -> float:
    """Share of the classes' rows whose prototypes the teacher puts into the right class."""
    rows, sizes, _ = prototypes
    phi = features_of(targets.features, rows.reshape(-1, rows.shape[2]).astype(np.float32))
    said = (phi @ np.asarray(targets.teacher)).argmax(axis=1).reshape(sizes.shape)
    return float(((said == np.arange(len(sizes))[:, None]) * sizes).sum() / sizes.sum())


def spread(
    schema: Schema, prototypes: Prototypes, per_class: int, rng: np.random.Generator
) -> np.ndarray:
    """As many rows per class as wanted, (classes, per_class, slots): prototypes merged into fewer,
    or repeated with slight deformations."""
    rows, sizes, _ = prototypes
    chosen = [
        _merged(schema, own, size, per_class)
        if per_class < len(own)
        else _repeated(schema, own[np.argsort(-size)], per_class, rng)
        for own, size in zip(rows, sizes, strict=True)
    ]
    return np.stack(chosen)


def repeated(
    schema: Schema, rows: np.ndarray, per_class: int, rng: np.random.Generator
) -> np.ndarray:
    """More rows of each class, (classes, per_class, slots): again and again, copies a little deformed."""
    return np.stack([_repeated(schema, own, per_class, rng) for own in rows])


def probe(
    schema: Schema, prototypes: Prototypes, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows (count, slots) such as the classes may hold: deformed prototypes, large ones oftener."""
    rows, sizes, _ = prototypes
    flat, share = rows.reshape(-1, schema.slots), sizes.ravel() / sizes.sum()
    chosen = rng.choice(len(flat), count, p=share)
    return np.stack([_deformed(schema, flat[i], rng) for i in chosen])


def random_pictures(schema: Schema, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows (count, slots) that look like no picture but vary as pictures do: coarse parts more than
    fine ones. From the schema alone."""
    assert schema.image
    height, width, channels = schema.image.shape
    across = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    power = np.maximum(across, 1 / max(height, width)) ** -FINENESS
    white = rng.standard_normal((count, channels, height, width))
    field = np.real(np.fft.ifft2(power * np.fft.fft2(white)))
    field /= field.std(axis=(1, 2, 3), keepdims=True)
    light = rng.uniform(0, 0.6, (count, 1, 1, 1))
    pictures = np.clip(light + 0.4 * field, 0, 1)
    return pictures.transpose(0, 2, 3, 1).reshape(count, -1)


def sharpened(prototypes: Prototypes) -> Prototypes:
    """Prototypes whose values have the measured histograms: means of many pictures are blurred."""
    sharp = [
        [match_histogram(row, share) for row, share in zip(rows, shares, strict=True)]
        for rows, shares in zip(prototypes.rows, prototypes.shares, strict=True)
    ]
    return prototypes._replace(rows=np.asarray(sharp))


def _merged(schema: Schema, rows: np.ndarray, sizes: np.ndarray, count: int) -> np.ndarray:
    """Fewer rows: weighted k-means of the prototypes, begun at the largest and those far from it."""
    low = rows @ low_basis(schema)
    picked = [int(sizes.argmax())]
    while len(picked) < count:
        apart = ((low[:, None] - low[picked]) ** 2).sum(axis=2).min(axis=1)
        picked.append(int((apart * sizes).argmax()))
    centres = low[picked]
    for _ in range(20):
        nearest = ((low[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        weights = (nearest == np.arange(count)[:, None]) * sizes
        whole = weights.sum(axis=1, keepdims=True)
        centres = np.where(whole > 0, weights @ low / np.maximum(whole, 1e-9), centres)
    found = weights @ rows / np.maximum(whole, 1e-9)
    return np.where(whole > 0, found, rows[picked])


def _repeated(schema: Schema, rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """The rows as they are, then deformed copies of them, `count` in all."""
    found = rows[np.resize(np.arange(len(rows)), count)].copy()
    for i in range(len(rows), count):
        found[i] = _deformed(schema, found[i], rng)
    return found


def _deformed(schema: Schema, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if not schema.image:
        return np.clip(row + 0.02 * rng.standard_normal(len(row)), 0, 1)
    height, width, channels = schema.image.shape
    angle, scale = rng.uniform(-0.14, 0.14), rng.uniform(0.92, 1.08)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / scale
    middle = np.array([height - 1, width - 1]) / 2
    shift = middle - turn @ middle + rng.uniform(-1, 1, 2)
    picture = row.reshape(height, width, channels)
    moved = [
        affine_transform(picture[..., c], turn, shift, order=1, mode="nearest")
        for c in range(channels)
    ]
    return np.stack(moved, axis=2).reshape(-1)
