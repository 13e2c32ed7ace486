"""NDPDC: private dataset condensation by matched distributions (Zheng and Li 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...errors import LimbeckError, fraction, positive
from ...features import Views, output_size
from ...nets import fit
from ...privacy import Asked, Histogram, Measurement, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from ..class_counts import COUNTS, class_means
from ..source import Distilled
from ..tiles import check_tiles, packed, unpacked

IMAGES, VIEWS = "class means", "class means in views"
"""Names of the questions for sums of pixels and of views' features."""
COUNT_SHARE = 0.02
"""Share of the budget for the number of rows of each class."""
START_SPREAD = 0.1
"""Standard deviation of the noise by which the pictures of a class differ at the start."""


@dataclass(frozen=True, kw_only=True)
class NDPDC(AbstractMeasureOnce):
    """A few images per class whose means in random networks are those of the rows.

    Privacy:
        Measures class counts (a row changes one by 1), per-class sums of pixels around grey (half
        the root of their number) and per-class sums of what the views see (norm 1), under add/remove of one
        row, with discrete Gaussian noise calibrated jointly. Events: three Gaussians. The published
        algorithm draws a new network and new rows in each of its steps; here networks are drawn beforehand and
        measured once on all rows, which as one Gaussian costs no more than step after step.
    """

    name: ClassVar[str] = "ndpdc"
    good_for: ClassVar[str] = "labelled images: a small set for networks, colour above all"
    data_kinds: ClassVar[tuple[str, ...]] = ("images",)
    fixed_size: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = False
    papers: ClassVar[tuple[str, ...]] = (
        "T. Zheng, B. Li. Differentially Private Dataset Condensation. 2023.",
    )
    free: ClassVar[frozenset[str]] = frozenset({"per_class", "tiles", "steps", "learning_rate"})

    per_class: int = 10
    """Images to learn for each class. Free."""
    tiles: int = 1
    """Pictures that an image holds along either side: with 2, four small ones, which are released at full size.
    Free."""
    views: int = 20
    """Number of random networks, each of which sees all pictures changed in a way of its own."""
    filters: int = 32
    """Filters of each layer of these networks."""
    start_share: float = 0.05
    """Share of the budget for the class means that the images start from."""
    steps: int = 1000
    """Updates of the images, each of which looks at one view. Free."""
    learning_rate: float = 0.02
    """Step size of their Adam, for pixels in [0, 1]. Free."""

    def __post_init__(self) -> None:
        positive(per_class=self.per_class, tiles=self.tiles, views=self.views)
        positive(filters=self.filters, steps=self.steps, learning_rate=self.learning_rate)
        fraction(start_share=self.start_share)

    def questions(self, schema: Schema) -> list[Asked]:
        classes = len(schema.classes)
        size = self.views * output_size(self._shape(schema), self.filters)
        bound = math.sqrt(schema.slots) / 2
        images = Sum(name=IMAGES, bound=bound, size=schema.slots, groups=classes)
        means = Sum(name=VIEWS, bound=1.0, size=size, groups=classes)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=COUNT_SHARE),
            Asked(question=images, share=self.start_share),
            Asked(question=means, share=1 - COUNT_SHARE - self.start_share),
        ]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        counts = private.ask(COUNTS)
        images = private.ask(IMAGES, self.map_spec("around_grey", seed))
        means = private.ask(VIEWS, self.map_spec("looking", seed))
        return {COUNTS: counts, IMAGES: images, VIEWS: means}

    def around_grey(self, schema: Schema, seed: int) -> AroundGrey:
        """The map of the first question."""
        return AroundGrey(schema.slots)

    def looking(self, schema: Schema, seed: int) -> Views:
        """The map of the second: the views that the seed draws."""
        key = jax.random.fold_in(jax.random.key(seed), 1)
        return Views(shape=self._shape(schema), views=self.views, width=self.filters, key=key)

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        shape, values = self._shape(schema), values_of(measured)
        greys, _ = class_means(values[COUNTS], values[IMAGES])
        means, weights = class_means(values[COUNTS], values[VIEWS])
        views, classes = self.looking(schema, seed), len(weights)
        start_key, fit_key = jax.random.split(jax.random.key(seed))
        targets = math.sqrt(self.views) * means.reshape(classes, self.views, -1).swapaxes(0, 1)
        learned = fit(
            StoredImages(
                _start(0.5 + greys, self.per_class, self.tiles, shape, start_key), shape, self.tiles
            ),
            _distance,
            data=(views, targets),
            steps=self.steps,
            learning_rate=self.learning_rate,
            key=fit_key,
            progress=lambda done: progress("images", done),
        )
        each = self.per_class * self.tiles**2
        stored = np.asarray(jnp.clip(learned.slots, 0, 1))
        return Product(
            source=Distilled(
                slots=np.asarray(learned.pictures()),
                labels=np.repeat(np.arange(classes), each),
                stored=stored if self.tiles > 1 else None,
            ),
            rows=classes * each,
            measurements=values,
        )

    def _shape(self, schema: Schema) -> tuple[int, int, int]:
        """The images' shape; refuses what cannot be served."""
        if schema.image is None or len(schema.classes) < 2:
            raise LimbeckError(f"{self.name} is for images with labels of two classes or more.")
        check_tiles(schema.image.shape, self.tiles)
        return schema.image.shape


class AroundGrey(eqx.Module):
    """Pixels as distances from middle grey, which halves what a row can weigh."""

    size: int = eqx.field(static=True)

    @property
    def norm_bound(self) -> float:
        return math.sqrt(self.size) / 2

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows slots"]:
        return rows - 0.5


class StoredImages(eqx.Module):
    """The images that are learned, class after class, as many of each."""

    slots: Float[Array, "images slots"]
    shape: tuple[int, int, int] = eqx.field(static=True)
    tiles: int = eqx.field(static=True)

    def pictures(self) -> Float[Array, "pictures slots"]:
        """What they show, in [0, 1]; derivatives as if pixels were free, so that none gets stuck."""
        kept = self.slots + jax.lax.stop_gradient(jnp.clip(self.slots, 0.0, 1.0) - self.slots)
        return unpacked(kept, self.shape, self.tiles)


def _start(
    means: Float[Array, "classes slots"],
    per_class: int,
    tiles: int,
    shape: tuple[int, int, int],
    key: Array,
) -> Float[Array, "images slots"]:
    """Class means, with noise by which the images of a class differ; small ones where images hold several."""
    images = packed(jnp.repeat(means, per_class * tiles**2, axis=0), shape, tiles)
    return jnp.clip(images + START_SPREAD * jax.random.normal(key, images.shape), 0.0, 1.0)


def _distance(images: StoredImages, key: Array, data: Any) -> Array:
    """Squared distance of the set's class means from the measured ones, in a view drawn by the key."""
    views, targets = data
    number = jax.random.randint(key, (), 0, len(targets))
    seen = views.look(images.pictures(), number)
    classes, part = targets.shape[1:]
    own_means = seen.reshape(classes, -1, part).mean(axis=1)
    return ((own_means - targets[number]) ** 2).sum()
