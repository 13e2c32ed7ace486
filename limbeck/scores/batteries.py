"""Which scores a data set gets: one list for images, one for tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data import Dataset, bare_rows
from ..errors import LimbeckError
from ..features import FullyConnectedNTK, Scattering
from ..progress import Progress
from ..schema import Schema
from .classifiers import FOUR, TWELVE, classifier_scores
from .control import matching_subset
from .convnet import convnet_accuracy
from .correlation import Pair, correlations, pairs_of, strongest_pairs
from .frechet import frechet_distance
from .marginals import discretise, mean_marginal_distance
from .nearest import nearest_distances
from .regressors import regressor_scores
from .ridge import CHUNK, Features, feature_rows, ridge_accuracy
from .scores import BETWEEN, ERROR, REAL, RELEASED, SIZE, Score

RIDGE_ROWS = 5_000
"""Rows a kernel regression learns from at most; drawn at random from larger sets."""
EPOCHS, EPOCH_ROWS = 300, 1_000
"""Epochs of a ConvNet on a set of at most so many images; larger sets get fewer epochs, so that as many
images are seen."""
FRECHET_ROWS = 2_000
"""Rows a Frechet distance is computed from at most, on either side."""
FID_IMAGES = 8
"""Pictures that the Inception network sees at once: enlarged they are large."""
FIGURE_NAMES = {"f1": "F1", "roc_auc": "ROC AUC", "average_precision": "average precision"}
NEAREST_NOTE = "diagnostic only, no evidence of privacy"


@dataclass(frozen=True)
class EvaluatedRows:
    """One side of an evaluation: encoded rows, released or real, with their labels."""

    schema: Schema
    cells: np.ndarray
    codes: np.ndarray
    """Class codes, -1 for none."""
    soft: np.ndarray | None = None
    """Soft labels (rows, classes), where there are some: networks are taught these. Kernel regression is
    taught codes, since that is what distilled images are aligned with."""

    @classmethod
    def of(cls, data: Dataset, soft: np.ndarray | None = None) -> EvaluatedRows:
        rows = bare_rows(data)
        return cls(data.schema, np.asarray(rows.cells), np.asarray(rows.labels), soft)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: np.ndarray) -> EvaluatedRows:
        soft = None if self.soft is None else self.soft[places]
        return EvaluatedRows(self.schema, self.cells[places], self.codes[places], soft)

    def labelled(self) -> EvaluatedRows:
        return self.take(np.flatnonzero(self.codes >= 0))

    def slots(self) -> np.ndarray:
        return self.schema.expand(self.cells)

    def regression(self) -> tuple[np.ndarray, np.ndarray]:
        """Slots of all columns but the target, and the targets."""
        target, slots = self.schema.target, self.slots()
        assert target is not None
        at = next(place for column, place in self.schema.blocks() if column is target)
        values = target.from_unit(slots[:, at.start].astype(np.float64))
        return np.delete(slots, at, axis=1), values


def battery(
    released: Dataset,
    test: Dataset,
    *,
    soft: np.ndarray | None = None,
    train: Dataset | None = None,
    full: bool = False,
    seeds: int = 1,
    fid: Features | None = None,
    progress: Progress = lambda phase, done: None,
) -> tuple[Score, ...]:
    """All scores of released rows against real test rows of the same schema.

    Args:
        released: The rows to judge.
        test: Real rows.
        soft: The released rows' soft labels (rows, classes), for ConvNets.
        train: Real training rows. With them every trained score is repeated on as many real rows.
        full: Images: also ConvNets and four classifiers. Tables: twelve classifiers, not four; a
            target has three regressors either way.
        seeds: Repetitions of scores that draw at random.
        fid: Features for a further Frechet distance, of images.
        progress: Called with a score and the fraction of it that is done.
    """
    ours, theirs = EvaluatedRows.of(released, soft), EvaluatedRows.of(test)
    schema = released.schema
    if not (len(ours) and len(theirs)):
        raise LimbeckError("Expected rows on both sides, released and real.")
    scores: list[Score] = []
    labelled = theirs.labelled()
    if schema.label:
        if not len(labelled):
            raise LimbeckError(
                f"No test row has one of the declared values of '{schema.label.name}'."
            )
        trained = _image_scores if schema.image else _table_scores
        scores += trained(ours.labelled(), labelled, RELEASED, full, seeds, progress)
        if train is not None:
            control = _control(ours.labelled(), EvaluatedRows.of(train).labelled())
            scores += trained(
                control, labelled, REAL, full, seeds, lambda p, d: progress(f"{p}, real rows", d)
            )
    elif schema.target:
        if not len(labelled):
            raise LimbeckError(f"No test row has a value of the target '{schema.target.name}'.")
        scores += _target_scores(ours.labelled(), labelled, RELEASED, seeds, progress)
        if train is not None:
            real = EvaluatedRows.of(train).labelled()
            control = real.take(_at_random(len(real), len(ours)))
            scores += _target_scores(
                control, labelled, REAL, seeds, lambda p, d: progress(f"{p}, real rows", d)
            )
    scores += _distances(ours, theirs, progress)
    if fid is not None:
        progress("Frechet, Inception", 0.0)
        scores.append(_frechet("Frechet, Inception", fid, ours, theirs, chunk=FID_IMAGES))
        progress("Frechet, Inception", 1.0)
    return tuple(scores)


def _control(ours: EvaluatedRows, real: EvaluatedRows) -> EvaluatedRows:
    wanted = np.bincount(ours.codes, minlength=len(ours.schema.classes))
    there = np.bincount(real.codes, minlength=len(wanted))
    if (wanted > there).any():  # a generator may draw more rows than there are: then all of them
        return real
    return real.take(matching_subset(ours.codes, real.codes, seed=0))


def _at_random(rows: int, most: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(rows)[:most]


def _target_scores(
    ours: EvaluatedRows, test: EvaluatedRows, of: str, seeds: int, progress: Progress
) -> Iterator[Score]:
    """Regressors of the target by all other columns, in the target's own units."""
    (x, y), (x_test, y_test) = ours.regression(), test.regression()
    runs = [
        regressor_scores(
            x, y, x_test, y_test, seed=seed,
            progress=lambda done, seed=seed: progress("regressors", (seed + done) / seeds),  # type: ignore[misc]
        )
        for seed in range(seeds)
    ]  # fmt: skip
    for name, figures in runs[0].items():
        for figure in figures:
            values = tuple(run[name][figure] for run in runs)
            yield Score(name=name, figure=figure, values=values, of=of)


