"""The scores of the papers' tables, by name: rows in, figures out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..data import bare_rows
from ..datasets import Mixture
from ..features import Scattering
from ..methods import AbstractKernelMethod
from ..scores import (
    CREDIT,
    TWELVE,
    Classifier,
    classifier_scores,
    cnn_accuracy,
    convnet_accuracy,
    discretise,
    feature_rows,
    frechet_distance,
    mean_marginal_distance,
    mean_scores,
    mixture_nll,
    ridge_accuracy,
)
from .bench import Bench, NotRun
from .exhibit import Cell
from .making import TrainingRows

PAIR = tuple(c for c in TWELVE if c.name in ("logistic regression", "multi-layer perceptron"))
RIDGE = 1e-3
EPOCHS, EPOCH_ROWS = 300, 1_000
"""A ConvNet sees at most EPOCHS times so many images; larger sets get fewer epochs."""
CNN_TRAINING: dict[str, Any] = {"epochs": 10, "learning_rate": 0.05, "batch": 64}
"""How paper 003's CNN is trained: its 600 epochs of 100,000 images would take days here. Rate times
steps is about the paper's."""
FRECHET_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class Task:
    """A cell of a paper's table to be scored: its data, and the rows that a learner is trained on."""

    cell: Cell
    bench: Bench
    rows: TrainingRows
    seed: int
    progress: Callable[[float], None]

    @property
    def classes(self) -> int:
        return len(self.bench.schema.classes)


def ridge(task: Task) -> dict[str, float]:
    """Kernel ridge regression: with the method's own kernel, else with scattering features."""
    rows, (x_test, y_test) = task.rows, task.bench.rows("test")
    targets = rows.labels if rows.targets is None else rows.targets
    method, release = rows.method, rows.release
    if not isinstance(method, AbstractKernelMethod) or release is None:
        phi = _scattering(task)
        accuracy = ridge_accuracy(
            rows.slots, targets, x_test, y_test, features=phi, classes=task.classes, ridge=RIDGE
        )
        return {"accuracy": accuracy}
    view = method.view(release.schema)
    kernel = method.kernel.function(release.schema, release.certificate["method"]["public_seed"])
    with jax.enable_x64(True):  # small ridges: kernels in float32 would lose the answer
        sides = [view(np.asarray(x, np.float64)) for x in (rows.slots, x_test)]
        how = {"features": kernel.features} if hasattr(kernel, "features") else {"kernel": kernel}
        if "features" in how:
            sides = [side.astype(np.float32) for side in sides]
        accuracy = ridge_accuracy(
            sides[0], targets, sides[1], y_test, ridge=method.ridge, classes=task.classes, **how
        )
    return {"accuracy": accuracy}


def convnet(task: Task) -> dict[str, float]:
    """A fresh ConvNet per seed, last epoch; with soft labels where the release has some."""
    x, x_test, y_test = _images(task)
    targets = task.rows.labels if task.rows.soft is None else task.rows.soft
    epochs = max(1, EPOCHS * EPOCH_ROWS // max(len(x), EPOCH_ROWS))
    accuracy = convnet_accuracy(
        x, targets, x_test, y_test, task.classes, seed=task.seed, epochs=epochs,
        augment=task.cell.augment, progress=task.progress,
    )  # fmt: skip
    return {"accuracy": accuracy}


def cnn(task: Task) -> dict[str, float]:
    """The CNN of paper 003, last epoch of fewer."""
    x, x_test, y_test = _images(task)
    accuracy = cnn_accuracy(
        x, task.rows.labels, x_test, y_test, task.classes, seed=task.seed, progress=task.progress,
        **CNN_TRAINING,
    )  # fmt: skip
    return {"accuracy": accuracy}


def classifiers(these: tuple[Classifier, ...]) -> Callable[[Task], dict[str, float]]:
    """Figures of each classifier, and their means."""

    def score(task: Task) -> dict[str, float]:
        x_test, y_test = task.bench.rows("test")
        scores = classifier_scores(
            task.rows.slots, task.rows.labels, x_test, y_test, task.classes,
            classifiers=these, seed=task.seed, progress=task.progress,
        )  # fmt: skip
        each = {f"{name}: {k}": v for name, figures in scores.items() for k, v in figures.items()}
        return each | mean_scores(scores)

    return score


def marginals(task: Task) -> dict[str, float]:
    """Mean total variation over all marginals of as many columns as the figure says."""
    ways = int(task.cell.figure.partition("-")[0])
    schema, real = task.bench.schema, bare_rows(task.bench.train)
    cells = schema.collapse(task.rows.slots, np.random.default_rng(task.seed))
    ours, sizes = discretise(schema, cells, task.rows.labels)
    theirs, _ = discretise(schema, np.asarray(real.cells), np.asarray(real.labels))
    return {task.cell.figure: mean_marginal_distance(ours, theirs, sizes, ways=ways)}


def likelihood(task: Task) -> dict[str, float]:
    """Negative log likelihood of as many points as there are training rows, by the true density and by
    the one that paper 002's code takes for it."""
    schema = task.bench.schema
    truth = Mixture.named(task.bench.name)
    spans = np.asarray([c.range for c in schema.inputs])  # type: ignore[union-attr]
    points = spans[:, 0] + task.rows.slots * (spans[:, 1] - spans[:, 0])
    total = mixture_nll(
        points,
        truth.means,
        deviation=truth.deviation,
        labels=task.rows.labels,
        mean_labels=truth.labels,
    )
    each = total / len(points)
    # Paper 002's code normalises each Gaussian as if it had one dimension.
    published = each - (points.shape[1] - 1) * np.log(np.sqrt(2 * np.pi) * truth.deviation)
    rows = schema.rows or len(points)
    return {"nll": each * rows, "nll as published": published * rows}


def frechet(task: Task) -> dict[str, float]:
    """Frechet distance to test images, in scattering features."""
    phi = _scattering(task)
    sides = []
    for slots in (task.rows.slots, task.bench.rows("test")[0]):
        some = np.random.default_rng(task.seed).permutation(len(slots))[:FRECHET_ROWS]
        sides.append(feature_rows(phi, slots[some]))
    return {"distance": frechet_distance(*sides)}


SCORES: dict[str, Callable[[Task], dict[str, float]]] = {
    "ridge": ridge,
    "convnet": convnet,
    "cnn": cnn,
    "twelve": classifiers(TWELVE),
    "pair": classifiers(PAIR),
    "credit": classifiers(CREDIT),
    "marginals": marginals,
    "likelihood": likelihood,
    "frechet": frechet,
}
ONE_FIGURE = ("marginals",)
"""Scores that compute only the figure that the cell asks for."""


def _scattering(task: Task) -> Scattering:
    image = task.bench.schema.image
    if image is None:
        raise NotRun("this score is for images")
    height, width, channels = image.shape
    return Scattering(height=height, width=width, channels=channels, normalisation="group")


def _images(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    image = task.bench.schema.image
    if image is None:
        raise NotRun("this score is for images")
    x_test, y_test = task.bench.rows("test")
    shape = (-1, *image.shape)
    return task.rows.slots.reshape(shape), x_test.reshape(shape), y_test
