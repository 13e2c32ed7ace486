"""The free part of measure-once: from what was found to a small set of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ...features import features_of
from ...progress import Progress
from ...schema import Schema
from ..tiles import packed, unpacked
from .findings import Findings
from .optimise_set import Canvas, Objective, ObjectiveWeights, nearest_start, optimise_set
from .prototypes import Prototypes
from .start_rows import (
    deformed_prototypes,
    random_images,
    rows_from_prototypes,
    sharpened,
    with_deformed_copies,
)

HALF_WEIGHT_ROWS = 4
"""Rows per class with which class means and soft labels count half; with fewer, far less."""
PROBES = 1000
"""Number of rows at which set and teacher are to agree."""
OPTIMISED_ROWS = 8
"""Rows per class, if there are not more prototypes, that follow what networks measured. Where
twice as many are wanted they would follow its noise as well: the others are deformed copies."""
COPY_STEPS = 30
"""Updates of a set with copies, at half the rate: it only follows the teacher."""
TRUSTED_ACCURACY = 0.7
"""Share of the prototypes, by size, whose class the teacher must get right for its doubts to be taught
as soft labels."""
VIEW_STEPS = 2
"""Updates for one where views were measured: of these an update looks at one alone."""
START_NOISE = 0.1
"""Deviation of what is added to the values of images that follow views, so that copies of one prototype part."""
NOISE_RATE_FACTOR = 2.5
"""Learning-rate factor when rows start from noise: they have farther to go than from prototypes."""


def class_size_factor(per_class: int) -> float:
    """Factor, between 0 and 1, on the weight of class means and on the softness of labels: small where
    a class has few rows.

    A single row cannot be a class's mean; while it tries, it does not teach what it could. Nor should
    it teach other classes.

    >>> [round(class_size_factor(rows), 2) for rows in (1, 2, 4, 10, 50)]
    [0.05, 0.17, 0.5, 0.71, 0.93]
    """
    most = min(1.0, per_class / HALF_WEIGHT_ROWS)
    return per_class / (per_class + HALF_WEIGHT_ROWS) * most


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where a set begins, and how it moves from there."""

    rows: np.ndarray
    """(classes, rows of each, slots); images hold all their pictures already."""
    probes: np.ndarray
    """Rows (probes, slots) at which set and teacher are to agree; none for tables that start from
    noise."""
    steps: int
    """Updates."""
    learning_rate: float
    """Learning rate of the first update."""
    smoothness: float
    """Pixels over which changes are blurred."""
    teacher_trusted: bool
    """Whether the teacher knows the classes well enough for soft labels."""


