"""What methods with teachers have in common: a generator that sees no rows, and many networks on disjoint
shards that do."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from ...errors import LimbeckError, choice, not_negative, positive
from ...features import Fourier, PooledImages, RandomConvNets, default_length_scales
from ...nets import Generator, build_generator
from ...privacy import Asked, FeatureMap, LaplaceHistogram, Private, Question
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress, check_values_declared
from ..class_counts import COUNTS, class_weights
from ..source import trained_source
from .discriminator_spec import KINDS, DiscriminatorSpec
from .teacher_shares import shared_teachers

LENGTH_SCALES = (1 / 16, 1 / 4, 1.0)
"""Length scales of a table's features, in units of the widest sensible one: numbers often crowd in a
part of their range."""
WEIGHT_BYTES = 12
"""Bytes for a weight of a teacher and its two moments, in float32."""
STATE_BYTES = 8 * 2**30
"""Bytes that the states of all teachers may take (8 GiB)."""


@dataclass(frozen=True, kw_only=True)
class AbstractTaught(AbstractMethod):
    """A generator and many teachers, each on a shard of its own; those that derive from it say what
    teachers are asked and how the generator learns from their noisy answers."""

    family: ClassVar[str] = "private teachers"
    automatic_view: ClassVar[str] = "features"
    """What teachers see of images where nobody says."""

    teachers: int = 4000
    """Number of teachers, and of shards."""
    updates: int = 80
    """Number of times that teachers are asked. The more, the more noise in each answer."""
    points: int = 50
    """Generated rows that teachers are asked about at once."""
    shards: str = "auto"
    """Whose rows a teacher sees: those of all classes (mixed), as published; or of one class alone
    (classes), so that a rare class has teachers that know it. Auto: mixed where the method's paper wants it
    and where persons are protected, whose rows may be of several classes; otherwise classes."""
    rows_each: int = 1
    """Rows of a class, by its noisy count, for each of its teachers at least, where classes have
    teachers of their own: a small class gets fewer of them."""
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
    Or, of images, means of 2 x 2 pixels (pooled). Auto: rows for tables, whose few numbers lose in many features; for
    images features, but with GS-WGAN pooled."""
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
    """Widths of its hidden layers; none: teachers are linear, and say the same about all rows of a class."""
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
    label beside every layer, as in G-PATE's paper (deconvolution)."""
    learning_rate: float = 4e-3
    """Learning rate of the generator."""
    momentum: float = 0.5
    """Momentum of the generator's Adam."""
    average: float = 0.9
    """Memory of the running mean of generators that is released; 0: the last one is."""
    count_epsilon: float = 0.01
    """Epsilon for the class counts; 0: none are measured, and classes are taken as equally likely."""

    def __post_init__(self) -> None:
        positive(
            teachers=self.teachers,
            updates=self.updates,
            points=self.points,
            batch=self.batch,
            teacher_steps=self.teacher_steps,
            teacher_rate=self.teacher_rate,
            code=self.code,
            networks=self.networks,
            network_width=self.network_width,
            features=self.features,
            learning_rate=self.learning_rate,
            rows_each=self.rows_each,
            **{f"hidden[{i}]": w for i, w in enumerate(self.hidden)},
            **{f"channels[{i}]": w for i, w in enumerate(self.channels)},
            **{f"teacher_hidden[{i}]": w for i, w in enumerate(self.teacher_hidden)},
        )
        choice(
            network=(self.network, KINDS),
            view=(self.view, ("auto", "rows", "features", "pooled")),
            shards=(self.shards, ("auto", "mixed", "classes")),
            generator=(self.generator, ("auto", "deconvolution")),
        )
        not_negative(filters=self.filters, count_epsilon=self.count_epsilon)
        for name in ("momentum", "average", "teacher_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise LimbeckError(f"Expected 0 <= {name} < 1, got {getattr(self, name)}.")
        if not self.hidden or len(self.channels) != 2:
            raise LimbeckError("Expected at least one hidden layer, and two channels.")

    # ---- the plan ---------------------------------------------------------------------------

    @abc.abstractmethod
    def ballot(self, schema: Schema) -> Question:
        """The question that every update asks of all teachers."""

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        self.check(schema)
        votes = Asked(question=self.ballot(schema), share=1.0)
        if not self.count_epsilon:
            return [votes]
        counts = LaplaceHistogram.of_classes(COUNTS, schema, epsilon=self.count_epsilon)
        return [Asked(question=counts, share=0.0), votes]

    @property
    def apart_by_default(self) -> bool:
        """Whether classes have teachers of their own if nobody says otherwise."""
        return True

    def classes_apart(self, schema: Schema) -> bool:
        """Whether every class has teachers of its own."""
        if self.shards == "auto":
            return self.apart_by_default and schema.person is None
        return self.shards == "classes"

    def teachers_of_classes(self, schema: Schema, counts: np.ndarray) -> tuple[int, ...]:
        """How many teachers see the rows of each class alone: equally many, but no more than its noisy
        count has rows for, and all in all as many as there are. None: all see all classes."""
        if not self.classes_apart(schema):
            return ()
        if not self.count_epsilon:
            counts = np.full(len(schema.classes), np.inf)
        return shared_teachers(self.teachers, counts, self.rows_each)

    @property
    def linear(self) -> bool:
        """Whether teachers are linear: the slope of what they say is the same for all rows of a class."""
        return self.network == "per-class" and not self.teacher_hidden

    def check(self, schema: Schema) -> None:
        """Refuse what cannot be run on such data."""
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
        if self.view == "pooled" and not schema.image:
            raise LimbeckError('view = "pooled" is for images; choose rows or features.')
        if self.classes_apart(schema):
            self._check_apart(schema)
        weights = self.discriminator(schema).weights
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

    def _viewed(self, schema: Schema) -> str:
        """What teachers see: rows, features or pooled."""
        if self.view != "auto":
            return self.view
        return self.automatic_view if schema.image else "rows"

    def seen_features(self, schema: Schema, seed: int) -> FeatureMap | None:
        """The public features that teachers see rows by; None: they see rows as they are."""
        viewed = self._viewed(schema)
        if viewed == "rows":
            return None
        if viewed == "pooled":
            assert schema.image is not None
            return PooledImages(shape=schema.image.shape)
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
        if self._viewed(schema) == "rows":
            return schema.slots
        return int(eqx.filter_eval_shape(self.seen_features, schema, 0).size)

    def discriminator(self, schema: Schema) -> DiscriminatorSpec:
        """The description of the teachers' network."""
        image = schema.image if self._viewed(schema) == "rows" else None
        return DiscriminatorSpec(
            kind=self.network,
            width=self.seen_width(schema),
            classes=len(schema.classes),
            hidden=self.teacher_hidden,
            filters=self.filters,
            shape=image.shape if image else None,
        )

    def critic_settings(
        self, schema: Schema, seed: int, of_class: tuple[int, ...]
    ) -> dict[str, Any]:
        """What all critics are made from; some see the rows of one class alone."""
        return {
            "network": self.discriminator(schema),
            "seed": seed ^ 0x5EED,
            "same_start": self.same_start,
            "count": sum(of_class) or self.teachers,
            "of_class": of_class,
            "batch": self.batch,
            "turns": self.teacher_steps,
            "learning_rate": self.teacher_rate,
            "decay": self.teacher_decay,
        }

    # ---- the run ----------------------------------------------------------------------------

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        classes = len(schema.classes)
        measured = {COUNTS: private.ask(COUNTS).values} if self.count_epsilon else {}
        counts = measured.get(COUNTS, np.ones(classes))
        weights, size = class_weights(counts)
        of_class = self.teachers_of_classes(schema, np.ravel(counts))
        ranges, more = self.measured_ranges(private, np.ravel(counts), seed)
        settings = self._generator_settings(schema) | ranges
        build_key, ask_key = jax.random.split(jax.random.key(seed))
        generator = build_generator(schema, settings, key=build_key)
        generator = self.taught(private, generator, of_class, seed=seed, key=ask_key)
        norm_key = jax.random.fold_in(jax.random.key(seed), 3)
        return Product(
            source=trained_source(generator, settings, weights, key=norm_key),
            rows=schema.rows or max(1, round(size)),
            measurements=measured | more,
        )

    def measured_ranges(
        self, private: Private, counts: np.ndarray, seed: int
    ) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
        """Ranges in which the generator makes numbers, and the measurements that tell them; none: as declared."""
        return {}, {}

    def _generator_settings(self, schema: Schema) -> dict[str, Any]:
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        if schema.image:
            kind = {} if self.generator == "auto" else {"kind": self.generator}
            settings |= {"channels": list(self.channels), **kind}
        return settings

    @abc.abstractmethod
    def taught(
        self,
        private: Private,
        generator: Generator,
        of_class: tuple[int, ...],
        *,
        seed: int,
        key: jax.Array,
    ) -> Generator:
        """The generator after all updates.

        Args:
            private: Asks the teachers.
            generator: A fresh one.
            of_class: Teachers of each class, where classes have their own.
            seed: Public, for teachers and features.
            key: For codes, labels and what else is drawn in public.
        """
