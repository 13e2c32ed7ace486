"""Measure once, distill freely: a few noisy sums, then a small set by any amount of free work.

Three things are measured. A *teacher*: a linear predictor of the class on features of a row, learned by
noisy gradient descent; kernel ridge regression on a small set is such a predictor, too, so a set can
be made that gives the same one. *Prototypes*: mean rows of clusters within each class, from which the
set begins. *Network moments*: class means and second moments of the rows' features in random
convolutional networks, from which one can tell how well such networks would learn from the set; or, for
coloured images, class means alone, in many views (`view_means.py`). The set is then optimised to agree with all three, which sees no rows: `small_set.py`.

This file holds what is asked and measured. What the answers say is read in `findings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, choice, fraction, not_negative, positive, unless_auto
from ...features import (
    Fourier,
    RandomConvNets,
    Scattering,
    Views,
    default_length_scales,
    features_of,
    output_size,
)
from ...privacy import Asked, Head, Histogram, Measurement, OuterSum, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, check_values_declared, values_of
from ..class_counts import COUNTS
from ..part import Auto
from ..source import Distilled
from ..tiles import check_tiles
from . import view_means
from .findings import (
    CLASS_MEANS,
    CLUSTERS,
    MEAN,
    NETWORKS,
    PROTOTYPES,
    TEACHER,
    VIEWS,
    noisy_rows,
    read_findings,
    read_prototypes,
)
from .network_moments import NetworkResiduals, network_blocks, network_bound, prototype_features
from .optimise_set import ObjectiveWeights
from .private_prototypes import asked_class_means, asked_prototypes, measure_prototypes
from .small_set import SmallSet, class_size_factor, shown
from .teacher import linear_features, soft_labels, train_teacher

SHARES = {MEAN: 0.01, CLASS_MEANS: 0.05, CLUSTERS: 0.14, PROTOTYPES: 0.33, NETWORKS: 0.47}
VIEW_SHARES = {MEAN: 0.01, CLASS_MEANS: 0.05, CLUSTERS: 0.14, PROTOTYPES: 0.33, VIEWS: 1.0}
"""Proportions in which these measurements divide what counts and teacher leave of the budget, without views and with."""
TEACHER_SHARE, VIEWS_TEACHER_SHARE = 0.45, 0.35
"""Share of the budget for the teacher, without views and with."""
COLOUR_VIEWS = 20
"""Number of views in which coloured images are measured."""
PROXIMITY = 0.003
"""Weight of staying near where the rows begin, without views."""
PACKED_TILES = 2
"""Pictures that an image holds along either side where views are measured."""
COUNT_SHARE = 0.01
"""Share of the budget for the class counts."""
GOALS = ("any", "ridge")
"""Kinds of learner that a set may be made for."""


@dataclass(frozen=True, kw_only=True)
class MeasureOnce(AbstractMeasureOnce):
    """Private teacher, prototypes and what random networks see; the set is optimised for free.

    Privacy:
        Measures class counts (sensitivity 1), sums of clipped rows and of their clipped residuals
        per class and per cluster, sums of network features per class and of their products, clipped
        together (of coloured images sums per class alone, in many views, clipped together), and gradients of a linear head over all rows, each clipped, under add/remove of
        one row, with discrete Gaussian noise calibrated jointly. Every row enters one class and one
        cluster. Later questions depend on earlier answers, which Gaussian composition allows.
        Events: Gaussians.

    >>> from limbeck import Category, Image
    >>> columns = Image(height=8, width=8), Category(name="c", values=(0, 1), label=True)
    >>> asked = MeasureOnce(goal="ridge").questions(Schema(dataset="d", columns=columns))
    >>> [one.question.name for one in asked]
    ['class counts', 'teacher']
    """

    name: ClassVar[str] = "measure-once"
    version: ClassVar[int] = 2
    good_for: ClassVar[str] = (
        "labelled images, their default: a few per class that train any learner"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "limbeck's own method: private linear teacher, prototypes and random-network moments, followed "
        "by free distillation (docs/measure-once.md).",
        "M. Vinaroz, M. Park. Differentially Private Kernel Inducing Points using features from "
        "ScatterNets (DP-KIP-ScatterNet) for Privacy Preserving Data Distillation. TMLR 2024.",
    )
    fixed_size: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = frozenset(
        {
            "per_class",
            "tiles",
            "steps",
            "learning_rate",
            "align_weight",
            "match_weight",
            "error_weight",
        }
        | {"proximity", "smoothness", "softness"}
    )

    per_class: int = 10
    """Rows per class in the distilled set; of images that hold several pictures, these images. Free."""
    goal: str = "any"
    """Learner that the set is for: "any", or "ridge" (kernel ridge regression only): then the whole budget goes to
    the teacher."""
    tiles: int | Auto = "auto"
    """Pictures that an image holds along either side: with 2, four small ones, which are released at full size.
    "auto": 2 where views are measured, else 1. Free."""
    teacher_share: float | Auto = "auto"
    """Share of the budget for the teacher; prototypes and networks divide the rest. "auto": 0.45, with views 0.35."""
    clusters: int = 50
    """Number of prototypes per class, at most; as many are measured as can be told from noise."""
    networks: int = 4
    """Number of random networks whose features are measured, for images."""
    network_width: int = 32
    """Number of filters in each layer of the random networks."""
    views: int | Auto = "auto"
    """Number of views: random networks of `network_width` filters, each of which sees all images changed in a way of
    its own, and of which only class means are measured. 0: moments in `networks` networks are measured instead.
    "auto": 20 for coloured images, 0 for others."""
    features: int = 2000
    """Number of random Fourier features that the teacher sees a table's row by; images have
    scattering features."""
    teacher_steps: int = 100
    """Noisy gradient steps of the teacher."""
    teacher_rate: float = 100.0
    """Learning rate of the teacher where there is little noise; with more noise it is lower."""
    steps: int = 150
    """Updates of the distilled set; twice as many with views, and more for a few rows that start from noise. Free."""
    learning_rate: float = 0.02
    """Learning rate of the first update, larger for rows that start from noise. Free."""
    align_weight: float = 2.0
    """Weight of agreement with the teacher. Free."""
    match_weight: float = 56.0
    """Weight of agreement with the class means in random networks; less for few rows per class. Free."""
    error_weight: float = 10.0
    """Weight of the errors that regression on the set's features in random networks makes on the
    measured rows. Free."""
    proximity: float | Auto = "auto"
    """Weight of staying near where the rows begin. "auto": 0.003, with views 0. Free."""
    smoothness: float = 0.5
    """Pixels over which changes of an image are blurred; 0: not at all. Free."""
    softness: float = 0.25
    """Probability that an image's soft label gives to other classes, on average, as the teacher divides
    it; less for few images per class. 0: hard labels only, which is also what tables get, goal "ridge",
    and a teacher that knows little. Free."""

    def __post_init__(self) -> None:
        share, tiles = unless_auto(teacher_share=self.teacher_share), unless_auto(tiles=self.tiles)
        fraction(**{} if share is None else {"teacher_share": share})
        positive(**{} if tiles is None else {"tiles": tiles})
        positive(per_class=self.per_class, clusters=self.clusters, networks=self.networks)
        positive(network_width=self.network_width, features=self.features)
        views, proximity = unless_auto(views=self.views), unless_auto(proximity=self.proximity)
        not_negative(**{} if views is None else {"views": views})
        not_negative(**{} if proximity is None else {"proximity": proximity})
        positive(teacher_steps=self.teacher_steps, teacher_rate=self.teacher_rate)
        positive(steps=self.steps, learning_rate=self.learning_rate)
        not_negative(align_weight=self.align_weight, match_weight=self.match_weight)
        not_negative(error_weight=self.error_weight, smoothness=self.smoothness)
        not_negative(softness=self.softness)
        choice(goal=(self.goal, GOALS))

    def questions(self, schema: Schema) -> list[Asked]:
        classes = len(schema.classes)
        if schema.target and classes < 2:
            raise LimbeckError(
                f"{self.name} needs at least two bins of the target '{schema.target.name}', and there are few "
                "rows for them. Declare bins = 2 or more in the schema, or use marginals."
            )
        if classes < 2:
            raise LimbeckError(
                f"{self.name} needs a label with at least two classes; declare one in the schema."
            )
        if self.softness >= 1 - 1 / classes:
            raise LimbeckError(
                f"Expected softness < {1 - 1 / classes:.4g}, got {self.softness}: with {classes} classes, "
                "more would leave nothing to learn from a label."
            )
        check_values_declared(self.name, schema)
        self._check_pictures(schema)
        shares = self._shares(schema)
        teacher = Head(
            name=TEACHER,
            size=self.teacher_map(schema, 0).size,
            outputs=classes,
            count=self.teacher_steps,
        )
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=COUNT_SHARE),
            *(asked_class_means(schema, shares) if PROTOTYPES in shares else ()),
            *(asked_prototypes(schema, self.clusters, shares) if PROTOTYPES in shares else ()),
            *(self._asked_networks(schema, shares) if NETWORKS in shares else ()),
            *(self._asked_views(schema, shares) if VIEWS in shares else ()),
            Asked(question=teacher, share=shares[TEACHER]),
        ]

    def _asked_networks(self, schema: Schema, shares: Mapping[str, float]) -> list[Asked]:
        networks = self._networks(schema, 0)
        question = OuterSum(
            name=NETWORKS,
            bound=network_bound(networks),
            blocks=network_blocks(networks, len(schema.classes)),
            labelled=True,
        )
        return [Asked(question=question, share=shares[NETWORKS])]

    def _asked_views(self, schema: Schema, shares: Mapping[str, float]) -> list[Asked]:
        assert schema.image
        shape, classes = schema.image.shape, len(schema.classes)
        bound, size = view_means.residual_bound(shape), output_size(shape, self.network_width)
        question = Sum(
            name=VIEWS, bound=bound, size=self._views_of(schema) * size, groups=classes, by="map"
        )
        return [Asked(question=question, share=shares[VIEWS])]

    def _check_pictures(self, schema: Schema) -> None:
        """Refuse what is for images where there are none, and images that cannot be cut."""
        tiles = self._tiles(schema)
        if schema.image is None and (self._views_of(schema) or tiles > 1):
            raise LimbeckError(f"{self.name}: views and tiles are for images.")
        if schema.image:
            check_tiles(schema.image.shape, tiles)

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        schema = private.schema
        measured = {COUNTS: private.ask(COUNTS)}
        shares = self._shares(schema)
        if PROTOTYPES in shares:
            measure_prototypes(private, measured, self.clusters, seed)
        if NETWORKS in shares:
            prototypes = read_prototypes(schema, measured)
            state = {"at_prototypes": prototype_features(self._networks(schema, seed), prototypes)}
            answer = private.ask(NETWORKS, self.map_spec("network_map", seed), state)
            measured[NETWORKS] = answer._replace(values=answer.values.astype(np.float32))
        if VIEWS in shares:
            prototypes, views = read_prototypes(schema, measured), self._views(schema, seed)
            state = {"at_prototypes": view_means.prototype_features(views, prototypes)}
            answer = private.ask(VIEWS, self.map_spec("view_map", seed), state)
            measured[VIEWS] = answer._replace(values=answer.values.astype(np.float32))
        noise = private.noise_of(TEACHER)
        with private.steps(TEACHER, self.map_spec("teacher_map", seed)) as gradient:
            weights = train_teacher(
                lambda weights: gradient({"weights": weights})[0].values,
                size=self.teacher_map(schema, seed).size,
                classes=len(schema.classes),
                rows=noisy_rows(measured),
                noise=noise,
                steps=self.teacher_steps,
                learning_rate=self.teacher_rate,
            ).astype(np.float32)
        measured[TEACHER] = Measurement(weights, noise, "discrete gaussian")
        return measured

    # ---- the maps that are measured: what a row adds to a sum ------------------------------------

    def network_map(self, schema: Schema, seed: int, at_prototypes: Array) -> NetworkResiduals:
        """Features of rows in random networks, less those of their class's prototypes."""
        return NetworkResiduals(self._networks(schema, seed), at_prototypes)

    def view_map(self, schema: Schema, seed: int, at_prototypes: Array) -> view_means.ViewResiduals:
        """Features of rows in all views, less those of their class's prototypes."""
        return view_means.ViewResiduals(self._views(schema, seed), at_prototypes)

    def teacher_map(self, schema: Schema, seed: int) -> Scattering | Fourier:
        """Features of rows for the teacher, of norm 1."""
        scales = default_length_scales(schema)
        return linear_features(schema, size=self.features, length_scales=scales, seed=seed)

    # ---- the free part --------------------------------------------------------------------------

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        rng = np.random.default_rng(seed)
        networks = self._networks(schema, seed) if NETWORKS in measured else None
        views = self._views(schema, seed) if VIEWS in measured else None
        features = self.teacher_map(schema, seed)
        findings = read_findings(
            schema, measured, features=features, networks=networks, views=views
        )
        tiles = self._tiles(schema)
        small, pictures = self._small_set(schema), self.per_class * tiles**2
        start = small.start(schema, findings, rng)
        rows = small.optimised(schema, findings, start, rng, seed=seed, progress=progress)
        stored = rows.reshape(-1, schema.slots).astype(np.float32)
        slots = shown(schema, stored, tiles)
        labels = np.repeat(np.arange(len(schema.classes)), pictures)
        soft = None
        if self.softness and start.teacher_trusted:
            logits = features_of(features, slots) @ findings.teacher
            soft = soft_labels(logits, labels, self.softness * class_size_factor(pictures))
        return Product(
            source=Distilled(
                slots=slots, labels=labels, soft=soft, stored=stored if tiles > 1 else None
            ),
            rows=len(labels),
            measurements=values_of(measured),
        )

    def _small_set(self, schema: Schema) -> SmallSet:
        return SmallSet(
            per_class=self.per_class,
            tiles=self._tiles(schema),
            steps=self.steps,
            learning_rate=self.learning_rate,
            smoothness=self.smoothness,
            weights=ObjectiveWeights(
                teacher=self.align_weight,
                class_means=self.match_weight,
                errors=self.error_weight,
                nearness=self._proximity(schema),
            ),
        )

    # ---- from the schema alone ------------------------------------------------------------------

    def _networks(self, schema: Schema, seed: int) -> RandomConvNets:
        assert schema.image
        return RandomConvNets(
            shape=schema.image.shape,
            networks=self.networks,
            width=self.network_width,
            key=jax.random.fold_in(jax.random.key(seed), 2),
        )

    def _views(self, schema: Schema, seed: int) -> Views:
        assert schema.image
        key = jax.random.fold_in(jax.random.key(seed), 2)
        views = self._views_of(schema)
        return Views(shape=schema.image.shape, views=views, width=self.network_width, key=key)

    def _views_of(self, schema: Schema) -> int:
        """Number of views: what teaches networks of coloured images is what many networks see."""
        views = unless_auto(views=self.views)
        if views is not None:
            return int(views)
        coloured = schema.image is not None and schema.image.shape[2] > 1
        return COLOUR_VIEWS if coloured and self.goal != "ridge" else 0

    def _tiles(self, schema: Schema) -> int:
        tiles = unless_auto(tiles=self.tiles)
        if tiles is not None:
            return int(tiles)
        return PACKED_TILES if self._views_of(schema) else 1

    def _proximity(self, schema: Schema) -> float:
        proximity = unless_auto(proximity=self.proximity)
        if proximity is not None:
            return proximity
        return 0.0 if self._views_of(schema) else PROXIMITY

    def _shares(self, schema: Schema) -> dict[str, float]:
        """Shares of the budget of all measurements that are made, but for the counts."""
        if self.goal == "ridge":
            return {TEACHER: 1 - COUNT_SHARE}
        wide = self._views_of(schema) > 0
        teacher = unless_auto(teacher_share=self.teacher_share)
        if teacher is None:
            teacher = VIEWS_TEACHER_SHARE if wide else TEACHER_SHARE
        chosen = VIEW_SHARES if wide else SHARES
        parts = {name: part for name, part in chosen.items() if schema.image or name != NETWORKS}
        left, total = 1 - COUNT_SHARE - teacher, sum(parts.values())
        shares = {name: left * part / total for name, part in parts.items()}
        return shares | {TEACHER: teacher}
