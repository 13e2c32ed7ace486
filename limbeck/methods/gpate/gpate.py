"""G-PATE: a generator taught by the noisy votes of many discriminators (paper 003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from ...errors import LimbeckError, fraction, not_negative, positive
from ...features import Fourier, RandomConvNets
from ...nets import (
    ClassLogits,
    Discriminator,
    Generator,
    Published,
    build_generator,
    settle,
    weights_of,
)
from ...privacy import Asked, Faculty, FeatureMap, Histogram, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress, check_values_declared
from ..kip.kernel import choice
from ..mean_embedding.dp_merf import default_length_scales
from ..mean_embedding.embedding import COUNTS, class_weights
from ..source import Generated
from .critic import Critic, Question
from .gradient_aggregator import AGGREGATIONS, GradientAggregator

TABLE_WIDTHS = (1 / 16, 1 / 4, 1.0)
"""Of a table's features, in units of the widest sensible one: numbers often crowd in their range."""
MEMORY = 8 * 2**30
"""Bytes that the states of all teachers may take: weights and two moments each, in float32."""


@dataclass(frozen=True, kw_only=True)
class GPATE(AbstractMethod):
    """A generator that sees no rows, moved by what many teachers say about its rows together.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a teacher, a discriminator,
        whose state stays inside. In every update all teachers answer a question about
        generated rows: with votes (a record changes one teacher's, so the histograms by
        sqrt(2 votes) and their maxima by sqrt(votes)), or with a vector of norm 1 (the sum moves
        by at most 2), under add/remove of one row, with discrete Gaussian noise. Events: one or
        two Gaussians per update, the number of which is fixed beforehand; and the class
        counts, by the discrete Laplace mechanism with `count_epsilon`, unless that is 0.
    """

    name: ClassVar[str] = "g-pate"
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
    """Of the generator; each is one question to all teachers. More of them: more noise in each."""
    points: int = 50
    """Generated rows that a question is about."""
    aggregation: str = "sum"
    """What teachers answer with: sum (directions) or histogram (votes, whole histograms), limbeck's
    own; or confident-gnmax, as in the paper."""
    projection: int = 0
    """Coordinates to which a row's gradient is projected at random; 0: none."""
    bins: int = 10
    """Of a vote."""
    clip: float = 1e-4
    """Largest gradient that votes tell apart; beyond it they fall into the outermost bin."""
    threshold: float = 0.5
    """Share of the teachers that must agree (confident-gnmax)."""
    threshold_share: float = 0.05
    """Share of the budget for finding out whether they do (confident-gnmax)."""
    batch: int = 15
    """Rows of its shard that a teacher sees at a time."""
    teacher_steps: int = 1
    """Steps of a teacher in an update."""
    teacher_rate: float = 1e-2
    """Learning rate of the teachers."""
    teacher_decay: float = 0.2
    """Part of its weights that a teacher forgets in a step: it then judges the generator of today."""
    view: str = "features"
    """What teachers see: rows, or limbeck's own: features, public random ones of each row (for images
    those of small convolutional networks, for tables sines and cosines)."""
    networks: int = 2
    """Random networks of the view, for images."""
    network_width: int = 16
    """Filters in each of their layers."""
    features: int = 200
    """Random features of the view, for tables."""
    network: str = "per-class"
    """The teachers' network: per-class (dense, a logit per class) or published (label beside each
    layer, batch normalisation, for images a convolution)."""
    teacher_hidden: tuple[int, ...] = ()
    """Widths of its hidden layers; none: linear, and then a question is about classes, not rows."""
    filters: int = 0
    """Of the published network's convolution."""
    same_start: bool = True
    """Whether all teachers start alike."""
    code: int = 50
    """Latent numbers of the generator."""
    hidden: tuple[int, ...] = (200,)
    """Widths of the generator's dense layers."""
    channels: tuple[int, ...] = (16, 8)
    """Of the image generator's convolutions."""
    learning_rate: float = 4e-3
    """Of the generator."""
    cooling: bool = False
    """Whether that rate falls to nothing along a cosine."""
    momentum: float = 0.5
    """Of the generator's Adam."""
    generator_steps: int = 3
    """Of the generator in an update: more of them follow the same answer further, for free."""
    average: float = 0.9
    """The released generator is a running mean of the learned ones with this memory; 0: the last."""
    count_epsilon: float = 0.01
    """Epsilon for the class counts; 0: classes are equally likely."""

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
        fraction(threshold=self.threshold, threshold_share=self.threshold_share)
        choice(
            aggregation=(self.aggregation, AGGREGATIONS),
            network=(self.network, ("per-class", "published")),
            view=(self.view, ("rows", "features")),
        )
        not_negative(projection=self.projection, filters=self.filters)
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
        counts = Histogram.of_classes(COUNTS, schema, epsilon=self.count_epsilon)
        return [Asked(question=counts, share=0.0), votes]

    def aggregator(self, schema: Schema) -> GradientAggregator:
        """The mechanism that answers an update's question."""
        return GradientAggregator(
            aggregation=self.aggregation,
            teachers=self.teachers,
            points=len(schema.classes) if self._linear else self.points,
            width=self.width(schema),
            projection=self.projection,
            updates=self.updates,
            clip=self.clip,
            bins=self.bins,
            threshold=self.threshold,
            threshold_share=self.threshold_share,
        )

    def _check(self, schema: Schema) -> None:
        if schema.rows is not None and self.teachers > schema.rows:
            raise LimbeckError(
                f"{self.teachers} teachers are more than the {schema.rows} rows that the schema "
                "declares; choose fewer teachers."
            )
        if schema.rows is None and not self.count_epsilon:
            raise LimbeckError(
                f"{self.name} must know how many rows to release: declare their approximate number "
                "in the schema (rows = ...), or have them counted (count_epsilon)."
            )
        if self.projection > self.width(schema):
            raise LimbeckError(
                f"A row has {self.width(schema)} numbers; it cannot be projected to "
                f"{self.projection}."
            )
        build = eqx.filter_eval_shape(self.discriminator, schema, jax.random.key(0))
        weights = weights_of(build)
        if 12 * weights * self.teachers > MEMORY:
            raise LimbeckError(
                f"{self.teachers} teachers of {weights} weights need "
                f"{12 * weights * self.teachers / 2**30:.0f} GiB; choose smaller or fewer ones."
            )

    @property
    def _linear(self) -> bool:
        """Linear teachers say the same about all rows of a class: one question per class will do."""
        return self.network == "per-class" and not self.teacher_hidden

    def sight(self, schema: Schema, seed: int) -> FeatureMap | None:
        """The public features that teachers see rows by; None: rows as they are."""
        if self.view == "rows":
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
            length_scales=tuple(wide * default_length_scales(schema)[-1] for wide in TABLE_WIDTHS),
            key=key,
        )

    def width(self, schema: Schema) -> int:
        """Numbers in a row as teachers see it."""
        seen = eqx.filter_eval_shape(self.sight, schema, 0) if self.view != "rows" else None
        return schema.slots if seen is None else int(seen.size)

    def discriminator(self, schema: Schema, key: PRNGKeyArray) -> Discriminator:
        """A fresh network of a teacher."""
        width, classes = self.width(schema), len(schema.classes)
        if self.network == "per-class":
            return ClassLogits(width=width, classes=classes, hidden=self.teacher_hidden, key=key)
        return Published(
            width=width,
            classes=classes,
            hidden=self.teacher_hidden,
            filters=self.filters,
            shape=schema.image.shape if schema.image and self.view == "rows" else None,
            key=key,
        )

    # ---- the run ----------------------------------------------------------------------------

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema = private.schema
        classes = len(schema.classes)
        measured = {COUNTS: private.ask(COUNTS).values} if self.count_epsilon else {}
        weights, size = class_weights(measured.get(COUNTS, np.ones(classes)))
        generator, settings = self._teach(private, seed)
        norm_key = jax.random.fold_in(jax.random.key(seed), 3)
        settled = settle(generator, jnp.arange(5000) % classes, key=norm_key)
        return Product(
            source=Generated(generator=settled, settings=settings, class_weights=weights),
            rows=schema.rows or max(1, round(size)),
            measurements=measured,
        )

    def _teach(self, private: Private, seed: int) -> tuple[Generator, dict[str, Any]]:
        schema = private.schema
        aggregator = self.aggregator(schema)
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        if schema.image:
            settings["channels"] = list(self.channels)
        build_key, ask_key = jax.random.split(jax.random.key(seed))
        generator = build_generator(schema, settings, key=build_key)
        phi = self.sight(schema, seed)
        faculty = Faculty(self._critic(schema, aggregator, seed), phi)
        state = self._optimiser.init(eqx.filter(generator, eqx.is_inexact_array))
        mean = generator
        with private.steps(aggregator.ballot.name, faculty) as ask:
            for key in jax.random.split(ask_key, self.updates):
                codes, question = _question(self, aggregator, generator, phi, key)
                tallies = [answer.values for answer in ask({"question": question})]
                wanted = aggregator.restore(tallies, question.matrices)
                wanted = wanted[question.labels] if self._linear else wanted
                for step in range(self.generator_steps):
                    if self._linear and step:  # what linear teachers say holds for other rows, too
                        codes = jax.random.normal(jax.random.fold_in(key, step), codes.shape)
                    generator, state = _moved(
                        self, generator, state, phi, codes, question.labels, wanted
                    )
                mean = _averaged(mean, generator, self.average) if self.average else generator
        return mean, settings

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        rate: Any = self.learning_rate
        if self.cooling:
            rate = optax.cosine_decay_schedule(rate, self.updates * self.generator_steps)
        return optax.adam(rate, b1=self.momentum)

    def _critic(self, schema: Schema, aggregator: GradientAggregator, seed: int) -> Critic:
        return Critic(
            builder=self,
            schema=schema,
            seed=seed ^ 0x5EED,
            same_start=self.same_start,
            aggregator=aggregator,
            count=self.teachers,
            batch=self.batch,
            turns=self.teacher_steps,
            learning_rate=self.teacher_rate,
            decay=self.teacher_decay,
        )


