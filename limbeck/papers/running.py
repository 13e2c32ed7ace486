"""Run a table or figure of a paper again, cell by cell, cached and resumable."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import datasets
from ..errors import LimbeckError, LimbeckWarning, positive
from ..methods import AbstractKernelMethod
from ..progress import Progress
from ..scores import TWELVE
from .bench import EXTRA, NotRun, bench, missing
from .classifier import REMARK, classifier_code, classifier_identity, score_classifier
from .code import code_digest
from .exhibit import Cell, Exhibit
from .keep import Keep
from .kernelerror import kernel_errors
from .making import (
    fewer_rows,
    learned_rows,
    made_identity,
    make_release,
    make_rows,
    method_of,
    recipe_path,
    release_code,
    release_identity,
    unpaid_of,
)
from .result import DONE, QUOTED, Report, Result
from .scoring import ONE_FIGURE, SCORES, Task

SIZES: dict[str, Callable[[str], int]] = {
    "rows": lambda name: datasets.schema(name).rows or 0,
    "classes": lambda name: len(datasets.schema(name).classes),
    "features": lambda name: len(datasets.schema(name).inputs),
}

SCORES_ROOM = "limbeck.scores"
"""Room whose code takes part in every score: a change in it makes all of them anew."""


TAKES = "takes about"
"""What a cell's note begins with that only its time keeps from being run."""


@dataclass(frozen=True)
class Estimate:
    """How much a run would compute, known before it begins."""

    run: int
    cached: int
    left_out: int
    minutes: float


def estimate(
    exhibit: Exhibit, *, quick: bool = False, seeds: int | None = None, only: str = "", cache: Path | None = None
) -> Estimate:  # fmt: skip
    """How many cells would be run, how many are known already, and about how long it takes."""
    keep, each = Keep(cache), _seeds(seeds, 1 if quick else exhibit.runs)
    run = known = left = 0
    minutes, counted = 0.0, set()
    for cell in exhibit.cells:
        try:
            _check(cell, quick, only)
            if exhibit.kind == "data":
                continue
            if exhibit.kind == "pictures":
                there = _known(exhibit, cell, quick, each, keep)
                known, run = known + there, run + (not there)
                minutes += 0.0 if there else minutes_of(cell, quick)
                continue
            for seed in range(each):
                identity = identity_of(cell, seed, quick)
                if keep.load(identity, code_of(cell, quick)) is not None:
                    known += 1
                    continue
                run += 1
                if str(identity) not in counted:  # several figures of one score are one run
                    counted.add(str(identity))
                    minutes += minutes_of(cell, quick)
        except NotRun:
            left += 1
    return Estimate(run, known, left, minutes)


def reproduce(
    exhibit: Exhibit,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: str = "",
    cache: Path | None = None,
    known: bool = False,
    progress: Progress = lambda phase, done: None,
    each: Callable[[Result], None] = lambda result: None,
) -> Report:
    """Our numbers beside the paper's.

    Args:
        exhibit: From `find`.
        quick: Only the cells marked for that, with reduced settings where they have some.
        seeds: Repetitions; by default 1 with `quick`, else as many as the paper averages, at most 5.
        only: Run only cells whose row or column contains this text.
        cache: Folder of releases and scores; by default in the user's cache folder.
        known: Run nothing: only show what earlier runs found, by today's code or another. With `quick`,
            too, a figure at full settings is preferred, of however many of the repetitions there are.
        progress: Called with a cell and the fraction of it that is done.
        each: Called with each result as it is found.
    """
    keep, count = Keep(cache), _seeds(seeds, 1 if quick else exhibit.runs)
    results = []
    if exhibit.kind == "settings":
        results = _settings(exhibit)
    elif exhibit.kind == "kernel error":
        results = kernel_errors()
    elif exhibit.kind == "drawing":
        results = [
            Result(cell=Cell(row="drawing", column=""), note="it shows no result: nothing to run")
        ]
    number = len(exhibit.cells)
    for place, cell in enumerate(exhibit.cells):
        cell_phase = f"{place + 1}/{number} {cell.name}"
        with warnings.catch_warnings():
            # The papers' own deltas on public data: nobody is to be warned of them.
            warnings.simplefilter("ignore", LimbeckWarning)
            result = _result(exhibit, cell, quick, count, only, keep, known, cell_phase, progress)
        results.append(result)
        each(result)
    return Report(exhibit=exhibit, results=tuple(results), quick=quick)


