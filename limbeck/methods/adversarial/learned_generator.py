"""What methods have in common whose generator learns step by step, each step by a paid answer."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, fraction, positive
from ...nets import Generator, build_generator
from ...privacy import Asked, Histogram, Private, Question
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress, check_values_declared
from ..class_counts import COUNTS, class_weights
from ..source import trained_source

MOMENTUM = 0.5
"""Of the Adam of generators and discriminators, as GANs have it."""


@dataclass(frozen=True, kw_only=True)
class AbstractLearnedGenerator(AbstractMethod):
    """A generator of rows in noisy class proportions; those that derive from it say by which question it
    learns, and how."""

    family: ClassVar[str] = "adversarial"

    learning_rate: float = 1e-3
    """Step size of the generator's Adam."""
    code: int = 20
    """Latent numbers that the generator makes a row from."""
    hidden: tuple[int, ...] = (200,)
    """Widths of the generator's dense layers."""
    average: float = 0.9
    """Memory of the running mean of generators that is released; 0: the last one is."""
    count_share: float = 0.02
    """Share of the budget for the class counts."""

    def __post_init__(self) -> None:
        positive(learning_rate=self.learning_rate, code=self.code, hidden=len(self.hidden))
        positive(**{f"hidden[{i}]": w for i, w in enumerate(self.hidden)})
        fraction(count_share=self.count_share)
        if not 0 <= self.average < 1:
            raise LimbeckError(f"Expected 0 <= average < 1, got {self.average}.")

    @abc.abstractmethod
    def lesson(self, schema: Schema) -> Question:
        """The question that every step asks."""

    @abc.abstractmethod
    def learned(
        self, private: Private, generator: Generator, weights: np.ndarray, key: Array
    ) -> Generator:
        """The generator after all steps.

        Args:
            private: Answers the question.
            generator: A fresh one.
            weights: Noisy shares of the classes.
            key: For codes, labels and what else is drawn in public.
        """

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=self.lesson(schema), share=1 - self.count_share),
        ]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        counts = private.ask(COUNTS).values
        weights, size = class_weights(counts)
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        build_key, learn_key, norm_key = jax.random.split(jax.random.key(seed), 3)
        generator = build_generator(schema, settings, key=build_key)
        generator = self.learned(private, generator, np.asarray(weights), learn_key)
        return Product(
            source=trained_source(generator, settings, weights, key=norm_key),
            rows=schema.rows or max(1, round(size)),
            measurements={COUNTS: counts},
        )
