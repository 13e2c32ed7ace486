"""PATE-GAN: teachers' noisy verdicts teach a student, which teaches the generator (Jordon et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import LimbeckError, choice, not_negative, positive
from ...nets import Generator
from ...privacy import Faculty, Private, Votes
from ...schema import Schema
from ..gpate.critic import Consultation
from ..gpate.student import Student
from ..gpate.taught import AbstractTaught
from .apprentice import Apprentice, Lessons, share_real
from .judge import Judge
from .variety import varied_rows

QUESTION = "teachers' verdicts"
"""Name of the question that every update asks."""
VERDICTS = ("majority", "shares", "ranks")


@dataclass(frozen=True, kw_only=True)
class PATEGAN(AbstractTaught):
    """A generator taught by a student discriminator, which knows real rows only by what many teachers say
    about generated ones.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a teacher, a discriminator,
        whose state stays inside. In every update all teachers vote on generated rows, real or
        not: a record changes one teacher's votes, so the counts move by sqrt(2 rows), or sqrt(2 rows of its
        class) where classes have teachers of their own (L2), under add/remove of one row, with discrete Gaussian
        noise, where the paper has Laplace's. Events: one Gaussian per update, the number of which is
        fixed beforehand; and the class counts, by the discrete Laplace mechanism with `count_epsilon`, unless
        that is 0. The price does not depend on the votes, as the paper's does.
    """

    name: ClassVar[str] = "pate-gan"
    good_for: ClassVar[str] = (
        "a yardstick: teachers' noisy verdicts on generated rows teach a student"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "J. Jordon, J. Yoon, M. van der Schaar. PATE-GAN: Generating Synthetic Data with Differential "
        "Privacy Guarantees. ICLR 2019.",
        "G. Ganev, M. S. M. S. Annamalai, E. De Cristofaro. The Elusive Pursuit of Replicating PATE-GAN: "
        "Benchmarking, Auditing, Debugging. 2024.",
    )

    points: int = 100
    """Generated rows that teachers are asked about at once."""
    verdicts: str = "ranks"
    """What the student learns of a row: which of its two noisy numbers of votes is larger, as in the paper
    (majority); or, limbeck's own and at the same price, to what share of the teachers it looks real (shares), or looks
    more real than half of the rows of its class that they are asked about (ranks)."""
    variety: float = 0.3
    """Teachers are asked about rows of changed copies of the generator: standard deviation of the change, in
    units of the size of its weights. The paper's: 0, rows are the generator's own."""
    remembered: int = 10
    """Answered questions that the student learns from at a time; the paper's: 1."""
    student_hidden: tuple[int, ...] = (64,)
    """Widths of the student's hidden layers."""
    student_rate: float = 2e-3
    """Step size of the student's Adam."""
    student_decay: float = 0.01
    """Share of its weights that the student forgets in a step."""
    student_steps: int = 10
    """Steps of the student after each answer, at no cost."""
    generator_steps: int = 5
    """Steps of the generator after each answer, at no cost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(
            remembered=self.remembered,
            student_rate=self.student_rate,
            student_steps=self.student_steps,
            generator_steps=self.generator_steps,
            **{f"student_hidden[{i}]": w for i, w in enumerate(self.student_hidden)},
        )
        not_negative(variety=self.variety)
        choice(verdicts=(self.verdicts, VERDICTS))
        if not 0 <= self.student_decay < 1:
            raise LimbeckError(f"Expected 0 <= student_decay < 1, got {self.student_decay}.")

    def ballot(self, schema: Schema) -> Votes:
        apart = self.classes_apart(schema)
        most = math.ceil(self.points / len(schema.classes)) if apart else 0
        return Votes(name=QUESTION, coordinates=self.points, bins=2, count=self.updates, most=most)

    def judge(self, schema: Schema, seed: int, of_class: tuple[int, ...] = ()) -> Judge:
        """What each teacher does; some see the rows of one class alone."""
        ranks = self.verdicts == "ranks"
        return Judge(ranks=ranks, **self.critic_settings(schema, seed, of_class))

    def apprentice(self, schema: Schema) -> Apprentice:
        """The student, which sees rows as teachers do."""
        network = replace(self.discriminator(schema), kind="per-class", hidden=self.student_hidden)
        return Apprentice(
            network=network, learning_rate=self.student_rate, decay=self.student_decay
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
        schema, apprentice = private.schema, self.apprentice(private.schema)
        phi, follower = self.seen_features(schema, seed), self._follower()
        state, mean = follower.start(generator), generator
        discriminator, learning = apprentice.start(jax.random.fold_in(key, 1))
        lessons = Lessons(self.remembered, self.points, self.seen_width(schema))
        teachers = Faculty(self.judge(schema, seed, of_class), phi, of_class)
        variety = jnp.float32(self.variety)
        answering = np.asarray(of_class or (self.teachers,) * len(schema.classes))
        with private.steps(QUESTION, teachers) as ask:
            for now in jax.random.split(key, self.updates):
                keys = jax.random.split(now, 5 + self.generator_steps)
                _, known, learned_from = follower.generated(generator, phi, *keys[:2])
                codes, labels, rows = follower.generated(generator, phi, *keys[2:4])
                if self.variety:
                    rows = varied_rows(generator, phi, codes, labels, variety, keys[4])
                votes = ask({"question": Consultation(learned_from, known, rows, labels, None)})
                real = share_real(votes[0].values, answering[np.asarray(labels)])
                lessons.note(rows, labels, real > 0.5 if self.verdicts == "majority" else real)
                for _ in range(self.student_steps):
                    discriminator, learning = apprentice.learned(
                        discriminator, learning, *lessons.flat()
                    )
                for step_key in keys[5:]:
                    code_key, label_key = jax.random.split(step_key)
                    codes, labels, rows = follower.generated(generator, phi, code_key, label_key)
                    directions = apprentice.directions(discriminator, rows, labels)
                    generator, state = follower.moved(
                        generator, state, phi, codes, labels, directions
                    )
                mean = follower.averaged(mean, generator) if self.average else generator
        return mean

    def _follower(self) -> Student:
        """How the generator follows the student discriminator."""
        return Student(
            points=self.points,
            by_class=False,
            code=self.code,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            cooling=False,
            steps=self.updates * self.generator_steps,
            average=self.average,
        )
