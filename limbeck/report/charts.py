"""Charts of the report as inline SVG: marks only, coloured by the page's style sheet.

Words stand in the page beside a chart, not in it, so that they keep their size on a phone; the
epsilon-utility curve, which needs its axes, is the exception. All text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    x: float
    y: float
    spread: float | None


def shares_bar(shares: Sequence[tuple[str, float]]) -> str:
    """One bar cut into parts, in the order and with the colours of a list beside it."""
    total = sum(share for _, share in shares) or 1.0
    parts, left = [], 0.0
    for number, (name, share) in enumerate(shares):
        width = 1000 * share / total
        parts.append(
            f'<rect class="s{number % 6}" x="{left:.1f}" y="0" width="{max(width - 4, 1):.1f}" '
            f'height="40"><title>{escape(name)}: {share:.1%}</title></rect>'
        )
        left += width
    return _svg(1000, 40, "Shares of the budget", parts, stretched=True)


def histogram(
    released: np.ndarray, real: np.ndarray | None = None, *, names: Sequence[str] = ()
) -> str:
    """Shares per bin: filled for released rows, a line of steps for real ones.

    Args:
        released: Shares of the released rows.
        real: Shares of the real ones, if they are shown.
        names: Of the bins, where each is one value.
    """
    prefixes = [f"{name}: " for name in names] or [""] * len(released)
    top = max(float(released.max(initial=0)), float(real.max(initial=0)) if real is not None else 0)
    top = top or 1.0
    step = 1000 / max(len(released), 1)
    parts = [
        f'<rect class="s0" x="{i * step + 3:.1f}" y="{200 - 196 * v / top:.1f}" '
        f'width="{step - 6:.1f}" height="{196 * v / top:.1f}"><title>{escape(prefixes[i])}{v:.1%}</title></rect>'
        for i, v in enumerate(released)
    ]
    if real is not None:
        corners = "".join(
            f"{'M' if i == 0 else 'L'}{i * step:.1f} {200 - 196 * v / top:.1f}H{(i + 1) * step:.1f}"
            for i, v in enumerate(real)
        )
        parts.append(f'<path class="real-line" d="{corners}"/>')
    return _svg(1000, 200, "Distribution", parts, stretched=True)


def value_bar(released: float, real: float | None, top: float) -> str:
    """A share as a bar, with a thinner one below for real rows."""

    def bar(kind: str, value: float, at: int, height: int) -> str:
        width = max(1000 * value / (top or 1.0), 6)
        return f'<rect class="{kind}" x="0" y="{at}" width="{width:.1f}" height="{height}"/>'

    parts = [bar("s0", released, 0, 40 if real is None else 26)]
    if real is not None:
        parts.append(bar("real-mark", real, 28, 12))
    return _svg(1000, 40, f"{released:.1%}", parts, stretched=True)


def score_bar(mean: float, spread: float | None, *, real: bool = False) -> str:
    """A score between 0 and 1, with its standard deviation over seeds."""
    width = 1000 * min(max(mean, 0.0), 1.0)
    parts = [
        '<rect class="track" x="0" y="0" width="1000" height="40"/>',
        f'<rect class="{"s1" if real else "s0"}" x="0" y="0" width="{width:.1f}" height="40"/>',
    ]
    if spread is not None:
        low, high = (min(max(1000 * (mean + sign * spread), 0), 1000) for sign in (-1, 1))
        parts.append(f'<path class="whisker" d="M{low:.1f} 20H{high:.1f}"/>')
        parts += [f'<path class="whisker" d="M{end:.1f} 8V32"/>' for end in (low, high)]
    return _svg(1000, 40, f"{mean:.1%}", parts, stretched=True)


def curve(series: Sequence[tuple[str, Sequence[Point]]]) -> str:
    """Scores against epsilon, one line per score, with axes."""
    width, height, left, right, top, bottom = 460, 270, 44, 12, 12, 40
    xs = sorted({p.x for _, points in series for p in points})
    values = [v for _, points in series for p in points for v in _ends(p)]
    reach = max(values) - min(values)
    step = next((s for s in (0.01, 0.02, 0.05, 0.1) if reach <= 5 * s), 0.2)
    low = max(0.0, min(math.floor(min(values) / step + 1e-9) * step, 1 - step))
    high = min(1.0, max(math.ceil(max(values) / step - 1e-9) * step, low + step))
    logs = [math.log(x) for x in xs]
    span = (logs[-1] - logs[0]) or 1.0
    margin = 16  # so that points do not stand on the axis

    def place(x: float) -> float:
        share = (math.log(x) - logs[0]) / span if len(xs) > 1 else 0.5
        return left + margin + share * (width - left - right - 2 * margin)

    def level(y: float) -> float:
        return height - bottom - (y - low) / (high - low) * (height - top - bottom)

    parts = []
    for tick in np.linspace(low, high, round((high - low) / step) + 1):
        y = level(float(tick))
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{width - right}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    for x in xs:
        parts.append(
            f'<text x="{place(x):.1f}" y="{height - bottom + 18}" text-anchor="middle">{x:g}</text>'
        )
    middle = (left + width - right) / 2
    parts.append(f'<text x="{middle}" y="{height - 4}" text-anchor="middle">epsilon</text>')
    for number, (name, points) in enumerate(series):
        colour = number % 6
        spots = [(place(p.x), level(p.y), p) for p in sorted(points)]
        line = "".join(f"{'ML'[i > 0]}{x:.1f} {y:.1f}" for i, (x, y, _) in enumerate(spots))
        parts.append(f'<path class="line l{colour}" d="{line}"/>')
        for x, y, p in spots:
            if p.spread is not None:
                ends = [level(v) for v in _ends(p)]
                parts.append(
                    f'<path class="line l{colour}" d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>'
                )
            title = f"{escape(name)}: {p.y:.1%} at epsilon {p.x:g}"
            parts.append(
                f'<circle class="s{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{title}</title></circle>'
            )
    return _svg(width, height, "Scores against epsilon", parts, stretched=False)


def _ends(point: Point) -> tuple[float, float]:
    spread = point.spread or 0.0
    return point.y - spread, min(point.y + spread, 1.0)


def _svg(width: int, height: int, label: str, parts: Sequence[str], *, stretched: bool) -> str:
    how = ' preserveAspectRatio="none"' if stretched else ""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"{how}>'
        f"{''.join(parts)}</svg>"
    )
