"""PSG: private set generation by matched gradients (Chen, Kerkouche and Fritz 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, choice, fraction, positive
from ...nets import FlatNetwork
from ...privacy import Asked, Histogram, PlainGradients, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress
from ..batches import batch_gradients
from ..class_counts import COUNTS, class_weights
from ..source import Distilled
from .matched_set import OPTIMISERS, MatchedSet

GRADIENT = "network's gradient"
"""Name of the question that every step asks."""
ROWS_AT_ONCE = 16
"""Rows whose gradients are made at once: with more, what layers hand to each other outgrows the cache."""


@dataclass(frozen=True, kw_only=True)
class PSG(AbstractMethod):
    """A few images per class whose network gradients are those of the rows, along the training of networks.

    Privacy:
        Each step measures the sum of a ConvNet's gradients over a Poisson batch, every row's clipped to
        norm `clip`, under add/remove of one row, with discrete Gaussian noise. Networks start from the
        public seed and learn from the images alone. Events: Poisson-sampled Gaussians, networks x moments
        x batches of them, as many as are carried out, and one Gaussian for the class counts. The
        published code carries out one round more than it charges.
    """

    name: ClassVar[str] = "psg"
    good_for: ClassVar[str] = "a yardstick: a small set for networks, by noisy gradients"
    data_kinds: ClassVar[tuple[str, ...]] = ("images",)
    fixed_size: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = False
    papers: ClassVar[tuple[str, ...]] = (
        "D. Chen, R. Kerkouche, M. Fritz. Private Set Generation with Discriminative Information. "
        "NeurIPS 2022.",
    )

    per_class: int = 10
    """Images to learn for each class."""
    networks: int = 40
    """Fresh networks, one after the other."""
    moments: int = 5
    """Points of each network's training at which gradients are measured: before it learns, and so on."""
    batches: int = 1
    """Batches measured at each of them, and paid for."""
    batch: int = 1000
    """Rows that a step draws, on average."""
    clip: float = 0.1
    """Largest norm of a row's gradient."""
    filters: int = 32
    """Filters of each layer of the networks. Noise grows with them."""
    inner: int = 20
    """Steps of a network's training on the images between two points."""
    inner_rate: float = 0.01
    """Learning rate of these."""
    updates: int = 10
    """Updates of the images after each measurement, one by it and the others by earlier ones: free."""
    optimiser: str = "adam"
    """Of the images: adam, or sgd with momentum 0.5, as published."""
    learning_rate: float = 0.02
    """Step size of the images, for pixels in [0, 1]."""
    count_share: float = 0.02
    """Share of the budget for the class counts, by which the loss weighs classes."""

    def __post_init__(self) -> None:
        positive(per_class=self.per_class, networks=self.networks, moments=self.moments)
        positive(batches=self.batches, batch=self.batch, clip=self.clip, filters=self.filters)
        positive(inner=self.inner, inner_rate=self.inner_rate, updates=self.updates)
        positive(learning_rate=self.learning_rate)
        choice(optimiser=(self.optimiser, OPTIMISERS))
        fraction(count_share=self.count_share)

    def network(self, schema: Schema) -> FlatNetwork:
        """The network whose gradients are matched; refuses what cannot be served."""
        if schema.image is None or len(schema.classes) < 2:
            raise LimbeckError(f"{self.name} is for images with labels of two classes or more.")
        return FlatNetwork(
            shape=schema.image.shape, classes=len(schema.classes), filters=self.filters
        )

    def questions(self, schema: Schema) -> list[Asked]:
        gradient = batch_gradients(
            self.name,
            schema,
            name=GRADIENT,
            batch=self.batch,
            clip=self.clip,
            size=self.network(schema).size,
            count=self.networks * self.moments * self.batches,
        )
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        network, classes = self.network(schema), len(schema.classes)
        counts = private.ask(COUNTS).values
        weights, _ = class_weights(counts)
        start_key, play_key = jax.random.split(jax.random.key(seed))
        learned = MatchedSet(
            network=network,
            labels=np.repeat(np.arange(classes), self.per_class),
            class_weights=weights,
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            updates=self.updates,
            key=start_key,
        )
        self._match(private, learned, play_key)
        return Product(
            source=Distilled(slots=learned.slots(), labels=learned.labels),
            rows=len(learned.labels),
            measurements={COUNTS: counts},
        )

    def _match(self, private: Private, learned: MatchedSet, key: Array) -> None:
        """Measure and match, network after network."""
        gradients = PlainGradients(loss=learned.network.row_loss, chunk=ROWS_AT_ONCE)
        with private.steps(GRADIENT, gradients) as ask:
            for own_key in jax.random.split(key, self.networks):
                numbers = learned.network.start(own_key)
                for moment in range(self.moments):
                    if moment:
                        numbers = learned.teach(numbers, self.inner, self.inner_rate)
                    for _ in range(self.batches):
                        (noisy,) = ask({"parameters": np.asarray(numbers)})
                        learned.match(numbers, noisy.values)
