"""DPDM: a diffusion model trained by noisy gradients (Dockhorn, Cao, Vahdat and Kreis 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from ...errors import LimbeckError, fraction, positive
from ...privacy import Asked, Histogram, PlainGradients, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress
from ..batches import batch_gradients, descended, modest_batch
from ..class_counts import COUNTS, class_weights
from .diffused import Diffused
from .flat_denoiser import FlatDenoiser

GRADIENT = "denoiser's gradient"
"""Name of the question that every step asks."""
ROWS_AT_ONCE = 16
"""Rows whose gradients are made at once: with more, what layers hand to each other outgrows the cache."""


@dataclass(frozen=True, kw_only=True)
class DPDM(AbstractMethod):
    """A network that takes noise from images, told their class; images are drawn by denoising pure noise.

    Privacy:
        Each step measures the sum of the denoising loss's gradients over a Poisson batch under add/remove of
        one row, with discrete Gaussian noise. An image is made noisy `draws` times, and the gradient of their
        mean loss is clipped to norm `clip`: one clipped vector a row, however many draws. Which noise it is
        follows from the public seed, the step and the row alone. Events: Poisson-sampled Gaussians, as many as there
        are steps, and one Gaussian for the class counts.
    """

    name: ClassVar[str] = "dpdm"
    good_for: ClassVar[str] = "a yardstick: a private diffusion model, with much data and time"
    data_kinds: ClassVar[tuple[str, ...]] = ("images",)
    takes_targets: ClassVar[bool] = False
    papers: ClassVar[tuple[str, ...]] = (
        "T. Dockhorn, T. Cao, A. Vahdat, K. Kreis. Differentially Private Diffusion Models. TMLR 2023.",
        "T. Karras, M. Aittala, T. Aila, S. Laine. Elucidating the Design Space of Diffusion-Based "
        "Generative Models. NeurIPS 2022.",
    )

    steps: int = 400
    """Steps of the denoiser, each of which is paid for."""
    batch: int = 500
    """Rows that a step draws, on average; a tenth of the declared rows at most."""
    draws: int = 4
    """How often an image is made noisy in a step, at no cost of privacy."""
    clip: float = 1.0
    """Largest norm of a row's gradient."""
    width: int = 12
    """Channels of the denoiser at half the size of the image; twice as many at a quarter of it."""
    depth: int = 1
    """Blocks of the denoiser at each size."""
    noise_mean: float = 0.0
    """Mean of the logarithm of the noise's standard deviation, for pixels in [-1, 1]."""
    noise_spread: float = 1.2
    """Standard deviation of that logarithm."""
    learning_rate: float = 0.01
    """Step size of Adam; it falls to zero along half a cosine."""
    average: float = 0.95
    """Memory of the running mean of denoisers that is released; 0: the last one is."""
    sampler_steps: int = 18
    """Steps from pure noise to an image; each asks the denoiser twice."""
    count_share: float = 0.02
    """Share of the budget for the class counts."""

    def __post_init__(self) -> None:
        positive(steps=self.steps, batch=self.batch, draws=self.draws, clip=self.clip)
        positive(width=self.width, depth=self.depth, noise_spread=self.noise_spread)
        positive(learning_rate=self.learning_rate)
        fraction(count_share=self.count_share)
        if self.sampler_steps < 2:
            raise LimbeckError(f"Expected sampler_steps >= 2, got {self.sampler_steps}.")
        if not np.isfinite(self.noise_mean):
            raise LimbeckError(f"Expected a finite noise_mean, got {self.noise_mean}.")
        if not 0 <= self.average < 1:
            raise LimbeckError(f"Expected 0 <= average < 1, got {self.average}.")

    def denoiser(self, schema: Schema, seed: int) -> FlatDenoiser:
        """The network that learns; refuses what is no image."""
        if schema.image is None:
            raise LimbeckError(f"{self.name} is for images; this schema declares a table.")
        return FlatDenoiser(
            shape=schema.image.shape,
            classes=len(schema.classes),
            width=self.width,
            depth=self.depth,
            draws=self.draws,
            noise_mean=self.noise_mean,
            noise_spread=self.noise_spread,
            seed=seed,
        )

    def questions(self, schema: Schema) -> list[Asked]:
        gradient = batch_gradients(
            self.name,
            schema,
            name=GRADIENT,
            batch=modest_batch(self.batch, schema),
            clip=self.clip,
            size=self.denoiser(schema, 0).size + 1,
            count=self.steps,
        )
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=gradient, share=1 - self.count_share),
        ]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        counts = private.ask(COUNTS).values
        weights, size = class_weights(counts)
        flat = self.denoiser(schema, seed)
        numbers = descended(
            private,
            GRADIENT,
            PlainGradients(loss=flat.row_loss, chunk=ROWS_AT_ONCE),
            flat.start(jax.random.key(seed)),
            unit=self.clip * modest_batch(self.batch, schema),
            learning_rate=self.learning_rate,
            average=self.average,
            given=flat.given,
        )
        settings: dict[str, Any] = {
            "width": self.width,
            "depth": self.depth,
            "sampler_steps": self.sampler_steps,
        }
        source = Diffused(denoiser=flat.shaped(numbers), settings=settings, class_weights=weights)
        return Product(
            source=source,
            rows=schema.rows or max(1, round(size)),
            measurements={COUNTS: counts},
        )
