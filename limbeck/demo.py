"""The whole road on embedded data: what `limbeck demo` runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from . import datasets
from .accounting import Budget
from .data import Dataset, read
from .errors import LimbeckError
from .ledger import Ledger
from .methods import AbstractMethod, Marginals, MeasureOnce
from .progress import Progress
from .release import Images, Release
from .report import make_report
from .run import distill
from .scores import logistic_score

SOURCE = (
    "a reduced preset of the package; its settings were tried, uncharged, on rows of Adult and MNIST, "
    "and the embedded test digits were looked at when choosing: for demonstration only"
)


@dataclass(frozen=True)
class Course:
    """One part of the demonstration."""

    folder: str
    dataset: str
    method: AbstractMethod


COURSES = (
    Course("table", "adult", Marginals(soft_rows=1000, steps=400)),
    Course(
        "images",
        "mnist-mini",
        MeasureOnce(networks=2, network_width=16, teacher_steps=12, steps=30, smoothness=1.0),
    ),
)
"""In the order in which they are made: what a newcomer should look at comes last."""


@dataclass(frozen=True)
class Served:
    """What came out of one part, with a score for the owner's eyes."""

    course: Course
    release: Release
    path: Path
    page: Path
    """The release's report, which shows nothing that is not in the release."""
    scores: dict[str, float]


def run_course(
    course: Course,
    out: Path,
    ledger: Ledger,
    *,
    force: bool,
    progress: Progress,
) -> Served:
    """Make and score one release, and write a page about it beside it."""
    public = datasets.load(course.dataset)
    target = out / course.folder
    release = distill(
        _dataset(public.train, public.schema),
        course.method,
        Budget(epsilon=1.0, delta=1e-6),
        out=target,
        force=force,
        ledger=ledger,
        settings_source=SOURCE,
        progress=progress,
    )
    progress("scoring", 0.0)
    scores = logistic_score(
        _dataset(release.data, release.schema), _dataset(public.test, release.schema)
    )
    progress("scoring", 1.0)
    page = out / ("report.html" if course is COURSES[-1] else f"report-{course.folder}.html")
    page.write_text(make_report([release], names=[f"{course.folder}/"]), encoding="utf-8")
    return Served(course, release, target, page, scores)


def _dataset(rows: object, schema: object) -> Dataset:
    from .schema import Schema

    assert isinstance(schema, Schema)
    if isinstance(rows, pd.DataFrame):
        return read(rows, schema)
    if isinstance(rows, Images | datasets.Pictures):
        return read((rows.images, rows.labels), schema)
    raise LimbeckError(f"Expected a table or images, got {type(rows).__name__}.")
