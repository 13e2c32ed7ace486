"""Training a network on released images: momentum SGD on one compiled step, last iterate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ..chunks import in_chunks
from ..errors import LimbeckError
from .deform import Deformation
from .ridge import one_hot

Net = TypeVar("Net", bound=eqx.Module)

PIECE_IMAGES = 64
"""Images of a step worked on at once: with more, what lies between layers outgrows the cache."""


def train(
    net: Net,
    images: np.ndarray,
    wanted: np.ndarray,
    *,
    rates: np.ndarray,
    batch: int,
    momentum: float = 0.0,
    decay: float = 0.0,
    deform: Deformation | None = None,
    seed: int,
    progress: Callable[[float], None] = lambda done: None,
) -> Net:
    """Minimise cross-entropy; the network of the last epoch.

    Args:
        net: A fresh network, called with images and a key.
        images: Standardised, (rows, height, width, channels).
        wanted: Target shares (rows, classes).
        rates: Learning rate of each epoch.
        batch: Images per step.
        momentum: Of SGD.
        decay: Weight decay, added to the slope.
        deform: Deforms images, anew in each step.
        seed: Of the images' order, their deformations, and the net's own randomness.
        progress: Called with the fraction done.
    """
    velocity = jax.tree_util.tree_map(jnp.zeros_like, eqx.filter(net, eqx.is_array))
    start, rng = jax.random.key(seed), np.random.default_rng(seed)
    for epoch, rate in enumerate(rates):
        order = rng.permutation(len(images))
        for number, at in enumerate(range(0, len(images), batch)):
            chosen = order[at : at + batch]
            key = jax.random.fold_in(jax.random.fold_in(start, epoch), number)
            deform_key, net_key = jax.random.split(key)
            x = jnp.asarray(images[chosen])
            x = _deformed(deform, x, deform_key) if deform else x
            slope = _slope(net, x, jnp.asarray(wanted[chosen]), net_key)
            pace = jnp.asarray([rate, momentum, decay], jnp.float32)
            net, velocity = _update(net, velocity, slope, pace)
        jax.block_until_ready(jax.tree_util.tree_leaves(velocity)[0])
        progress((epoch + 1) / len(rates))
    return net


@eqx.filter_jit
def _deformed(deform: Deformation, x: Array, key: PRNGKeyArray) -> Array:
    return deform(x, key=key)


def _slope(net: Any, x: Array, wanted: Array, key: PRNGKeyArray) -> Any:
    """Of the mean loss, piece by piece. Called from Python: in XLA's own loops convolutions run on
    one thread."""
    pieces = -(-len(x) // PIECE_IMAGES)
    cuts = [len(x) * number // pieces for number in range(pieces + 1)]
    total = jax.tree_util.tree_map(jnp.zeros_like, net)
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        part, own_key = slice(start, end), jax.random.fold_in(key, number)
        total = _more(net, total, x[part], wanted[part], jnp.float32(1 / len(x)), own_key)
    return total


@eqx.filter_jit
def _more(net: Any, so_far: Any, x: Array, wanted: Array, share: Array, key: PRNGKeyArray) -> Any:
    """What there is so far, and a piece's slope, each image counting by its share."""

    def loss(net: Any) -> Array:
        return -share * (wanted * jax.nn.log_softmax(net(x, key))).sum()

    return jax.tree_util.tree_map(jnp.add, so_far, jax.grad(loss)(net))


@eqx.filter_jit
def _update(net: Any, velocity: Any, slope: Any, pace: Array) -> tuple[Any, Any]:
    rate, momentum, decay = pace
    velocity = jax.tree_util.tree_map(
        lambda v, g, w: momentum * v + g + decay * w, velocity, slope, net
    )
    return jax.tree_util.tree_map(lambda w, v: w - rate * v, net, velocity), velocity


@eqx.filter_jit
def _logits(net: Any, x: Array) -> Array:
    return net(x, None)


def predicted_classes(net: Any, images: np.ndarray, *, chunk: int = 250) -> np.ndarray:
    """The class of the largest logit, for many standardised images, in chunks of one shape."""
    size = max(1, min(chunk, len(images)))
    return in_chunks(lambda some: _logits(net, jnp.asarray(some)).argmax(axis=1), images, size=size)


def image_task(
    images: np.ndarray, targets: np.ndarray, classes: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Pictures in [0, 1] and their target shares, checked against each other."""
    x, wanted = pixels(images), one_hot(targets, classes).astype(np.float32)
    if not len(x) == len(wanted) > 0:
        raise LimbeckError(f"Expected one target per image, got {len(wanted)} for {len(x)}.")
    return x, wanted


def pixels(images: np.ndarray) -> np.ndarray:
    """Pictures as float32 in [0, 1] with a channel axis."""
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise LimbeckError("Expected images of the form (rows, height, width, channels).")
    if images.dtype == np.uint8:
        return images / np.float32(255)
    return images.astype(np.float32)
