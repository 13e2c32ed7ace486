"""Generators that follow what teachers say their rows' gradients are: G-PATE and what derives from it."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...draws import normal
from ...errors import LimbeckError, fraction, positive
from ...features import Places
from ...nets import Generator, TableGenerator
from ...privacy import Asked, Faculty, Private, Question, Sum
from ...schema import Schema
from ..mean_embedding.spreads import SPREADS, NumbersAndSquares
from .critic import Aggregator, GradientCritic
from .ranges import InRanges, ranges_from
from .student import Student
from .taught import AbstractTaught


@dataclass(frozen=True, kw_only=True)
class AbstractGradientTaught(AbstractTaught):
    """Teachers say how each generated row should change; an aggregator says in which form, and what is
    made of the noisy tally."""

    generator_steps: int = 3
    """Steps of the generator after each answer; more of them follow it further, at no cost."""
    cooling: bool = False
    """Whether the generator's rate falls to nothing along half a cosine."""
    spread_share: float = 0.0
    """Share of the budget for means and spreads of a table's numbers: teachers see rows, and the generator makes
    them, in ranges about where they really lie. Worth it where declared ranges are far wider than that."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(generator_steps=self.generator_steps)
        if self.spread_share:
            fraction(spread_share=self.spread_share)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.spread_share and (schema.image or self._viewed(schema) != "rows"):
            raise LimbeckError(
                "Means and spreads (spread_share) are for tables whose rows teachers see as they are; "
                "choose spread_share = 0."
            )

    def questions(self, schema: Schema) -> list[Asked]:
        *counts, votes = super().questions(schema)
        if not self.spread_share:
            return [*counts, votes]
        features = self.spread_map(schema, 0)
        spreads = Sum.of_features(SPREADS, features, schema, by="all")
        return [
            *counts,
            Asked(question=spreads, share=self.spread_share),
            Asked(question=votes.question, share=1 - self.spread_share),
        ]

    def spread_map(self, schema: Schema, seed: int) -> NumbersAndSquares:
        """What is measured for means and spreads."""
        return NumbersAndSquares(Places(schema))

    def measured_ranges(
        self, private: Private, counts: np.ndarray, seed: int
    ) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
        if not self.spread_share:
            return {}, {}
        schema = private.schema
        if not self.count_epsilon:  # only the declared number of rows is known then
            counts = np.full(len(schema.classes), (schema.rows or 1) / len(schema.classes))
        sums = private.ask(SPREADS, self.map_spec("spread_map", seed)).values
        return ranges_from(schema, np.ravel(sums), counts), {SPREADS: sums}

    @abc.abstractmethod
    def aggregator(self, schema: Schema) -> Aggregator:
        """What makes one gradient of those of all teachers."""

    def ballot(self, schema: Schema) -> Question:
        return self.aggregator(schema).ballot

    def asked_points(self, schema: Schema) -> int:
        """How many rows teachers are asked about at once; where they are linear, how many classes."""
        return len(schema.classes) if self.linear else self.points

    def points_each(self, schema: Schema) -> int:
        """Points that one teacher answers about; 0: all."""
        if not self.classes_apart(schema):
            return 0
        return 1 if self.linear else math.ceil(self.points / len(schema.classes))

    def critic(self, schema: Schema, seed: int, of_class: tuple[int, ...] = ()) -> GradientCritic:
        """What each teacher does; some see the rows of one class alone."""
        return GradientCritic(
            aggregator=self.aggregator(schema), **self.critic_settings(schema, seed, of_class)
        )

    def student(self) -> Student:
        """How the generator learns from the teachers' noisy answers."""
        return Student(
            points=self.points,
            by_class=self.linear,
            code=self.code,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            cooling=self.cooling,
            steps=self.updates * self.generator_steps,
            average=self.average,
        )

    def taught(
        self,
        private: Private,
        generator: Generator,
        of_class: tuple[int, ...],
        *,
        seed: int,
        key: jax.Array,
    ) -> Generator:
        schema, student = private.schema, self.student()
        aggregator = self.aggregator(schema)
        phi: Any = self.seen_features(schema, seed)
        if isinstance(generator, TableGenerator) and generator.low:
            phi = InRanges(generator.low, generator.wide)
        state, mean = student.start(generator), generator
        teachers = Faculty(self.critic(schema, seed, of_class), phi, of_class)
        answering = np.asarray(of_class or (self.teachers,) * len(schema.classes))
        with private.steps(aggregator.ballot.name, teachers) as ask:
            for now in jax.random.split(key, self.updates):
                codes, asked = student.consultation(aggregator, generator, phi, now)
                tallies = [answer.values for answer in ask({"question": asked})]
                directions: Any = aggregator.restore(
                    tallies, asked.draws, answering[np.asarray(asked.asked_labels)]
                )
                directions = directions[asked.labels] if self.linear else directions
                for step in range(self.generator_steps):
                    if self.linear and step:  # what holds for a class holds for other rows of it
                        codes = normal(jax.random.fold_in(now, step), codes.shape)
                    generator, state = student.moved(
                        generator, state, phi, codes, asked.labels, directions
                    )
                mean = student.averaged(mean, generator) if self.average else generator
        return mean
