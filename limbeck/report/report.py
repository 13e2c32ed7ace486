"""One self-contained HTML page about a release: no network, no scripts, nothing to install.

Without scores and real rows it shows only what the release itself holds, and may travel with it. With them
it is internal, and says so at the top.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..audits import Audit
from ..data import Dataset
from ..errors import DataError, LimbeckError
from ..evaluation import MeasuredScores
from ..release import Release, certificate_digest, citations, rule_sentences
from ..scores import PLAIN, Score, Scores
from ..scores.scores import BETWEEN, REAL, RELEASED
from . import compared, contents, pairs
from .charts import score_bar, shares_bar
from .compared import number


def make_report(
    releases: Sequence[Release],
    *,
    names: Sequence[str] | None = None,
    scores: Sequence[Scores] = (),
    measured: Sequence[MeasuredScores] = (),
    real: Dataset | None = None,
    audit: Audit | None = None,
) -> str:
    """The page, as HTML.

    Args:
        releases: The release to show; further ones are compared with it.
        names: Their folders, as the page should call them.
        scores: Of any of these releases, from `limbeck.evaluate`. Makes the page internal.
        measured: Scores of the first release that were paid for. They may be published.
        real: Real rows of the first release's schema, whose distributions are shown beside the
            released ones. Makes the page internal.
        audit: What attacks on the first release found. They saw no real row.
    """
    first = releases[0]
    if audit is not None and audit.release != certificate_digest(first.certificate):
        raise LimbeckError("This audit is of another release than the first. Audit this one.")
    if real is not None and real.schema.columns != first.schema.columns:
        raise DataError("The real rows were read with another schema than the release's.")
    compared.check_one_dataset(releases)
    called = list(names or [f"release {i + 1}" for i in range(len(releases))])
    matched, several = compared.matched(releases, scores), len(releases) > 1
    certificate = first.certificate
    context = {
        "name": first.schema.dataset,
        "folder": called[0],
        "certificate": certificate,
        "guarantee": certificate["guarantee"],
        "digest": certificate_digest(certificate),
        "internal": bool(scores) or real is not None,
        "rows": contents.length(first),
        "things": "images" if first.schema.image else "rows",
        "epsilon": number(certificate["guarantee"]["epsilon"]),
        "delta": number(certificate["guarantee"]["delta"]),
        "statement": _statement(certificate["guarantee"]),
        "charges": _charges(certificate),
        "check": _check(certificate),
        "spent": shares_bar([(c["name"], certificate["shares"][c["name"]]) for c in certificate["charges"]]),
        "pictures": contents.pictures(first, real) if first.schema.image else [],
        "columns": [] if first.schema.image else contents.columns(first, real),
        "all_columns": len(first.schema.columns),
        "rules": list(first.schema.rules),
        "rules_kept": rule_sentences(certificate),
        "real_rows": real is not None,
        "correlations": pairs.correlation_view(first, real),
        "sample": contents.sample(first),
        "scores": _scores(matched[0]) if matched[0] else None,
        "measured": _measured(first, measured),
        "audit": None if audit is None else _audit(audit),
        "compared": compared.table(releases, called, matched) if several else [],
        "together": compared.together(releases, measured) if several else None,
        "curve": compared.score_curve(releases, matched) if several else None,
        "papers": citations(certificate),
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
    environment.filters["code"] = _code
    return environment.get_template("report.html.j2")


def _code(text: str) -> Any:
    """A text of the certificate, its words between backquotes set as code."""
    import markupsafe

    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


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


def _check(certificate: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is known of how the rows fitted their schema before the run."""
    check = certificate.get("check")
    if check is None or check["seen"] == "no":
        return None
    results = check["results"] or {"noise": 0.0, "columns": {}}
    rows = [
        {"name": name, "counts": [f"{count:,.0f}" for count in states.values()]}
        for name, states in results["columns"].items()
    ]
    return {"statement": check["statement"], "rows": rows, "noise": f"{results['noise']:,.3g}"}


def _scores(scores: Scores) -> dict[str, Any]:
    learners = [s for s in scores.scores if s.of != BETWEEN and s.figure not in PLAIN[1:]]
    figures = list(dict.fromkeys(s.figure for s in learners))
    groups = []
    for figure in figures:
        rows: dict[str, list[dict[str, Any]]] = {}
        for s in (s for s in learners if s.figure == figure):
            bar = {
                "of": s.of,
                "text": s.text,
                "chart": score_bar(s.mean, s.spread, real=s.of == "real"),
            }
            rows.setdefault(s.name, []).append(bar)
        groups.append({"figure": figure, "rows": list(rows.items())})
    return {
        "groups": groups,
        "control": any(s.of == REAL for s in learners),
        "seeds": max((len(s.values) for s in learners), default=0),
        "others": _others([s for s in scores.scores if s not in learners]),
        "pairs": scores.pairs,
        "notes": list(dict.fromkeys(f"{s.name}: {s.note}" for s in learners if s.note)),
        "test_rows": f"{scores.test_rows:,}",
        "stamp": scores.stamp,
    }  # fmt: skip


def _others(scores: Sequence[Score]) -> list[dict[str, str]]:
    """Distances and errors, one line for each: released, real, between both."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for s in scores:
        empty = {
            "name": s.name,
            "figure": s.figure,
            RELEASED: "",
            REAL: "",
            BETWEEN: "",
            "note": s.note,
        }
        lines.setdefault((s.name, s.figure), empty)[s.of] = s.text
    return list(lines.values())


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
        "epsilon": number(guarantee["epsilon"]),
        "delta": number(guarantee["delta"]),
        "dataset": certificate["data"]["dataset"],
        "not_for_release": certificate["not_releasable_because"],
        "bars": bars,
        "rows": f"{max(rows, 0):,.0f}",
    }


def _audit(found: Audit) -> dict[str, Any]:
    """What each part of an audit found."""

    def shown(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    rows = [
        {
            "part": f.part,
            "claim": shown(f.claim),
            "bound": shown(f.bound),
            "delta": shown(f.delta),
            "runs": f"{f.runs:,}",
            "says": f.says,
        }
        for f in found.findings
    ]
    return {"holds": found.holds, "rows": rows, "software": found.software}