@dataclass(frozen=True, kw_only=True)
class SmallSet:
    """How a small set is made: the free settings of `MeasureOnce`, which documents them."""

    per_class: int
    tiles: int
    """Pictures along either side of an image."""
    steps: int
    learning_rate: float
    smoothness: float
    weights: ObjectiveWeights
    """Weights of the parts of the disagreement; that of class means for many rows per class."""

    def start(self, schema: Schema, findings: Findings, rng: np.random.Generator) -> Start:
        """At prototypes, where there are some, or else at noise."""
        if findings.prototypes is None:
            return self._start_at_noise(schema, rng)
        return self._start_at_prototypes(schema, findings, findings.prototypes, rng)

    def _start_at_prototypes(
        self, schema: Schema, findings: Findings, plain: Prototypes, rng: np.random.Generator
    ) -> Start:
        """Prototypes as they are or sharpened, whichever networks find nearer to the real rows."""
        each, optimised = self.per_class, max(OPTIMISED_ROWS, plain.rows.shape[1])
        if findings.looked and each >= 2 * optimised:
            each = optimised
        sharp, pictures = sharpened(plain), each * self.tiles**2
        starts = [rows_from_prototypes(schema, p, pictures, rng) for p in (plain, sharp)]
        rows = self._stored(schema, nearest_start(starts, _objective(findings)))
        if findings.views is not None:
            rows = np.clip(rows + START_NOISE * rng.standard_normal(rows.shape), 0, 1)
        accurate = findings.looked and teacher_accuracy(findings, sharp) >= TRUSTED_ACCURACY
        return Start(
            rows=rows,
            probes=deformed_prototypes(schema, sharp, PROBES, rng),
            steps=self.steps * (VIEW_STEPS if findings.views is not None else 1),
            learning_rate=self.learning_rate,
            smoothness=self.smoothness,
            teacher_trusted=bool(accurate),
        )

    def _start_at_noise(self, schema: Schema, rng: np.random.Generator) -> Start:
        shape = (len(schema.classes), self.per_class, schema.slots)
        rows = np.clip(0.5 + 0.25 * rng.standard_normal(shape), 0, 1)
        # Few rows have much to say each: they go there in more and smaller steps.
        slower = max(1, HALF_WEIGHT_ROWS // self.per_class)
        return Start(
            rows=rows,
            probes=random_images(schema, PROBES, rng) if schema.image else np.zeros((0, 0)),
            steps=self.steps * slower,
            learning_rate=self.learning_rate * max(1.0, NOISE_RATE_FACTOR / slower),
            smoothness=0.0,
            teacher_trusted=False,
        )

    def optimised(
        self,
        schema: Schema,
        findings: Findings,
        start: Start,
        rng: np.random.Generator,
        *,
        seed: int,
        progress: Progress,
    ) -> np.ndarray:
        """Rows (classes, per_class, slots) that agree with the findings: all of them optimised, or a
        few that are then copied.

        Args:
            schema: The settled schema.
            findings: What to agree with.
            start: Where to begin.
            rng: Draws the copies' deformations.
            seed: Of what is looked at in each update.
            progress: Called with a phase and a fraction done.
        """
        objective, each = _objective(findings), start.rows.shape[1]
        if len(start.probes):
            probes = jnp.asarray(start.probes, jnp.float32)
            objective = replace(objective, probes=eqx.filter_jit(objective.features)(probes))
        means = self.weights.class_means * class_size_factor(each * self.tiles**2)
        move = partial(
            optimise_set,
            weights=self.weights._replace(class_means=means),
            canvas=Canvas(schema, start.smoothness, self.tiles),
            seed=seed,
        )
        rows = move(
            start.rows,
            objective,
            steps=start.steps,
            learning_rate=start.learning_rate,
            progress=lambda done: progress("distilling", done),
        )
        if each == self.per_class:
            return rows
        pictures = shown(schema, rows.reshape(-1, schema.slots), self.tiles)
        own = pictures.reshape(len(rows), -1, schema.slots)
        copies = with_deformed_copies(schema, own, self.per_class * self.tiles**2, rng)
        return move(
            self._stored(schema, copies),
            objective.blind(),
            steps=min(COPY_STEPS, start.steps),
            learning_rate=start.learning_rate / 2,
            progress=lambda done: progress("copying", done),
        )

    def _stored(self, schema: Schema, pictures: np.ndarray) -> np.ndarray:
        """Images (classes, images of each, slots) that hold the pictures of each class."""
        if self.tiles == 1 or schema.image is None:
            return pictures
        flat = jnp.asarray(pictures.reshape(-1, schema.slots), jnp.float32)
        images = packed(flat, schema.image.shape, self.tiles)
        return np.asarray(images).reshape(len(pictures), -1, schema.slots)


def shown(schema: Schema, stored: np.ndarray, tiles: int) -> np.ndarray:
    """The rows that stored ones show, (rows, slots): themselves, or the pictures that they hold."""
    if tiles == 1 or schema.image is None:
        return stored
    return np.asarray(unpacked(jnp.asarray(stored), schema.image.shape, tiles))


def teacher_accuracy(findings: Findings, prototypes: Prototypes) -> float:
    """Share of the rows, by the sizes of clusters, whose prototype the teacher puts into its class."""
    rows, sizes = prototypes.rows, prototypes.sizes
    phi = features_of(findings.features, rows.reshape(-1, rows.shape[2]).astype(np.float32))
    predicted = (phi @ findings.teacher).argmax(axis=1).reshape(sizes.shape)
    return float(((predicted == np.arange(len(sizes))[:, None]) * sizes).sum() / sizes.sum())


def _objective(findings: Findings) -> Objective:
    return Objective(
        features=findings.features,
        teacher=jnp.asarray(findings.teacher),
        networks=findings.networks,
        network_moments=findings.network_moments,
        views=findings.views,
        view_means=None if findings.view_means is None else jnp.asarray(findings.view_means),
    )