def _image_scores(
    ours: EvaluatedRows, test: EvaluatedRows, of: str, full: bool, seeds: int, progress: Progress
) -> Iterator[Score]:
    image = ours.schema.image
    assert image is not None
    classes = len(ours.schema.classes)
    x, y = ours.slots(), ours.codes
    x_test, y_test = test.slots(), test.codes
    some, note = np.arange(len(x)), ""
    if len(x) > RIDGE_ROWS:
        some = np.random.default_rng(0).permutation(len(x))[:RIDGE_ROWS]
        note = f"learnt from {RIDGE_ROWS} random rows"
    kernel = FullyConnectedNTK(depth=1)
    accuracy = ridge_accuracy(x[some], y[some], x_test, y_test, kernel=kernel, classes=classes)
    progress("kernel ridge", 0.5)
    yield Score(
        name="kernel ridge, FC-NTK", figure="accuracy", values=(accuracy,), of=of, note=note
    )
    phi = scattering(ours.schema)
    if phi is not None:
        accuracy = ridge_accuracy(x[some], y[some], x_test, y_test, features=phi, classes=classes)
        yield Score(
            name="kernel ridge, scattering", figure="accuracy", values=(accuracy,), of=of, note=note
        )
    progress("kernel ridge", 1.0)
    if full:
        yield from _convnets(ours, test, of, seeds, progress)
        yield from _table_scores(ours, test, of, False, seeds, progress)


