"""What a cell is scored on: a release, made once and kept, or real rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..accounting import Budget
from ..data import bare_rows, read
from ..errors import LimbeckError
from ..evaluation import released_data
from ..ledger import Ledger
from ..methods import METHODS, AbstractMeasureOnce, AbstractMethod, Distilled, overlaid
from ..progress import Progress
from ..release import Images, Release
from ..run import Recipe, distill, make_method, packaged_recipes, redistill
from .bench import Bench, NotRun, declared_rows, delta_of
from .code import code_digest
from .exhibit import Cell
from .keep import Keep

DISTILLING = "limbeck.privacy"
"""Room whose code takes part in every release: a change in it makes all of them anew."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Encoded rows that a score's learner is trained on, real or released."""

    slots: np.ndarray
    labels: np.ndarray
    targets: np.ndarray | None = None
    """Learned labels of a kernel's learner, where the method makes some."""
    soft: np.ndarray | None = None
    """Soft labels for networks, where the method makes some."""
    release: Release | None = None
    method: AbstractMethod | None = None


def method_of(cell: Cell, *, quick: bool) -> tuple[AbstractMethod, str]:
    """The method with the cell's settings, and a remark on where they came from.

    Raises:
        NotRun: The method is not in this version, or has no such setting.
    """
    if cell.method and cell.method not in METHODS:
        raise NotRun("method not in this version")
    try:
        recipe = _recipe_of(cell)
        if recipe is None and not cell.method:
            raise NotRun(f"no recipe {cell.recipe} in this version")
        name = cell.method if recipe is None else recipe.method.name
        remark = f"default settings: no recipe {cell.recipe}" if cell.recipe and not recipe else ""
        return make_method(name, given_settings(cell, quick=quick)), remark
    except LimbeckError as error:
        raise NotRun(str(error)) from None


def given_settings(cell: Cell, *, quick: bool) -> dict[str, Any]:
    """The settings that the cell and its recipe set; the others are the method's defaults."""
    recipe = _recipe_of(cell)
    given = overlaid({}, recipe.given if recipe else {})
    return overlaid(overlaid(given, cell.settings), cell.reduced if quick else {})


def recipe_path(name: str) -> str | None:
    """A recipe by its name, with the variant after '#' kept; None where there is no such file."""
    stem, _, variant = name.partition("#")
    path = packaged_recipes().get(stem)
    if path is None:
        return None
    return f"{path}#{variant}" if variant else str(path)


def unpaid_of(cell: Cell) -> str:
    """What the cell's recipe read off the rows without paying for it; "": nothing."""
    recipe = _recipe_of(cell)
    return "" if recipe is None else recipe.unpaid


def _recipe_of(cell: Cell) -> Recipe | None:
    try:
        return _recipe(cell.recipe) if cell.recipe else None
    except LimbeckError:
        if cell.method:  # a recipe without this variant: the method's defaults then
            return None
        raise


@cache
def _recipe(name: str) -> Recipe | None:
    path = recipe_path(name)
    return None if path is None else Recipe.load(path)


def make_rows(
    cell: Cell, bench: Bench, *, seed: int, quick: bool, keep: Keep, progress: Progress
) -> TrainingRows:
    """Rows of a cell: real ones, or those of its release."""
    learned = learned_rows(cell, quick)
    if cell.making == "real":
        return _real(cell, bench, seed, learned)
    method, _ = method_of(cell, quick=quick)
    release = make_release(cell, method, bench, seed=seed, keep=keep, progress=progress)
    return _released(release, method, seed, learned, exact=not cell.decoded)


