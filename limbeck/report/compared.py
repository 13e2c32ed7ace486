"""Several releases of one data set side by side: names, scores against epsilon, the sum of all."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LimbeckError
from ..evaluation import MeasuredScores, check_scores
from ..release import Release, certificate_digest
from ..scores import PLAIN, Scores
from .charts import Point, curve
from .contents import length

MAIN = ("ROC AUC", "accuracy", "R2")
"""Figures a curve shows: the first of these that there is."""


def folder_names(folders: Sequence[Path]) -> list[str]:
    """Names of folders that tell them apart, and no more of this machine's paths than that takes."""
    real = [folder.resolve().parts for folder in folders]
    names = []
    for number, parts in enumerate(real):
        others = [other for at, other in enumerate(real) if at != number]
        depth = next(
            (d for d in range(1, len(parts) + 1) if all(o[-d:] != parts[-d:] for o in others)), None
        )
        if depth is None:
            raise LimbeckError(f"{parts[-1]} was given twice. Name each release once.")
        names.append("/".join(parts[-depth:]) + "/")
    return names


def check_one_dataset(releases: Sequence[Release]) -> None:
    """Refuse to compare releases of different data sets: neither scores nor epsilons are of one kind."""
    names = list(dict.fromkeys(release.schema.dataset for release in releases))
    if len(names) > 1:
        raise LimbeckError(
            f"These releases are of different data sets ('{names[0]}' and '{names[1]}'). Compare "
            "releases of one, and make a page for each other."
        )


def matched(releases: Sequence[Release], scores: Sequence[Scores]) -> list[Scores | None]:
    """Internal scores by the release they belong to; those of none are refused."""
    by_digest = {s.certificate: s for s in scores}
    its_scores = [by_digest.pop(certificate_digest(r.certificate), None) for r in releases]
    for left in by_digest.values():
        check_scores(left, releases[0])  # says that they belong to another release
    return its_scores


def table(
    releases: Sequence[Release], names: Sequence[str], scores: Sequence[Scores | None]
) -> list[dict[str, str]]:
    """One line per release."""
    figure = _main_figure(scores)
    rows = []
    for release, name, of_it in zip(releases, names, scores, strict=True):
        guarantee = release.certificate["guarantee"]
        means = [
            s.mean
            for s in (of_it.scores if of_it else ())
            if s.of == "released" and s.figure == figure
        ]
        rows.append(
            {
                "name": name,
                "epsilon": number(guarantee["epsilon"]),
                "delta": number(guarantee["delta"]),
                "method": release.certificate["method"]["name"],
                "rows": f"{length(release):,}",
                "score": _short(float(np.mean(means)), figure) if means else "",
                "figure": figure or "",
            }
        )
    return rows


def together(
    releases: Sequence[Release], measured: Sequence[MeasuredScores]
) -> dict[str, Any] | None:
    """What all of them reveal to one who has them all: epsilons and deltas add up.

    Sets that were made of the same measurements were paid for once and count once. None where
    guarantees speak of different neighbours.
    """
    paid: dict[str, Mapping[str, Any]] = {}
    for release in releases:
        paid[_payment(release)] = release.certificate["guarantee"]
    count = len(paid)
    for scores in measured:
        paid[certificate_digest(scores.certificate)] = scores.certificate["guarantee"]
    if len({guarantee["adjacency"] for guarantee in paid.values()}) > 1:
        return None
    return {
        "epsilon": number(_added(paid.values(), "epsilon")),
        "delta": number(_added(paid.values(), "delta")),
        "shared": count < len(releases),
        "measured": bool(measured),
    }


def _added(guarantees: Any, name: str) -> float | str:
    return next(
        (g[name] for g in guarantees if isinstance(g[name], str)),
        math.fsum(0.0 if isinstance(g[name], str) else g[name] for g in guarantees),
    )


def _payment(release: Release) -> str:
    """Equal for releases made of the same noisy measurements."""
    if not release.measurements:
        return certificate_digest(release.certificate)
    digest = hashlib.sha256()
    for name, values in sorted(release.measurements.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def score_curve(
    releases: Sequence[Release], scores: Sequence[Scores | None]
) -> dict[str, Any] | None:
    """Scores against epsilon, where there are two points at least."""
    figure = _main_figure(scores)
    lines: dict[str, list[Point]] = {}
    for release, of_it in zip(releases, scores, strict=True):
        epsilon = release.certificate["guarantee"]["epsilon"]
        if of_it is None or isinstance(epsilon, str):
            continue
        for s in of_it.scores:
            if s.of == "released" and s.figure == figure:
                lines.setdefault(s.name, []).append(Point(float(epsilon), s.mean, s.spread))
    series = [(name, points) for name, points in lines.items() if len(points) > 1][:6]
    if not series:
        return None
    return {"figure": figure, "names": [name for name, _ in series], "chart": curve(series)}


def _short(mean: float, figure: str | None) -> str:
    return f"{mean:.3f}" if figure in PLAIN else f"{100 * mean:.1f}"


def _main_figure(scores: Sequence[Scores | None]) -> str | None:
    there = {s.figure for f in scores if f for s in f.scores if s.of == "released"}
    return next((f for f in MAIN if f in there), None)


def number(value: float | str) -> str:
    """An epsilon or delta, as short as can be."""
    return "∞" if isinstance(value, str) else f"{value:g}".replace("e-0", "e-")