# ---- post-processing: nothing below sees a row or a teacher -----------------------------------------


@eqx.filter_jit
def _question(
    method: GPATE, aggregator: GradientAggregator, generator: Generator, phi: Any, key: Array
) -> tuple[Array, Question]:
    """Generated rows to ask about, with the codes they were made from."""
    keys = jax.random.split(key, 3)
    codes = jax.random.normal(keys[0], (method.points, method.code))
    labels = jax.random.permutation(keys[1], jnp.arange(method.points) % generator.classes)
    rows = _seen(generator, phi, codes, labels)
    matrices = aggregator.projections(keys[2])
    if not method._linear:
        return codes, Question(rows, labels, rows, labels, matrices)
    each = jnp.arange(generator.classes)
    return codes, Question(rows, labels, jnp.zeros((len(each), rows.shape[1])), each, matrices)


@eqx.filter_jit
def _moved(
    method: GPATE,
    generator: Generator,
    state: Any,
    phi: Any,
    codes: Array,
    labels: Array,
    wanted: Array,
) -> tuple[Generator, Any]:
    """The generator after one step of squared error towards its rows moved by `wanted`."""
    weights, rest = eqx.partition(generator, eqx.is_inexact_array)
    _, pull = jax.vjp(lambda w: _seen(eqx.combine(w, rest), phi, codes, labels), weights)
    change, state = method._optimiser.update(pull(-wanted)[0], state)
    return eqx.combine(optax.apply_updates(weights, change), rest), state


def _seen(generator: Generator, phi: Any, codes: Array, labels: Array) -> Array:
    """Generated rows as teachers see them."""
    rows = generator(codes, labels, [])
    return rows if phi is None else phi(rows)


@eqx.filter_jit
def _averaged(mean: Generator, now: Generator, memory: float) -> Generator:
    parts = eqx.partition(now, eqx.is_inexact_array)
    old = eqx.filter(mean, eqx.is_inexact_array)
    mixed = jax.tree_util.tree_map(lambda m, n: memory * m + (1 - memory) * n, old, parts[0])
    return eqx.combine(mixed, parts[1])
