"""Scores of a release against real rows: for the owner's eyes, never part of the release."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np

from ..data import Dataset, bare_rows, check_here, persons_in_both, read
from ..errors import DataError, LimbeckError, LimbeckWarning, positive
from ..features import Inception, load_inception
from ..methods import Distilled
from ..progress import Progress
from ..release import Images, Model, Release, certificate_digest, load
from ..schema import counted, fits_of
from ..scores import Scores, battery, strongest
from .predictions import predicted_scores

MISREAD = 0.1
"""Share of a column's test cells that do not fit from which on scores are warned of."""


def evaluate(
    release: Release | Model | str | Path,
    test: object,
    *,
    train: object = None,
    full: bool = False,
    seeds: int | None = None,
    fid: Path | str | None = None,
    progress: Progress = lambda phase, done: None,
) -> Scores:
    """Train on the released rows, test on real ones, and compare distributions.

    Real rows are used without noise, so the scores are internal: not covered by epsilon. Of a model the
    predictions themselves are scored, and nothing else.

    Args:
        release: From `limbeck.distill`, or a model, from `limbeck.classify`; or the folder of one.
        test: Real rows that it was not made from: a frame, a path or arrays, as `limbeck.read`
            takes them, or what it gave.
        train: Real training rows. With them every trained score is repeated on as many real rows.
        full: Images: also ConvNets and four classifiers. Tables: twelve classifiers, not four.
        seeds: Repetitions of scores that draw at random; by default 1, and 3 with `full`.
        fid: A file with the weights of the Inception network (.npz), for images: adds the Frechet
            distance in its features.
        progress: Called with a score and the fraction of it that is done.
    """
    if isinstance(release, str | Path):
        release = load(release)
    if isinstance(release, Model):
        return predicted_scores(release, test, more=(train, full or None, seeds, fid))
    release = Release.of(release)
    seeds = seeds if seeds is not None else 3 if full else 1
    positive(seeds=seeds)
    inception = None if fid is None else _inception(Path(fid), release)
    tested = real_rows(test, release)
    _warn_of_misread(tested)
    control = None if train is None else real_rows(train, release)
    if control is not None and persons_in_both(control, tested):
        warnings.warn(
            "Some persons have rows among the test rows and among the training rows, so scores are too good. Split "
            "a file by persons, not by rows.",
            LimbeckWarning,
            stacklevel=2,
        )
    released = released_data(release)
    scores = battery(
        released, tested, soft=soft_labels_of(release), train=control, full=full, seeds=seeds,
        fid=inception, progress=progress,
    )  # fmt: skip
    epsilon = release.certificate["guarantee"]["epsilon"]
    return Scores(
        dataset=release.schema.dataset,
        epsilon=None if isinstance(epsilon, str) or math.isinf(epsilon) else float(epsilon),
        certificate=certificate_digest(release.certificate),
        released_rows=len(bare_rows(released)),
        test_rows=len(bare_rows(tested)),
        scores=scores,
        pairs=strongest(released, tested),
    )


def _inception(path: Path, release: Release) -> Inception:
    if release.schema.image is None:
        raise LimbeckError("`fid` compares pictures, and this release is a table.")
    return load_inception(path, release.schema.image.shape)


def real_rows(rows: object, release: Release) -> Dataset:
    """Real rows as a data set of the release's schema; those of another schema are refused."""
    data = rows if isinstance(rows, Dataset) else read(rows, release.schema)
    if data.schema.columns != release.schema.columns:
        raise DataError(
            "The real rows were read with another schema than the release's. Read them with "
            "`release.schema`."
        )
    check_here(data)
    return by_column(data)


def by_column(data: Dataset) -> Dataset:
    """The same rows without rules: every column is compared as it is."""
    return data.with_schema(data.schema.without_rules()) if data.schema.rules else data


def _warn_of_misread(tested: Dataset) -> None:
    """Test rows that do not fit the schema are misread as the release's rows were: scores then praise it."""
    states = bare_rows(tested).states
    assert states is not None
    for fit in fits_of(tested.schema.columns, counted(states)):
        if fit.exceeds(MISREAD):
            warnings.warn(
                f"The test rows do not fit the release's schema, so scores mean little: {fit.words} If the "
                "release was made from rows like these, it was made from misread ones.",
                LimbeckWarning,
                stacklevel=3,
            )


def released_data(release: Release, *, rules: bool = False) -> Dataset:
    """The released rows as a data set, by its own columns; with rules by those that methods learn."""
    rows, schema = release.data, release.schema.without_person()
    if not isinstance(rows, Images):
        return read(rows, schema if rules else schema.without_rules())
    if release.schema.label is None:
        return read((rows.images, None), release.schema)
    return read((rows.images, rows.labels), release.schema)


def soft_labels_of(release: Release) -> np.ndarray | None:
    """Shares of the classes (rows, classes) for each released row, if the release has such."""
    return release.source.soft if isinstance(release.source, Distilled) else None


def check_scores(scores: Scores, release: Release) -> None:
    """Refuse scores of another release."""
    if scores.certificate != certificate_digest(release.certificate):
        raise LimbeckError(
            "These scores belong to another release. Run `limbeck evaluate` on this."
        )