def make_release(
    cell: Cell, method: AbstractMethod, bench: Bench, *, seed: int, keep: Keep, progress: Progress
) -> Release:
    """The cell's release: from the cache, else made, resumably, and kept there.

    Methods that measure once pay once: cells that differ in free settings alone are made from the
    measurements of whichever came first.
    """
    identity = release_identity(cell, method, seed) | {"code": release_code(method)}
    folder = keep.release(identity)
    if folder.exists():
        return Release.load(folder)
    fixed = None
    if isinstance(method, AbstractMeasureOnce):
        bare = {k: v for k, v in method.settings().items() if k not in method.free}
        fixed = identity | {"settings": bare}
        given = keep.measured(fixed)
        if given is not None:
            free = {k: v for k, v in method.settings().items() if k in method.free}
            return redistill(Release.load(given), free, out=folder, progress=progress)
    release = distill(
        bench.train,
        method,
        Budget(cell.epsilon, delta_of(cell.data, cell.delta)),
        out=folder,
        seed=seed,
        non_private=math.isinf(cell.epsilon),
        ledger=Ledger(keep.ledger(identity)),
        settings_source="limbeck reproduce: a benchmark on public data",
        unpaid=unpaid_of(cell),
        check=False,  # the papers spend all on the method
        progress=progress,
    )
    if fixed is not None:
        keep.remember(fixed, folder)
    return release


def made_identity(cell: Cell, seed: int, quick: bool) -> dict[str, object]:
    """What a cell's release is asked for by. Defaults are not named: they are part of the code that made it,
    so that figures stay known, as another code's, when a method gets a setting more."""
    method, _ = method_of(cell, quick=quick)
    asked = release_identity(cell, method, seed)
    del asked["settings"]
    return asked | {"given": given_settings(cell, quick=quick)}


def release_identity(cell: Cell, method: AbstractMethod, seed: int) -> dict[str, object]:
    return {
        "data": cell.data,
        "method": method.name,
        "settings": method.settings(),
        "epsilon": cell.epsilon,
        "delta": delta_of(cell.data, cell.delta),
        "seed": seed,
    }


def release_code(method: AbstractMethod) -> list[str]:
    """Digests of the code that makes a release: the method's, and that which answers it."""
    return [code_digest(type(method).__module__), code_digest(DISTILLING)]


def _released(
    release: Release, method: AbstractMethod, seed: int, learned: int | None, *, exact: bool
) -> TrainingRows:
    source = release.source
    if isinstance(source, Distilled) and exact:  # the numbers as a learner gets them
        return TrainingRows(
            source.slots, source.labels, source.targets, source.soft, release, method
        )
    data = released_data(release)
    if learned is not None:
        drawn = release.sample(learned, seed=seed)
        plain = (drawn.images, drawn.labels) if isinstance(drawn, Images) else drawn
        data = read(plain, release.schema)
    rows = bare_rows(data)  # released rows: nothing private about them
    kept = np.flatnonzero(rows.labels >= 0)
    return TrainingRows(
        release.schema.expand(rows.cells[kept]), rows.labels[kept], release=release, method=method
    )


def learned_rows(cell: Cell, quick: bool) -> int | None:
    """How many rows a cell's score learns from; None: all."""
    return cell.reduced_rows if quick and fewer_rows(cell) else cell.score_rows


def fewer_rows(cell: Cell) -> bool:
    """Whether `--quick` takes some of the cell's rows away: never those of a small, fixed set."""
    if cell.reduced_rows is None or cell.reduced_rows >= declared_rows(cell.data):
        return False
    if cell.making == "method" and method_of(cell, quick=True)[0].fixed_size:
        return False
    return cell.score_rows is None or cell.score_rows > cell.reduced_rows


def _real(cell: Cell, bench: Bench, seed: int, rows: int | None) -> TrainingRows:
    """Real training rows: all, so many of each class, or so many at random."""
    slots, labels = bench.rows("train")
    rng = np.random.default_rng(seed)
    if cell.per_class is not None:
        each = [np.flatnonzero(labels == c) for c in range(len(bench.schema.classes))]
        at = np.concatenate([rng.choice(places, cell.per_class, False) for places in each])
        return TrainingRows(slots[at], labels[at])
    if rows is not None:
        at = rng.permutation(len(labels))[:rows]
        return TrainingRows(slots[at], labels[at])
    return TrainingRows(slots, labels)