def _result(
    exhibit: Exhibit,
    cell: Cell,
    quick: bool,
    seeds: int,
    only: str,
    keep: Keep,
    known: bool,
    phase: str,
    progress: Progress,
) -> Result:
    if known and quick and _known(exhibit, cell, False, seeds, keep):
        quick = False
    try:
        _check(cell, quick and not known, only)
        if exhibit.kind == "data":
            return Result(cell=cell, status=DONE, values=(SIZES[cell.figure](cell.data),))
        if known and not _known(exhibit, cell, quick, seeds, keep):
            raise NotRun(_ahead(cell, quick and cell.quick))
        if exhibit.kind == "pictures":
            return _picture(cell, quick, keep, phase, progress)
        values, seconds, older = [], 0.0, ""
        for seed in range(seeds):
            begun = time.perf_counter()
            inner = _inside(progress, phase, seed, seeds)
            score, made = _scored(cell, seed, quick, keep, inner, known)
            older = older or made
            seconds += score.get("seconds", time.perf_counter() - begun)
            if cell.figure not in score["figures"]:
                raise NotRun(f"the score gives no '{cell.figure}' here")
            factor = 100.0 if exhibit.percent else 1.0
            values.append(factor * score["figures"][cell.figure])
        progress(phase, 1.0)
        return Result(
            cell=cell, status=DONE, values=tuple(values), reduced=_reduced(cell, quick),
            older=older, note=_remark(cell, quick), seconds=seconds,
        )  # fmt: skip
    except NotRun as reason:
        if cell.making == "quoted":
            return Result(cell=cell, status=QUOTED)
        return Result(cell=cell, note=str(reason))
    except LimbeckError as error:  # one cell that cannot be made does not stop the others
        return Result(cell=cell, note=str(error))


def _check(cell: Cell, quick: bool, only: str) -> None:
    """Refuse, by `NotRun`, a cell of which it is known beforehand that it cannot or shall not be run."""
    if cell.making == "quoted":
        raise NotRun("quoted by the paper from elsewhere")
    if cell.making == "method" and cell.method + cell.recipe:
        method_of(cell, quick=quick)
    if reason := missing(cell.data):
        raise NotRun(reason)
    if quick and not cell.quick:
        raise NotRun("not in --quick")
    if only and only not in cell.name:
        raise NotRun("left out by --only")


def _known(exhibit: Exhibit, cell: Cell, quick: bool, seeds: int, keep: Keep) -> bool:
    """Whether earlier runs found all that the cell needs; scores by whatever code."""
    try:
        if exhibit.kind == "pictures":
            return _picture_folder(cell, quick, keep).exists()
        return all(keep.record(identity_of(cell, seed, quick)) is not None for seed in range(seeds))
    except (LimbeckError, NotRun):
        return False


def _ahead(cell: Cell, quick: bool) -> str:
    """What keeps a cell that may be run from having been run: data that are elsewhere, or its time."""
    if cell.data not in EXTRA and not datasets.here(cell.data):
        return f"data not here: {cell.data} would be downloaded"
    minutes = max(minutes_of(cell, quick), 1.0)
    long = f"{minutes / 60:.0f} hours" if minutes > 90 else f"{math.ceil(minutes)} minutes"
    how = ", reduced" if _reduced(cell, quick) else ""
    return f"{TAKES} {long} on two cores{how}"


def _reduced(cell: Cell, quick: bool) -> bool:
    return quick and (bool(cell.reduced) or fewer_rows(cell))


def _remark(cell: Cell, quick: bool) -> str:
    remarks = [REMARK] if cell.making == "classifier" else []
    if cell.making == "method":
        remarks.append(method_of(cell, quick=quick)[1])
        unpaid = unpaid_of(cell)
        remarks.append(unpaid and f"*unpaid*: {unpaid}")
    if quick and cell.reduced:
        remarks.append(", ".join(f"{k} = {v}" for k, v in cell.reduced.items()))
    if quick and fewer_rows(cell):
        remarks.append(f"classifiers see {cell.reduced_rows:,} rows")
    return "; ".join(filter(None, remarks))


def _scored(
    cell: Cell, seed: int, quick: bool, keep: Keep, progress: Progress, known: bool
) -> tuple[dict[str, Any], str]:
    """Figures of a cell's score, from the cache or computed and kept; and, where `known` allows other code
    than today's, which made them."""
    identity, code = identity_of(cell, seed, quick), code_of(cell, quick)
    score = keep.load(identity, code)
    if score is not None:
        return score, ""
    if known and (record := keep.record(identity)) is not None:
        return record["found"], ", ".join(filter(None, (record["commit"], record["date"])))
    stand = bench(cell.data)
    begun = time.perf_counter()
    if cell.making == "classifier":
        figures = score_classifier(cell, stand, seed=seed, keep=keep, progress=progress)
    else:
        rows = make_rows(cell, stand, seed=seed, quick=quick, keep=keep, progress=progress)
        task = Task(cell, stand, rows, seed, lambda done: progress(cell.score, done))
        figures = SCORES[cell.score](task)
    score = {"figures": figures, "seconds": time.perf_counter() - begun}
    if cell.making == "method":
        score["settings"] = method_of(cell, quick=quick)[0].settings()
    keep.save(identity, score, code)
    return score, ""


