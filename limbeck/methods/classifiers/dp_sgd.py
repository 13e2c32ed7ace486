"""DP-SGD: a network trained by clipped, noisy gradients over Poisson batches (Abadi et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from ...errors import LimbeckError, positive, unless_auto
from ...nets import AbstractFlatClassifier
from ...privacy import Asked, PlainGradients, Private
from ...schema import Schema
from ..base import Product, Progress, check_values_declared
from ..batches import batch_gradients, descended, modest_batch
from ..part import Auto
from .classifier import GRADIENT, AbstractClassifier
from .trained import SeeingNetwork, TrainedModel, flat_network

IMAGES_AT_ONCE, ROWS_AT_ONCE = 16, 256
"""Rows whose gradients are made at once: with more images, what layers hand to each other outgrows the cache."""

IMAGE_CLIP, TABLE_CLIP = 0.1, 1.0
IMAGE_RATE, DENSE_RATE, LINEAR_RATE = 0.003, 0.03, 0.3
"""Step sizes of Adam for ConvNets, dense layers and linear models. Adam's steps are of that size whatever the gradients'
norm, so what they have to be follows from the network: in 300 of 0.003 a table's comes no further than always to name the
larger class."""


@dataclass(frozen=True, kw_only=True)
class DPSGD(AbstractClassifier):
    """A network trained by noisy gradients of the rows: a ConvNet for images, a linear model or dense layers for tables.

    Privacy:
        Each step measures the sum of the loss's gradients over a Poisson batch, every row's clipped to
        norm `clip`, under add/remove of one row, with discrete Gaussian noise, and divides it by the
        batch's public size. Events: Poisson-sampled Gaussians, as many as there are steps.
    """

    name: ClassVar[str] = "dp-sgd"
    version: ClassVar[int] = 2
    good_for: ClassVar[str] = (
        "a classifier and no data set: the field's usual one; of tables a linear model, in seconds"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "M. Abadi et al. Deep Learning with Differential Privacy. CCS 2016.",
        "S. De, L. Berrada, J. Hayes, S. L. Smith, B. Balle. Unlocking High-Accuracy Differentially "
        "Private Image Classification through Scale. 2022.",
    )

    steps: int = 300
    """Steps, each of which is paid for."""
    batch: int = 2000
    """Rows that a step draws, on average; a tenth of the declared rows at most."""
    clip: float | Auto = "auto"
    """Largest norm of a row's gradient. "auto": 1 for tables; 0.1 for images, below the usual norms, so that every row
    counts alike."""
    learning_rate: float | Auto = "auto"
    """Step size of Adam; it falls to zero along half a cosine. "auto": for tables 0.3, with hidden layers 0.03; for images
    0.003."""
    filters: int = 16
    """Filters of each layer of the ConvNet, for images. Noise grows with them."""
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers, for tables; none: a linear model, which noise leaves most of."""
    average: float = 0.95
    """Memory of the running mean of networks that is released; 0: the last one is."""

    def __post_init__(self) -> None:
        positive(
            steps=self.steps,
            batch=self.batch,
            filters=self.filters,
            **{f"hidden[{i}]": w for i, w in enumerate(self.hidden)},
        )
        for name, value in (("clip", self.clip), ("learning_rate", self.learning_rate)):
            given = unless_auto(**{name: value})
            positive(**{} if given is None else {name: given})
        if not 0 <= self.average < 1:
            raise LimbeckError(f"Expected 0 <= average < 1, got {self.average}.")

    def most_norm(self, schema: Schema) -> float:
        """Largest norm of a row's gradient."""
        given = unless_auto(clip=self.clip)
        return (IMAGE_CLIP if schema.image else TABLE_CLIP) if given is None else given

    def rate(self, schema: Schema) -> float:
        """Step size of the first step."""
        given = unless_auto(learning_rate=self.learning_rate)
        if given is not None:
            return given
        return IMAGE_RATE if schema.image else DENSE_RATE if self.hidden else LINEAR_RATE

    def network(self, schema: Schema) -> AbstractFlatClassifier:
        """The network that learns."""
        return flat_network(schema, filters=self.filters, hidden=self.hidden)

    def questions(self, schema: Schema) -> list[Asked]:
        self.check_label(schema)
        check_values_declared(self.name, schema)
        gradient = batch_gradients(
            self.name,
            schema,
            name=GRADIENT,
            batch=modest_batch(self.batch, schema),
            clip=self.most_norm(schema),
            size=self.network(schema).size,
            count=self.steps,
        )
        return [Asked(question=gradient, share=1.0)]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        described = self.network(schema)
        at_once = IMAGES_AT_ONCE if schema.image else ROWS_AT_ONCE
        numbers = descended(
            private,
            GRADIENT,
            PlainGradients(loss=described.row_loss, chunk=at_once),
            described.start(jax.random.key(seed)),
            unit=self.most_norm(schema) * modest_batch(self.batch, schema),
            learning_rate=self.rate(schema),
            average=self.average,
        )
        network = SeeingNetwork(described.shaped(numbers), described)
        facts = {"kind": "network", "filters": self.filters, "hidden": list(self.hidden)}
        return Product(source=TrainedModel(network=network, facts=facts))
