"""G-PATE: a generator taught by the noisy answers of many discriminators (Long et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from ...draws import normal
from ...errors import LimbeckError, choice, fraction, not_negative, positive, unless_auto
from ...features import Fourier, RandomConvNets, default_length_scales
from ...nets import Generator, build_generator
from ...privacy import Asked, Faculty, FeatureMap, LaplaceHistogram, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress, check_values_declared
from ..class_counts import COUNTS, class_weights
from ..part import Auto
from ..source import trained_source
from .critic import Critic
from .discriminator_spec import KINDS, DiscriminatorSpec
from .gradient_aggregator import AGGREGATIONS, GradientAggregator
from .student import Student
from .teacher_shares import shared_teachers

LENGTH_SCALES = (1 / 16, 1 / 4, 1.0)
"""Length scales of a table's features, in units of the widest sensible one: numbers often crowd in a
part of their range."""
WEIGHT_BYTES = 12
"""Bytes for a weight of a teacher and its two moments, in float32."""
PROJECTION = 10
"""Coordinates to which gradients are projected for votes: the paper's."""
STATE_BYTES = 8 * 2**30
"""Bytes that the states of all teachers may take (8 GiB)."""


@dataclass(frozen=True, kw_only=True)
class GPATE(AbstractMethod):
    """A generator that sees no rows, moved by what many teachers say about its rows together.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a teacher, a discriminator,
        whose state stays inside. In every update all teachers answer a question about
        generated rows: with votes (a record changes one teacher's, so the histograms by
        sqrt(2 votes) and their maxima by sqrt(votes), or sqrt(2 votes) too where classes have teachers
        of their own), or with a vector of norm 1 (the sum moves by at most 2), under add/remove of
        one row, with discrete Gaussian noise. Events: one or
        two Gaussians per update, the number of which is fixed beforehand; and the class
        counts, by the discrete Laplace mechanism with `count_epsilon`, unless that is 0.
    """

    name: ClassVar[str] = "g-pate"
    version: ClassVar[int] = 2
    family: ClassVar[str] = "private teachers"
    good_for: ClassVar[str] = (
        "very many rows: a generator taught by the noisy votes of many networks"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "Y. Long, B. Wang, Z. Yang, B. Kailkhura, A. Zhang, C. A. Gunter, B. Li. G-PATE: Scalable "
        "Differentially Private Data Generator via Private Aggregation of Teacher Discriminators. "
        "NeurIPS 2021.",
        "N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable "
        "Private Learning with PATE. ICLR 2018.",
    )

    teachers: int = 4000
    """Number of teachers, and of shards."""
    updates: int = 80
    """Number of times that teachers are asked, each followed by `generator_steps` steps of the
    generator. The more, the more noise in each answer."""
    points: int = 50
    """Generated rows that teachers are asked about at once."""
    aggregation: str = "confident-gnmax"
    """What teachers answer with: votes, of which the largest counts are used where enough agree, as in
    the paper (confident-gnmax); or, limbeck's own, votes of which whole histograms are used
    (histogram), or vectors that are added up (directions), which carry more under the same budget."""
    projection: int | Auto = "auto"
    """Coordinates to which a row's gradient is projected at random; 0: it is not projected; auto: 10
    for votes, as in the paper, and 0 for directions."""
    shards: str = "auto"
    """Whose rows a teacher sees: those of all classes (mixed), as in the paper; or of one class alone
    (classes), so that a rare class has teachers that know it. Auto: mixed for confident-gnmax
    and where persons are protected, whose rows may be of several classes; otherwise classes."""
    rows_each: int = 1
    """Rows of a class, by its noisy count, for each of its teachers at least, where classes have
    teachers of their own: a small class gets fewer of them."""
    bins: int = 10
    """Number of bins that a vote chooses from."""
    clip: float = 1e-4
    """Largest gradient that votes tell apart; what is beyond falls into the outermost bin."""
    threshold: float = 0.5
    """Share of the teachers that must agree (confident-gnmax)."""
    threshold_share: float = 0.05
    """Share of the budget for finding out whether they do (confident-gnmax)."""
    batch: int = 15
    """Rows of its shard that a teacher sees at a time."""
    teacher_steps: int = 1
    """Steps of a teacher before each answer."""
    teacher_rate: float = 1e-2
    """Learning rate of the teachers."""
    teacher_decay: float = 0.2
    """Share of its weights that a teacher forgets in a step, so that it judges the generator as it is
    now."""
    view: str = "auto"
    """What teachers see: rows as they are (rows); or public random features of each row, limbeck's
    own (features): for images those of small convolutional networks, for tables sines and cosines.
    Auto: features for images, rows for tables, whose few numbers lose in many features."""
    networks: int = 2
    """Random networks whose features teachers see, for images."""
    network_width: int = 16
    """Filters in each of their layers."""
    features: int = 200
    """Random features that teachers see, for tables."""
    network: str = "per-class"
    """The teachers' own network: per-class (dense, a logit for each class) or published (the label
    beside each layer, batch normalisation, for images a convolution)."""
    teacher_hidden: tuple[int, ...] = ()
    """Widths of its hidden layers; none: teachers are linear, say the same about all rows of a class,
    and are asked about classes instead of rows."""
    filters: int = 0
    """Filters of the published network's convolution; 0: it has none."""
    same_start: bool = True
    """Whether all teachers start with the same weights."""
    code: int = 50
    """Latent numbers that the generator makes a row from."""
    hidden: tuple[int, ...] = (200,)
    """Widths of the generator's dense layers."""
    channels: tuple[int, ...] = (16, 8)
    """Channels of the image generator's two convolutions."""
    generator: str = "auto"
    """The generator's network for images: convolutions on enlarged ones (auto), or transposed ones with the
    label beside every layer, as in the paper (deconvolution)."""
    learning_rate: float = 4e-3
    """Learning rate of the generator."""
    cooling: bool = False
    """Whether that rate falls to nothing along half a cosine."""
    momentum: float = 0.5
    """Momentum of the generator's Adam."""
    generator_steps: int = 3
    """Steps of the generator after each answer; more of them follow it further, at no cost."""
    average: float = 0.9
    """Memory of the running mean of generators that is released; 0: the last one is."""
    count_epsilon: float = 0.01
    """Epsilon for the class counts; 0: none are measured, and classes are taken as equally likely."""

    def __post_init__(self) -> None:
        positive(
            teachers=self.teachers,
            updates=self.updates,
            points=self.points,
            clip=self.clip,
            batch=self.batch,
            teacher_steps=self.teacher_steps,
            teacher_rate=self.teacher_rate,
            code=self.code,
            networks=self.networks,
            network_width=self.network_width,
            features=self.features,
            learning_rate=self.learning_rate,
            generator_steps=self.generator_steps,
            **{f"hidden[{i}]": w for i, w in enumerate(self.hidden)},
            **{f"teacher_hidden[{i}]": w for i, w in enumerate(self.teacher_hidden)},
            **{f"channels[{i}]": w for i, w in enumerate(self.channels)},
        )
        positive(rows_each=self.rows_each)
        fraction(threshold=self.threshold, threshold_share=self.threshold_share)
        choice(
            aggregation=(self.aggregation, AGGREGATIONS),
            network=(self.network, KINDS),
            view=(self.view, ("auto", "rows", "features")),
            shards=(self.shards, ("auto", "mixed", "classes")),
            generator=(self.generator, ("auto", "deconvolution")),
        )
        not_negative(projection=unless_auto(projection=self.projection) or 0, filters=self.filters)
        not_negative(count_epsilon=self.count_epsilon)
        for name in ("momentum", "average", "teacher_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise LimbeckError(f"Expected 0 <= {name} < 1, got {getattr(self, name)}.")
        if self.bins < 2:
            raise LimbeckError(f"Expected bins >= 2, got {self.bins}.")
        if not self.hidden or len(self.channels) != 2:
            raise LimbeckError("Expected at least one hidden layer, and two channels.")

    # ---- the plan ---------------------------------------------------------------------------

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        self._check(schema)
        votes = Asked(question=self.aggregator(schema).ballot, share=1.0)
        if not self.count_epsilon:
            return [votes]
        counts = LaplaceHistogram.of_classes(COUNTS, schema, epsilon=self.count_epsilon)
        return [Asked(question=counts, share=0.0), votes]

    def aggregator(self, schema: Schema) -> GradientAggregator:
        """What makes one gradient of those of all teachers."""
        return GradientAggregator(
            aggregation=self.aggregation,
            points=len(schema.classes) if self._by_class else self.points,
            width=self.seen_width(schema),
            projection=self.projected(schema),
            updates=self.updates,
            clip=self.clip,
            bins=self.bins,
            threshold=self.threshold,
            threshold_share=self.threshold_share,
            points_each=self._points_each(schema),
        )

    def projected(self, schema: Schema) -> int:
        """Coordinates to which gradients are projected; 0: they are not."""
        if self.projection != "auto":
            return self.projection
        return 0 if self.aggregation == "directions" else min(PROJECTION, self.seen_width(schema))

    def classes_apart(self, schema: Schema) -> bool:
        """Whether every class has teachers of its own."""
        if self.shards == "auto":
            return self.aggregation != "confident-gnmax" and schema.person is None
        return self.shards == "classes"

    def teachers_of_classes(self, schema: Schema, counts: np.ndarray) -> tuple[int, ...]:
        """How many teachers see the rows of each class alone: equally many, but no more than its noisy
        count has rows for, and all in all as many as there are. None: all see all classes."""
        if not self.classes_apart(schema):
            return ()
        if not self.count_epsilon:
            counts = np.full(len(schema.classes), np.inf)
        return shared_teachers(self.teachers, counts, self.rows_each)

    def _points_each(self, schema: Schema) -> int:
        """Points that one teacher answers about; 0: all."""
        if not self.classes_apart(schema):
            return 0
        return 1 if self._by_class else math.ceil(self.points / len(schema.classes))

    def _check(self, schema: Schema) -> None:
        if schema.units is not None and self.teachers > schema.units:
            raise LimbeckError(
                f"{self.teachers} teachers are more than the {schema.units} "
                f"{'persons' if schema.person else 'rows'} that the schema declares; choose fewer "
                "teachers."
            )
        if schema.rows is None and not self.count_epsilon:
            raise LimbeckError(
                f"{self.name} must know how many rows to release: declare their approximate number "
                "in the schema (rows = ...), or have them counted (count_epsilon)."
            )
        if self.classes_apart(schema):
            self._check_apart(schema)
        width, weights = self.seen_width(schema), self.discriminator(schema).weights
        if self.projected(schema) > width:
            raise LimbeckError(
                f"A row has {width} numbers; it cannot be projected to {self.projection}."
            )
        needed = WEIGHT_BYTES * weights * self.teachers
        if needed > STATE_BYTES:
            raise LimbeckError(
                f"{self.teachers} teachers of {weights} weights need "
                f"{needed / 2**30:.0f} GiB; choose smaller or fewer ones."
            )

    def _check_apart(self, schema: Schema) -> None:
        if schema.person:
            raise LimbeckError(
                f"{self.name}: a person's rows may be of several classes, so classes cannot have "
                'teachers of their own (shards = "classes"); take shards = "mixed".'
            )
        if self.teachers < len(schema.classes):
            raise LimbeckError(
                f"{self.teachers} teachers are fewer than the {len(schema.classes)} classes, each of "
                'which needs one of its own; choose more, or shards = "mixed".'
            )

    @property
    def _by_class(self) -> bool:
        """Whether teachers are asked about classes: linear ones say the same about all their rows."""
        return self.network == "per-class" and not self.teacher_hidden

    def _sees_rows(self, schema: Schema) -> bool:
        return schema.image is None if self.view == "auto" else self.view == "rows"

    def seen_features(self, schema: Schema, seed: int) -> FeatureMap | None:
        """The public features that teachers see rows by; None: they see rows as they are."""
        if self._sees_rows(schema):
            return None
        key = jax.random.fold_in(jax.random.key(seed), 7)
        if schema.image:
            return RandomConvNets(
                shape=schema.image.shape,
                networks=self.networks,
                width=self.network_width,
                key=key,
            )
        return Fourier(
            slots=schema.slots,
            size=self.features,
            length_scales=tuple(wide * default_length_scales(schema)[-1] for wide in LENGTH_SCALES),
            key=key,
        )

    def seen_width(self, schema: Schema) -> int:
        """Numbers in a row as teachers see it."""
        if self._sees_rows(schema):
            return schema.slots
        return int(eqx.filter_eval_shape(self.seen_features, schema, 0).size)

    def discriminator(self, schema: Schema) -> DiscriminatorSpec:
        """The description of the teachers' network."""
        image = schema.image if self._sees_rows(schema) else None
        return DiscriminatorSpec(
            kind=self.network,
            width=self.seen_width(schema),
            classes=len(schema.classes),
            hidden=self.teacher_hidden,
            filters=self.filters,
            shape=image.shape if image else None,
        )

    def critic(self, schema: Schema, seed: int, of_class: tuple[int, ...] = ()) -> Critic:
        """What each teacher does; some see the rows of one class alone."""
        return Critic(
            network=self.discriminator(schema),
            seed=seed ^ 0x5EED,
            same_start=self.same_start,
            aggregator=self.aggregator(schema),
            count=sum(of_class) or self.teachers,
            of_class=of_class,
            batch=self.batch,
            turns=self.teacher_steps,
            learning_rate=self.teacher_rate,
            decay=self.teacher_decay,
        )

    def student(self) -> Student:
        """How the generator learns from the teachers' noisy answers."""
        return Student(
            points=self.points,
            by_class=self._by_class,
            code=self.code,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            cooling=self.cooling,
            steps=self.updates * self.generator_steps,
            average=self.average,
        )

    # ---- the run ----------------------------------------------------------------------------

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        classes = len(schema.classes)
        measured = {COUNTS: private.ask(COUNTS).values} if self.count_epsilon else {}
        counts = measured.get(COUNTS, np.ones(classes))
        weights, size = class_weights(counts)
        of_class = self.teachers_of_classes(schema, np.ravel(counts))
        generator, settings = self._teach(private, seed, of_class)
        norm_key = jax.random.fold_in(jax.random.key(seed), 3)
        return Product(
            source=trained_source(generator, settings, weights, key=norm_key),
            rows=schema.rows or max(1, round(size)),
            measurements=measured,
        )

    def _teach(
        self, private: Private, seed: int, of_class: tuple[int, ...]
    ) -> tuple[Generator, dict[str, Any]]:
        """The generator after all updates, and what it is built from."""
        schema, student = private.schema, self.student()
        aggregator = self.aggregator(schema)
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        if schema.image:
            kind = {} if self.generator == "auto" else {"kind": self.generator}
            settings |= {"channels": list(self.channels), **kind}
        build_key, ask_key = jax.random.split(jax.random.key(seed))
        generator = build_generator(schema, settings, key=build_key)
        phi = self.seen_features(schema, seed)
        state, mean = student.start(generator), generator
        teachers = Faculty(self.critic(schema, seed, of_class), phi, of_class)
        answering = np.asarray(of_class or (self.teachers,) * len(schema.classes))
        with private.steps(aggregator.ballot.name, teachers) as ask:
            for key in jax.random.split(ask_key, self.updates):
                codes, asked = student.consultation(aggregator, generator, phi, key)
                tallies = [answer.values for answer in ask({"question": asked})]
                directions = aggregator.restore(
                    tallies, asked.matrices, answering[np.asarray(asked.asked_labels)]
                )
                directions = directions[asked.labels] if self._by_class else directions
                for step in range(self.generator_steps):
                    if self._by_class and step:  # what holds for a class holds for other rows of it
                        codes = normal(jax.random.fold_in(key, step), codes.shape)
                    generator, state = student.moved(
                        generator, state, phi, codes, asked.labels, directions
                    )
                mean = student.averaged(mean, generator) if self.average else generator
        return mean, settings
