"""Random Fourier features of the Gaussian kernel (Rahimi and Recht 2007), of norm exactly one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..arrays import AnyArray
from ..draws import normal
from ..errors import LimbeckError, positive
from ..schema import Category, Schema


class Fourier(eqx.Module):
    """phi(x) = (cos Wx, sin Wx) / sqrt(size / 2), frequencies W drawn once.

    Several length scales share the features evenly, so one release holds several kernels at no
    further cost. A slot's weight stretches its axis: twice the weight is half the length scale.

    >>> import jax
    >>> phi = Fourier(slots=3, size=8, length_scales=(1.0,), key=jax.random.key(0))
    >>> phi(jnp.ones((5, 3))).shape
    (5, 8)
    """

    frequencies: Float[Array, "slots half"]
    norm_bound: float = eqx.field(static=True, default=1.0)

    def __init__(
        self,
        *,
        slots: int,
        size: int,
        length_scales: Sequence[float],
        slot_weights: Sequence[float] | None = None,
        key: PRNGKeyArray,
    ) -> None:
        positive(features=size)
        positive(**{f"length_scales[{i}]": s for i, s in enumerate(length_scales)})
        half = size // 2
        if size % 2:
            raise LimbeckError(
                f"Expected an even number of features (sines and cosines), got {size}."
            )
        widths = jnp.resize(jnp.asarray(length_scales, jnp.float32), (half,))
        weights = jnp.ones(slots) if slot_weights is None else jnp.asarray(slot_weights)
        self.frequencies = weights[:, None] * normal(key, (slots, half)) / widths
        self.norm_bound = 1.0

    @property
    def size(self) -> int:
        return 2 * self.frequencies.shape[1]

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        angles = rows @ self.frequencies
        both = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return both / jnp.sqrt(jnp.float32(self.frequencies.shape[1]))


class Heterogeneous(eqx.Module):
    """Fourier features of numbers, and beside them indicators of categories over the root of their
    number: as in DP-MERF's paper, each part of norm 1, so the root of 2 together.

    >>> import jax
    >>> some = Fourier(slots=1, size=4, length_scales=(1.0,), key=jax.random.key(0))
    >>> phi = Heterogeneous(fourier=some, numbers=(0,), codes=(1, 2, 3, 4), categories=2)
    >>> phi(jnp.array([[0.3, 1.0, 0.0, 0.0, 1.0]])).shape, round(phi.norm_bound, 4)
    ((1, 8), 1.4142)
    """

    fourier: Fourier | None
    numbers: tuple[int, ...] = eqx.field(static=True)
    """Slots of numbers and of their gaps."""
    codes: tuple[int, ...] = eqx.field(static=True)
    """Slots of categories."""
    categories: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        return (self.fourier.size if self.fourier else 0) + len(self.codes)

    @property
    def norm_bound(self) -> float:
        return math.sqrt((self.fourier is not None) + (self.categories > 0))

    def __call__(self, rows: Float[AnyArray, "rows slots"]) -> Float[Array, "rows size"]:
        parts: list[AnyArray] = []
        if self.fourier is not None:
            parts.append(self.fourier(rows[:, np.asarray(self.numbers)]))
        if self.categories:
            root = jnp.sqrt(jnp.float32(self.categories))
            parts.append(rows[:, np.asarray(self.codes)] / root)
        return jnp.concatenate(parts, axis=1)


def default_length_scales(schema: Schema, embedding: str = "joint") -> tuple[float, ...]:
    """Length scales from the declaration alone: a distance that two rows may well have."""
    if schema.image:
        # Two images far apart (for 28 x 28 about the paper's 10 to 11), and nearer ones.
        wide = float(np.sqrt(schema.slots * 0.15))
        return wide / 4, wide / 2, wide
    categories = sum(isinstance(c, Category) for c in schema.inputs)
    numbers = len(schema.inputs) - categories
    if embedding == "heterogeneous":
        categories = 0
    # Two rows that differ in half their categories, and in numbers by a quarter of the range.
    wide = float(np.sqrt(categories + numbers / 16)) or 1.0
    return wide / 2, wide
