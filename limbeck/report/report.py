"""One self-contained HTML page about a release: no network, no scripts, nothing to install.

Without scores and real rows it shows only what the release itself holds, and may travel with it. With them
it is internal, and says so at the top.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..data import Dataset, bare_rows, png_strip
from ..errors import DataError, LimbeckError
from ..evaluation import MeasuredScores, check_scores, released_data
from ..release import Images, Release, certificate_digest
from ..schema import Category, Column
from ..scores import Scores, discretise
from .charts import Point, curve, histogram, score_bar, shares_bar, value_bar

PICTURES = 10
"""Images shown per class."""
COLUMNS, VALUES, ROWS = 60, 6, 6
"""Columns, values of a category, and sample rows shown."""
MAIN = ("ROC AUC", "accuracy")
"""Figures a curve shows: the first of these that there is."""


def make_report(
    releases: Sequence[Release],
    *,
    names: Sequence[str] | None = None,
    scores: Sequence[Scores] = (),
    measured: Sequence[MeasuredScores] = (),
    real: Dataset | None = None,
) -> str:
    """The page, as HTML.

    Args:
        releases: The release to show; further ones are compared with it.
        names: Their folders, as the page should call them.
        scores: Of any of these releases, from `limbeck.evaluate`. Makes the page internal.
        measured: Scores of the first release that were paid for. They may be published.
        real: Real rows of the first release's schema, whose distributions are shown beside the
            released ones. Makes the page internal.
    """
    first = releases[0]
    if real is not None and real.schema.columns != first.schema.columns:
        raise DataError("The real rows were read with another schema than the release's.")
    called = list(names or [f"release {i + 1}" for i in range(len(releases))])
    found = _matched(releases, scores)
    certificate = first.certificate
    context = {
        "name": first.schema.dataset,
        "folder": called[0],
        "certificate": certificate,
        "guarantee": certificate["guarantee"],
        "digest": certificate_digest(certificate),
        "internal": bool(scores) or real is not None,
        "rows": _length(first),
        "things": "images" if first.schema.image else "rows",
        "epsilon": _number(certificate["guarantee"]["epsilon"]),
        "delta": _number(certificate["guarantee"]["delta"]),
        "statement": _statement(certificate["guarantee"]),
        "charges": _charges(certificate),
        "spent": shares_bar([(c["name"], certificate["shares"][c["name"]]) for c in certificate["charges"]]),
        "pictures": _pictures(first) if first.schema.image else [],
        "columns": [] if first.schema.image else _columns(first, real),
        "all_columns": len(first.schema.columns),
        "real_rows": real is not None,
        "sample": _sample(first),
        "scores": _scores(found[0]) if found[0] else None,
        "measured": _measured(first, measured),
        "compared": _compared(releases, called, found) if len(releases) > 1 else [],
        "curve": _curve(releases, found) if len(releases) > 1 else None,
    }  # fmt: skip
    return _template().render(context)


def _template() -> Any:
    try:
        import jinja2
    except ImportError:
        raise LimbeckError(
            "The report needs jinja2, which is not installed. Run: pip install jinja2"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("limbeck.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


def _matched(releases: Sequence[Release], scores: Sequence[Scores]) -> list[Scores | None]:
    by_digest = {s.certificate: s for s in scores}
    found = [by_digest.pop(certificate_digest(r.certificate), None) for r in releases]
    for left in by_digest.values():
        check_scores(left, releases[0])  # says that they belong to another release
    return found


def _statement(guarantee: Mapping[str, Any]) -> dict[str, str] | None:
    """What epsilon means for an attacker who must guess, coin toss beforehand."""
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    if isinstance(epsilon, str):
        return None
    odds = math.exp(epsilon)
    return {
        "right": f"{min((odds + delta) / (odds + 1), 1):.1%}".replace(".0%", "%"),
        "times": f"{odds:,.3g}" if odds < 1e4 else f"{odds:.1e}",
    }


def _charges(certificate: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "name": c["name"],
            "share": f"{certificate['shares'][c['name']]:.0%}",
            "mechanism": c["mechanism"],
            "noise": f"{c['noise_multiplier']:.3g} × {c['sensitivity']:g}",
            "rows": "all rows" if c["sampling"] is None else f"Poisson, {c['sampling']:.3g}",
            "steps": f"{c['steps']:,}",
        }
        for c in certificate["charges"]
    ]


def _pictures(release: Release) -> list[dict[str, Any]]:
    assert isinstance(release.data, Images) and release.schema.image is not None
    images, labels = release.data.images, np.asarray(release.data.labels).astype(str)
    shown = []
    for value in release.schema.classes:
        at = (
            np.flatnonzero(labels == str(value)) if release.schema.label else np.arange(len(images))
        )
        if len(at):
            png = png_strip(images[at[:PICTURES]], release.schema.image)
            coded = base64.b64encode(png).decode()
            few = min(len(at), PICTURES)
            count = f"{few} of {len(at):,}" if few < len(at) else f"{few}"
            width = 100 * few // PICTURES
            shown.append({"label": str(value), "count": count, "png": coded, "width": width})
    return shown


def _columns(release: Release, real: Dataset | None) -> list[dict[str, Any]]:
    """Distributions of the released columns, beside those of the real ones if they are given."""
    sides = []
    for data in (released_data(release), real):
        if data is not None:
            rows = bare_rows(data)
            codes, sizes = discretise(data.schema, np.asarray(rows.cells), rows.labels)
            sides.append(
                [
                    np.bincount(codes[:, i], minlength=s) / max(len(codes), 1)
                    for i, s in enumerate(sizes)
                ]
            )
    label = release.schema.label
    columns: list[Column] = [*release.schema.inputs, *([label] if label else [])]
    cards = []
    for column, *shares in itertools.islice(zip(columns, *sides, strict=True), COLUMNS):
        released, theirs = shares[0], shares[1] if real is not None else None
        card: dict[str, Any] = {"name": column.name, "kind": column.kind}
        if isinstance(column, Category):
            card |= _category(column, released, theirs)
        else:
            facts = column.facts()
            card |= {
                "chart": histogram(released[:-1], None if theirs is None else theirs[:-1]),
                "low": _plain(facts["min"]),
                "high": _plain(facts["max"]),
            }
        gone = float(released[-1])
        card["missing"] = f"{gone:.1%} without a value" if gone else ""
        cards.append(card)
    return cards


def _category(column: Category, released: np.ndarray, real: np.ndarray | None) -> dict[str, Any]:
    order = np.argsort(-released[:-1], kind="stable")
    top = max(float(released.max()), float(real.max()) if real is not None else 0.0)
    bars = [
        {
            "label": str(column.values[i]),
            "share": f"{released[i]:.1%}",
            "chart": value_bar(float(released[i]), None if real is None else float(real[i]), top),
        }
        for i in order[:VALUES]
    ]
    return {"bars": bars, "more": max(len(column.values) - VALUES, 0)}


def _sample(release: Release) -> dict[str, Any] | None:
    if isinstance(release.data, Images):
        return None
    rows = release.data.head(ROWS)
    cells = [[_plain(v) for v in row] for row in rows.itertuples(index=False)]
    return {"head": [str(c) for c in rows.columns], "rows": cells}


def _scores(scores: Scores) -> dict[str, Any]:
    shares = [s for s in scores.scores if s.of != "between"]
    figures = list(dict.fromkeys(s.figure for s in shares))
    groups = []
    for figure in figures:
        rows: dict[str, list[dict[str, Any]]] = {}
        for s in (s for s in shares if s.figure == figure):
            bar = {
                "of": s.of,
                "text": s.text,
                "chart": score_bar(s.mean, s.spread, real=s.of == "real"),
            }
            rows.setdefault(s.name, []).append(bar)
        groups.append({"figure": figure, "rows": list(rows.items())})
    return {
        "groups": groups,
        "control": any(s.of == "real" for s in shares),
        "seeds": max((len(s.values) for s in shares), default=0),
        "distances": [s for s in scores.scores if s.of == "between"],
        "notes": list(dict.fromkeys(f"{s.name}: {s.note}" for s in shares if s.note)),
        "test_rows": f"{scores.test_rows:,}",
        "stamp": scores.stamp,
    }  # fmt: skip


def _measured(release: Release, given: Sequence[MeasuredScores]) -> dict[str, Any] | None:
    """Paid-for scores of the release; those of another are refused."""
    if not given:
        return None
    scores = given[-1]
    certificate = scores.certificate
    settings, guarantee = certificate["method"]["settings"], certificate["guarantee"]
    if any(
        m.certificate["method"]["settings"]["release"] != certificate_digest(release.certificate)
        for m in given
    ):
        raise LimbeckError(
            "These measured scores belong to another release than the first. Measure this one's."
        )
    figures = scores.figures
    rows = figures.pop("rows")["value"]
    bars = [
        (
            name,
            {
                "chart": score_bar(f["value"], f["noise_spread"]),
                "text": f"{100 * f['value']:.1f} ± {100 * f['noise_spread']:.1f}",
            },
        )
        for name, f in figures.items()
    ]
    return {
        "classifier": settings["classifier"],
        "epsilon": _number(guarantee["epsilon"]),
        "delta": _number(guarantee["delta"]),
        "dataset": certificate["data"]["dataset"],
        "not_for_release": certificate["not_releasable_because"],
        "bars": bars,
        "rows": f"{max(rows, 0):,.0f}",
    }


def _main_figure(scores: Sequence[Scores | None]) -> str | None:
    there = {s.figure for f in scores if f for s in f.scores if s.of == "released"}
    return next((f for f in MAIN if f in there), None)


def _compared(
    releases: Sequence[Release], names: Sequence[str], scores: Sequence[Scores | None]
) -> list[dict[str, str]]:
    figure = _main_figure(scores)
    rows = []
    for release, name, found in zip(releases, names, scores, strict=True):
        guarantee = release.certificate["guarantee"]
        means = [
            s.mean
            for s in (found.scores if found else ())
            if s.of == "released" and s.figure == figure
        ]
        rows.append(
            {
                "name": name,
                "epsilon": _number(guarantee["epsilon"]),
                "delta": _number(guarantee["delta"]),
                "method": release.certificate["method"]["name"],
                "rows": f"{_length(release):,}",
                "score": f"{100 * float(np.mean(means)):.1f}" if means else "",
                "figure": figure or "",
            }
        )
    return rows


def _curve(releases: Sequence[Release], scores: Sequence[Scores | None]) -> dict[str, Any] | None:
    figure = _main_figure(scores)
    lines: dict[str, list[Point]] = {}
    for release, found in zip(releases, scores, strict=True):
        epsilon = release.certificate["guarantee"]["epsilon"]
        if found is None or isinstance(epsilon, str):
            continue
        for s in found.scores:
            if s.of == "released" and s.figure == figure:
                lines.setdefault(s.name, []).append(Point(float(epsilon), s.mean, s.spread))
    series = [(name, points) for name, points in lines.items() if len(points) > 1][:6]
    if not series:
        return None
    return {"figure": figure, "names": [name for name, _ in series], "chart": curve(series)}


def _length(release: Release) -> int:
    data = release.data
    return len(data.images if isinstance(data, Images) else data)


def _number(value: float | str) -> str:
    return "∞" if isinstance(value, str) else f"{value:g}".replace("e-0", "e-")


def _plain(value: Any) -> str:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "–"
    if isinstance(value, pd.Timestamp):
        return value.date().isoformat()
    if isinstance(value, float | np.floating):
        return f"{value:,.6g}"
    if isinstance(value, int | np.integer) and abs(int(value)) >= 10_000:
        return f"{value:,}"
    return str(value)
