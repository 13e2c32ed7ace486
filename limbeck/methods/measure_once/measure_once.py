"""Measure once, distill freely: a few noisy sums, then a small set by any amount of free work.

For features of finite size, kernel ridge regression on a small set is a linear predictor. So the
predictor is learned privately once (a linear teacher), together with what makes pictures look like
pictures (prototypes: means of clusters) and what fresh convolutional networks see in them (class
means and moments of random networks' features). The set is then chosen to agree with all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, fraction, not_negative, positive
from ...features import Fourier, RandomConvNets, Scattering, features_of
from ...privacy import Asked, Head, Histogram, Measurement, OuterSum, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, check_values_declared, values_of
from ..mean_embedding.dp_merf import default_length_scales
from ..mean_embedding.embedding import COUNTS, class_weights
from ..source import Distilled
from .network_moments import (
    NetworkResiduals,
    Seen,
    mean_features,
    network_blocks,
    network_bound,
    read_networks,
)
from .optimise_set import (
    Blur,
    Targets,
    Weights,
    align,
    known,
    nearest_start,
    probe,
    random_pictures,
    repeated,
    sharpened,
    spread,
)
from .prototypes import (
    BINS,
    Centred,
    Clusters,
    ClusterSums,
    Prototypes,
    PrototypeSums,
    cluster_bound,
    low_basis,
    prototype_bound,
    read_means,
    read_prototypes,
    start_clusters,
    update,
)
from .teacher import linear_features, soft_labels, train_teacher

MEAN, CLASS_MEANS, CLUSTERS = "mean", "class means", "clusters"
PROTOTYPES, NETWORKS, TEACHER = "prototypes", "random networks", "teacher"
ROUNDS = 4
"""Of k-means."""
PARTS = {MEAN: 0.01, CLASS_MEANS: 0.05, CLUSTERS: 0.14, PROTOTYPES: 0.33, NETWORKS: 0.47}
"""How the measurements of pictures divide what the counts and the teacher leave."""
COUNT_SHARE = 0.01
# Radii to which rows are clipped, in parts of sqrt(slots): from what pictures of any kind are like.
MEAN_RADIUS, CLASS_RADIUS, LOW_RADIUS, ROW_RADIUS = 0.6, 0.3, 0.2, 0.22
FEW = 4
"""Rows per class with which class means and soft labels count half; with fewer, far less."""
PROBES = 1000
"""Deformed prototypes, or random pictures, at which set and teacher are to agree."""
ENOUGH = 8
"""Rows per class, if there are not more prototypes, that follow what the networks saw. Where twice as many
are wanted they would follow its noise as well: the others are deformed copies."""
COPY_STEPS = 30
"""Updates of a set with copies, at half the rate: it only follows the teacher."""
TRUST = 0.7
"""Share of the prototypes, by size, whose class the teacher must know for its doubts to be taught as soft labels."""
FARTHER = 2.5
"""From noise there is so much farther to go than from prototypes."""
TOLERANCE = 0.08
"""Noise in a value of a prototype that is put up with, in parts of the range; decides how many."""
GOALS = ("any", "ridge")


def plenty(per_class: int) -> float:
    """How much the random networks' class means count, and how soft labels are, as a part of what they
    are with many rows.

    A single row cannot be a class's mean; while it tries, it does not teach what it could. Nor should
    it teach other classes.

    >>> [round(plenty(rows), 2) for rows in (1, 2, 4, 10, 50)]
    [0.05, 0.17, 0.5, 0.71, 0.93]
    """
    return per_class / (per_class + FEW) * min(1.0, per_class / FEW)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the noisy answers say, read once."""

    features: Any
    """That the teacher sees rows by."""
    teacher: np.ndarray
    """Its weights (features, classes)."""
    prototypes: Prototypes | None = None
    networks: RandomConvNets | None = None
    seen: Seen | None = None
    """What the networks saw in the rows."""

    def targets(self) -> Targets:
        """What a set is to agree with."""
        teacher = jnp.asarray(self.teacher)
        return Targets(self.features, teacher, networks=self.networks, seen=self.seen)


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where a set begins, and how it moves from there."""

    rows: np.ndarray
    """(classes, rows of each, slots)."""
    probes: np.ndarray
    """Rows at which set and teacher are to agree."""
    steps: int
    learning_rate: float
    smoothness: float
    trusted: bool
    """Whether the teacher knows the classes well enough for soft labels."""


@dataclass(frozen=True, kw_only=True)
class MeasureOnce(AbstractMeasureOnce):
    """Private teacher, prototypes and random-network moments; the set is optimised for free.

    Privacy:
        Measures class counts (sensitivity 1), sums of clipped rows and of their clipped residuals
        per class and per cluster, sums of network features per class and of their products, clipped
        together, and gradients of a linear head over all rows, each clipped, under add/remove of
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
        {"per_class", "steps", "learning_rate", "align_weight", "match_weight", "error_weight"}
        | {"proximity", "smoothness", "softness"}
    )

    per_class: int = 10
    """Rows per class in the distilled set: free."""
    goal: str = "any"
    """"any" learner, or "ridge": the whole budget on the teacher, for kernel ridge regression only."""
    teacher_share: float = 0.45
    """Share of the budget for the teacher; prototypes and networks divide the rest."""
    clusters: int = 50
    """Most prototypes per class; as many are measured as the noise allows."""
    networks: int = 4
    """Random networks, for images."""
    network_width: int = 32
    """Filters in each of their layers."""
    features: int = 2000
    """Random Fourier features, for tables."""
    teacher_steps: int = 100
    """Noisy gradient steps of the teacher."""
    teacher_rate: float = 100.0
    """Learning rate of the teacher where there is little noise; with more noise it is lower."""
    steps: int = 150
    """Updates of the distilled set, more of them for few rows from noise: free."""
    learning_rate: float = 0.02
    align_weight: float = 2.0
    """Weight of agreement with the teacher."""
    match_weight: float = 56.0
    """Weight of agreement with the random networks' class means, for many rows per class."""
    error_weight: float = 10.0
    """Weight of what regression on random networks' features gets wrong."""
    proximity: float = 0.003
    """Weight of staying near the prototypes."""
    smoothness: float = 0.5
    """Pixels over which a change of an image is blurred; 0: none."""
    softness: float = 0.25
    """Part of a soft label that goes to the other classes, as the teacher says, for many images per class;
    0: hard labels only, as for tables, for goal "ridge" and where the teacher knows little."""

    def __post_init__(self) -> None:
        fraction(teacher_share=self.teacher_share)
        positive(per_class=self.per_class, clusters=self.clusters, networks=self.networks)
        positive(network_width=self.network_width, features=self.features)
        positive(teacher_steps=self.teacher_steps, teacher_rate=self.teacher_rate)
        positive(steps=self.steps, learning_rate=self.learning_rate)
        not_negative(align_weight=self.align_weight, match_weight=self.match_weight)
        not_negative(error_weight=self.error_weight, proximity=self.proximity)
        not_negative(smoothness=self.smoothness)
        not_negative(softness=self.softness)
        if self.goal not in GOALS:
            raise LimbeckError(f"Expected a goal of {' or '.join(GOALS)}, got '{self.goal}'.")

    def questions(self, schema: Schema) -> list[Asked]:
        classes = len(schema.classes)
        if not schema.label or classes < 2:
            raise LimbeckError(
                f"{self.name} needs a label with at least two classes; declare one in the schema."
            )
        if self.softness >= 1 - 1 / classes:
            raise LimbeckError(
                f"Expected softness < {1 - 1 / classes:.4g}, got {self.softness}: with {classes} classes, "
                "more would leave nothing to learn from a label."
            )
        check_values_declared(self.name, schema)
        parts, left = self._parts(schema), 1 - COUNT_SHARE - self._teacher_share(schema)
        shares = {name: left * part / sum(parts.values()) for name, part in parts.items()}
        teacher = Head(
            name=TEACHER,
            size=self.teacher_map(schema, 0).size,
            outputs=classes,
            count=self.teacher_steps,
        )
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=COUNT_SHARE),
            *(self._asked_prototypes(schema, shares) if parts else ()),
            *(self._asked_networks(schema, shares) if NETWORKS in parts else ()),
            Asked(question=teacher, share=self._teacher_share(schema)),
        ]

    def _asked_prototypes(self, schema: Schema, shares: Mapping[str, float]) -> list[Asked]:
        classes, slots = len(schema.classes), schema.slots
        root, groups = float(np.sqrt(slots)), classes * self.clusters
        low = low_basis(schema).shape[1]
        mean = Sum(name=MEAN, bound=MEAN_RADIUS * root, size=slots, groups=1, by="all")
        means = Sum(name=CLASS_MEANS, bound=CLASS_RADIUS * root, size=slots, groups=classes)
        rounds = [
            Sum(
                name=f"{CLUSTERS}/{number}",
                bound=cluster_bound(LOW_RADIUS * root),
                size=low + 1,
                groups=groups,
                by="map",
            )
            for number in range(ROUNDS)
        ]
        prototypes = Sum(
            name=PROTOTYPES,
            bound=prototype_bound(ROW_RADIUS * root),
            size=slots + 1 + BINS,
            groups=groups,
            by="map",
        )
        return [
            Asked(question=mean, share=shares[MEAN]),
            Asked(question=means, share=shares[CLASS_MEANS]),
            *(Asked(question=one, share=shares[CLUSTERS] / ROUNDS) for one in rounds),
            Asked(question=prototypes, share=shares[PROTOTYPES]),
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

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        schema = private.schema
        found = {COUNTS: private.ask(COUNTS)}
        if self._parts(schema):
            self._measure_prototypes(private, found, seed)
        if NETWORKS in self._parts(schema):
            base = mean_features(self._networks(schema, seed), self._prototypes(schema, found))
            spec = self.map_spec("network_map", seed)
            answer = private.ask(NETWORKS, spec, {"at_prototypes": base})
            found[NETWORKS] = answer._replace(values=answer.values.astype(np.float32))
        with private.steps(TEACHER, self.map_spec("teacher_map", seed)) as gradient:
            weights = train_teacher(
                lambda weights: gradient({"weights": weights})[0].values,
                size=self.teacher_map(schema, seed).size,
                classes=len(schema.classes),
                rows=class_weights(found[COUNTS].values)[1],
                noise=private.noise_of(TEACHER),
                steps=self.teacher_steps,
                learning_rate=self.teacher_rate,
            ).astype(np.float32)
        found[TEACHER] = Measurement(weights, private.noise_of(TEACHER), "discrete gaussian")
        return found

    def _measure_prototypes(
        self, private: Private, found: dict[str, Measurement], seed: int
    ) -> None:
        schema = private.schema
        found[MEAN] = private.ask(MEAN, self.map_spec("mean_map", seed))
        centre = self._centre(schema, found)
        found[CLASS_MEANS] = private.ask(
            CLASS_MEANS, self.map_spec("class_map", seed), {"centre": centre}
        )
        means = self._class_means(schema, found)
        # As many clusters as can be told from noise; noise and counts are public by now.
        size = class_weights(found[COUNTS].values)[1] / len(means)
        affordable = size * TOLERANCE / max(private.noise_of(PROTOTYPES), 1e-9)
        clusters = start_clusters(schema, means, int(np.clip(affordable, 1, self.clusters)), seed)
        radius = LOW_RADIUS * float(np.sqrt(schema.slots))
        for number in range(ROUNDS):
            name = f"{CLUSTERS}/{number}"
            spec = self.map_spec("cluster_map", seed)
            found[name] = private.ask(name, spec, {"clusters": vars(clusters)})
            last, answer = number == ROUNDS - 1, found[name]
            clusters = update(
                clusters, answer.values, radius, answer.noise, last=last, seed=seed + number
            )
        found[PROTOTYPES] = private.ask(
            PROTOTYPES, self.map_spec("prototype_map", seed), {"clusters": vars(clusters)}
        )

    # ---- the maps that are measured -------------------------------------------------------------

    def mean_map(self, schema: Schema, seed: int) -> Centred:
        """Rows less a grey one."""
        grey = jnp.full(schema.slots, 0.5)
        return Centred(grey, MEAN_RADIUS * float(np.sqrt(schema.slots)))

    def class_map(self, schema: Schema, seed: int, centre: np.ndarray) -> Centred:
        """Rows less the mean of all."""
        radius = CLASS_RADIUS * float(np.sqrt(schema.slots))
        return Centred(jnp.asarray(centre, jnp.float32), radius)

    def cluster_map(self, schema: Schema, seed: int, clusters: Mapping[str, Array]) -> ClusterSums:
        """Coarse parts of rows, by their nearest centroid."""
        return ClusterSums(Clusters(**clusters), LOW_RADIUS * float(np.sqrt(schema.slots)))

    def prototype_map(
        self, schema: Schema, seed: int, clusters: Mapping[str, Array]
    ) -> PrototypeSums:
        """Rows less their class's mean, by their nearest centroid."""
        return PrototypeSums(Clusters(**clusters), ROW_RADIUS * float(np.sqrt(schema.slots)))

    def network_map(self, schema: Schema, seed: int, at_prototypes: Array) -> NetworkResiduals:
        """What random networks see in rows, beyond what they see in prototypes."""
        return NetworkResiduals(self._networks(schema, seed), at_prototypes)

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        rng, findings = np.random.default_rng(seed), self._findings(schema, measured, seed)
        start = (
            self._start_at_prototypes(schema, findings, rng)
            if findings.prototypes
            else self._start_at_noise(schema, rng)
        )
        made = self._optimised(schema, findings, start, rng, seed, progress)
        labels = np.repeat(np.arange(len(schema.classes)), self.per_class)
        slots = made.reshape(len(labels), -1).astype(np.float32)
        soft = None
        if self.softness and start.trusted:
            said = features_of(findings.features, slots) @ findings.teacher
            soft = soft_labels(said, labels, self.softness * plenty(self.per_class))
        return Product(
            source=Distilled(slots=slots, labels=labels, soft=soft),
            rows=len(labels),
            measurements=values_of(measured),
        )

    def _start_at_prototypes(
        self, schema: Schema, findings: Findings, rng: np.random.Generator
    ) -> Start:
        """Prototypes as they are or sharpened, whichever networks find nearer to the rows."""
        assert findings.prototypes
        plain, each = findings.prototypes, self.per_class
        enough = max(ENOUGH, plain.rows.shape[1])
        if findings.networks and each >= 2 * enough:
            each = enough
        sharp = sharpened(plain)
        starts = [spread(schema, p, each, rng) for p in (plain, sharp)]
        return Start(
            rows=nearest_start(starts, findings.targets()),
            probes=probe(schema, sharp, PROBES, rng),
            steps=self.steps,
            learning_rate=self.learning_rate,
            smoothness=self.smoothness,
            trusted=findings.networks is not None and known(sharp, findings.targets()) >= TRUST,
        )

    def _start_at_noise(self, schema: Schema, rng: np.random.Generator) -> Start:
        shape = (len(schema.classes), self.per_class, schema.slots)
        rows = np.clip(0.5 + 0.25 * rng.standard_normal(shape), 0, 1)
        # Few rows have much to say each: they go there in more and smaller steps.
        slower = max(1, FEW // self.per_class)
        return Start(
            rows=rows,
            probes=random_pictures(schema, PROBES, rng) if schema.image else np.zeros((0, 0)),
            steps=self.steps * slower,
            learning_rate=self.learning_rate * max(1.0, FARTHER / slower),
            smoothness=0.0,
            trusted=False,
        )

    def _optimised(
        self,
        schema: Schema,
        findings: Findings,
        start: Start,
        rng: np.random.Generator,
        seed: int,
        progress: Progress,
    ) -> np.ndarray:
        """Rows (classes, per_class, slots) that agree with the findings: all of them, or a few that are
        then copied."""
        targets, each = findings.targets(), start.rows.shape[1]
        if len(start.probes):
            seen = eqx.filter_jit(targets.features)(jnp.asarray(start.probes, jnp.float32))
            targets = replace(targets, probes=seen)
        weights = Weights(
            teacher=self.align_weight,
            means=self.match_weight * plenty(each),
            errors=self.error_weight,
            nearness=self.proximity,
        )
        move = partial(align, weights=weights, blur=Blur(schema, start.smoothness), seed=seed)
        made = move(
            start.rows,
            targets,
            steps=start.steps,
            learning_rate=start.learning_rate,
            progress=lambda done: progress("distilling", done),
        )
        if each == self.per_class:
            return made
        return move(
            repeated(schema, made, self.per_class, rng),
            replace(targets, networks=None, seen=None),
            steps=min(COPY_STEPS, start.steps),
            learning_rate=start.learning_rate / 2,
            progress=lambda done: progress("copying", done),
        )

    # ---- what the noisy answers say -----------------------------------------------------------

    def _findings(self, schema: Schema, measured: Mapping[str, Measurement], seed: int) -> Findings:
        """All that a set is made from, each noisy sum read once."""
        findings = Findings(
            features=self.teacher_map(schema, seed), teacher=measured[TEACHER].values
        )
        if PROTOTYPES not in measured:
            return findings
        findings = replace(findings, prototypes=self._prototypes(schema, measured))
        if NETWORKS not in measured:
            return findings
        networks, sums = self._networks(schema, seed), measured[NETWORKS]
        assert findings.prototypes
        base = np.asarray(mean_features(networks, findings.prototypes))
        counts = measured[COUNTS].values
        seen = read_networks(networks, base, sums.values, counts, sums.noise)
        return replace(findings, networks=networks, seen=seen)

    def _centre(self, schema: Schema, found: Mapping[str, Measurement]) -> np.ndarray:
        total = np.asarray([class_weights(found[COUNTS].values)[1]])
        grey, sums = np.full(schema.slots, 0.5), found[MEAN]
        return np.asarray(read_means(schema, grey, sums.values, total, sums.noise)[0])

    def _class_means(self, schema: Schema, found: Mapping[str, Measurement]) -> np.ndarray:
        centre, sums = self._centre(schema, found), found[CLASS_MEANS]
        return read_means(schema, centre, sums.values, found[COUNTS].values, sums.noise)

    def _prototypes(self, schema: Schema, found: Mapping[str, Measurement]) -> Prototypes:
        means, sums = self._class_means(schema, found), found[PROTOTYPES]
        radius = ROW_RADIUS * float(np.sqrt(schema.slots))
        return read_prototypes(schema, means, sums.values, radius, sums.noise)

    # ---- what is measured, from the schema alone -------------------------------------------------

    def teacher_map(self, schema: Schema, seed: int) -> Scattering | Fourier:
        """Features of the teacher, of norm 1."""
        scales = default_length_scales(schema)
        return linear_features(schema, size=self.features, length_scales=scales, seed=seed)

    def _networks(self, schema: Schema, seed: int) -> RandomConvNets:
        assert schema.image
        return RandomConvNets(
            shape=schema.image.shape,
            networks=self.networks,
            width=self.network_width,
            key=jax.random.fold_in(jax.random.key(seed), 2),
        )

    def _parts(self, schema: Schema) -> dict[str, float]:
        """Which measurements besides counts and teacher are made, and in which proportions."""
        if self.goal == "ridge":
            return {}
        return {name: part for name, part in PARTS.items() if schema.image or name != NETWORKS}

    def _teacher_share(self, schema: Schema) -> float:
        return self.teacher_share if self._parts(schema) else 1 - COUNT_SHARE
