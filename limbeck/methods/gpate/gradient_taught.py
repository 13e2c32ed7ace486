"""Generators that follow what teachers say their rows' gradients are: G-PATE and what derives from it."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...draws import normal
from ...errors import positive
from ...nets import Generator
from ...privacy import Faculty, Private, Question
from ...schema import Schema
from .critic import Aggregator, GradientCritic
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

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(generator_steps=self.generator_steps)

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
        phi = self.seen_features(schema, seed)
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