def identity_of(cell: Cell, seed: int, quick: bool) -> dict[str, object]:
    """All that a cell's score depends on but the code."""
    if cell.making == "classifier":
        return classifier_identity(cell, seed)
    if cell.making == "real":
        rows: object = ["real", cell.data, cell.per_class, seed]
    else:
        rows = made_identity(cell, seed, quick)
    figure = cell.figure if cell.score in ONE_FIGURE else ""
    return {
        "kind": "score",
        "made": rows,
        "score": cell.score,
        "rows": learned_rows(cell, quick),
        "augment": cell.augment,
        "figure": figure,
        **({"decoded": True} if cell.decoded else {}),
    }


def code_of(cell: Cell, quick: bool) -> list[str]:
    """Digests of the code that makes a cell's score."""
    if cell.making == "classifier":
        return classifier_code()
    making = [] if cell.making == "real" else release_code(method_of(cell, quick=quick)[0])
    return [*making, code_digest(SCORES_ROOM), code_digest(Task.__module__, alone=True)]


def _picture_folder(cell: Cell, quick: bool, keep: Keep) -> Path:
    method, _ = method_of(cell, quick=quick)
    return keep.release(release_identity(cell, method, 0) | {"code": release_code(method)})


def _picture(cell: Cell, quick: bool, keep: Keep, phase: str, progress: Progress) -> Result:
    stand = bench(cell.data)
    method, _ = method_of(cell, quick=quick)
    begun = time.perf_counter()
    make_release(cell, method, stand, seed=0, keep=keep, progress=_inside(progress, phase, 0, 1))
    folder = _picture_folder(cell, quick, keep)
    progress(phase, 1.0)
    return Result(
        cell=cell, status=DONE, text=str(folder / "contact-sheet.png"), note=_remark(cell, quick),
        reduced=_reduced(cell, quick), seconds=time.perf_counter() - begun,
    )  # fmt: skip


def _settings(exhibit: Exhibit) -> list[Result]:
    """Where the settings of a table are kept here."""
    results = []
    for name in exhibit.recipes:
        path = recipe_path(name)
        cell = Cell(row=name, column="recipe")
        note = "" if path else "no such recipe in this version"
        results.append(
            Result(cell=cell, status=DONE if path else "not run", text=path or "", note=note)
        )
    if exhibit.classifiers:
        cell = Cell(row="classifiers", column="one fixed setting each")
        text = ", ".join(c.name for c in TWELVE)
        results.append(Result(cell=cell, status=DONE, text=text, note="AdaBoost is SAMME now"))
    return results


def _inside(progress: Progress, cell: str, seed: int, seeds: int) -> Progress:
    """Progress of the whole cell from that of one seed's phases. How many phases there are is not known:
    each is taken to need half of what is left."""
    phases: list[str] = []

    def report(phase: str, done: float) -> None:
        if phase not in phases:
            phases.append(phase)
        before = 1 - 2.0 ** -(len(phases) - 1)
        share = before + (1 - before) / 2 * min(done, 1.0)
        progress(cell, min((seed + share) / seeds, 0.999))

    return report


def _seeds(wanted: int | None, usual: int) -> int:
    count = wanted if wanted is not None else min(usual, 5)
    positive(seeds=count)
    return count


def minutes_of(cell: Cell, quick: bool) -> float:
    """About how long a cell takes on two cores."""
    if _reduced(cell, quick) and cell.reduced_minutes is not None:
        return cell.reduced_minutes
    if cell.pace:
        return _paced(cell, quick)
    return cell.minutes if math.isfinite(cell.minutes) else 0.0


def _paced(cell: Cell, quick: bool) -> float:
    """Minutes by the cell's own settings: steps, learned rows, and the time that each takes."""
    method, _ = method_of(cell, quick=quick)
    assert isinstance(method, AbstractKernelMethod)
    schema = datasets.schema(cell.data)
    steps = max(asked.question.steps for asked in method.questions(schema))
    return cell.pace * steps * method.support_size(schema) / 60