def _convnets(
    ours: EvaluatedRows, test: EvaluatedRows, of: str, seeds: int, progress: Progress
) -> Iterator[Score]:
    assert ours.schema.image is not None
    shape = ours.schema.image.shape
    x, x_test = ours.slots().reshape(-1, *shape), test.slots().reshape(-1, *shape)
    epochs = max(1, EPOCHS * EPOCH_ROWS // max(len(x), EPOCH_ROWS))
    taught, kind = (ours.codes, "") if ours.soft is None else (ours.soft, "soft labels")
    values = []
    for seed in range(seeds):
        values.append(
            convnet_accuracy(
                x, taught, x_test, test.codes, len(ours.schema.classes), seed=seed,
                epochs=epochs, progress=lambda done, seed=seed: progress(  # type: ignore[misc]
                    "ConvNet", (seed + done) / seeds
                ),
            )
        )  # fmt: skip
    yield Score(
        name="ConvNet",
        figure="accuracy",
        values=tuple(values),
        of=of,
        note=", ".join(filter(None, (f"{epochs} epochs", kind))),
    )


def _table_scores(
    ours: EvaluatedRows, test: EvaluatedRows, of: str, full: bool, seeds: int, progress: Progress
) -> Iterator[Score]:
    x, x_test = ours.slots(), test.slots()
    runs = [
        classifier_scores(
            x, ours.codes, x_test, test.codes, len(ours.schema.classes),
            classifiers=TWELVE if full else FOUR, seed=seed,
            progress=lambda done, seed=seed: progress("classifiers", (seed + done) / seeds),  # type: ignore[misc]
        )
        for seed in range(seeds)
    ]  # fmt: skip
    for name, figures in runs[0].items():
        for figure in figures:
            values = tuple(run[name][figure] for run in runs)
            yield Score(name=name, figure=FIGURE_NAMES.get(figure, figure), values=values, of=of)


def _distances(ours: EvaluatedRows, theirs: EvaluatedRows, progress: Progress) -> Iterator[Score]:
    progress("distances", 0.0)
    if not ours.schema.image:
        (codes, sizes), (real, _) = (discretise(t.schema, t.cells, t.codes) for t in (ours, theirs))
        for ways in range(1, min(3, len(sizes) + 1)):
            distance = mean_marginal_distance(codes, real, sizes, ways=ways)
            yield Score(
                name=f"all {ways}-way marginals", figure="total variation", values=(distance,),
                of=BETWEEN,
            )  # fmt: skip
        yield from _correlation_scores(ours, theirs)
    phi = scattering(ours.schema) if ours.schema.image else None
    if phi is not None and min(len(ours), len(theirs)) > 1:
        yield _frechet("Frechet, scattering", phi, ours, theirs)
    median = float(np.median(nearest_distances(ours.slots(), theirs.slots())))
    yield Score(
        name="nearest test row", figure="median distance", values=(median,), of=BETWEEN,
        note=NEAREST_NOTE,
    )  # fmt: skip
    progress("distances", 1.0)


def _correlation_scores(ours: EvaluatedRows, theirs: EvaluatedRows) -> Iterator[Score]:
    released, real = (pairs_of(correlations(t.schema, t.cells, t.codes)[1]) for t in (ours, theirs))
    if len(real):
        sides = (
            (RELEASED, np.abs(released)),
            (REAL, np.abs(real)),
            (BETWEEN, np.abs(released - real)),
        )
        for of, sizes in sides:
            figure = ERROR if of == BETWEEN else SIZE
            mean = (float(sizes.mean()),)
            yield Score(name="correlations of columns", figure=figure, values=mean, of=of)


def strongest(released: Dataset, test: Dataset) -> tuple[Pair, ...]:
    """The pairs of columns that correlate most, released beside real; of a table."""
    if released.schema.image:
        return ()
    sides = [EvaluatedRows.of(data) for data in (released, test)]
    (names, ours), (_, theirs) = (correlations(s.schema, s.cells, s.codes) for s in sides)
    return strongest_pairs(names, ours, theirs)


def scattering(schema: Schema) -> Scattering | None:
    """Scattering features where pictures can be halved twice."""
    image = schema.image
    if image is None or image.height % 4 or image.width % 4 or min(image.height, image.width) < 8:
        return None
    return Scattering(
        height=image.height, width=image.width, channels=image.channels, normalisation="group"
    )


def _frechet(
    name: str, phi: Features, ours: EvaluatedRows, theirs: EvaluatedRows, *, chunk: int = CHUNK
) -> Score:
    """Frechet distance in some features, of at most FRECHET_ROWS rows of either side."""
    sides = []
    for rows in (ours, theirs):
        places = np.random.default_rng(0).permutation(len(rows))[:FRECHET_ROWS]
        sides.append(feature_rows(phi, rows.take(places).slots(), chunk=chunk))
    note = f"{len(sides[0])} released rows, {len(sides[1])} real ones"
    values = (frechet_distance(*sides),)
    return Score(name=name, figure="distance", values=values, of=BETWEEN, note=note)
