"""Plain plots as PNG files: points and lines, drawn with Pillow, which is there anyway."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")
SIDE, EDGE = 420, 60


def scatter(
    path: Path, panels: Mapping[str, tuple[np.ndarray, np.ndarray]], low: float, high: float
) -> None:
    """Panels of points (rows, 2), coloured by their classes, side by side; titles above."""
    canvas = Image.new("RGB", (SIDE * len(panels), SIDE + 40), "white")
    draw = ImageDraw.Draw(canvas)
    for number, (title, (points, classes)) in enumerate(panels.items()):
        left = number * SIDE
        draw.text((left + 12, 12), title, fill="black", font_size=16)
        places = 10 + (points - low) / (high - low) * (SIDE - 20)
        for (x, y), code in zip(places, classes, strict=True):
            colour = COLOURS[int(code) % len(COLOURS)]
            draw.ellipse((left + x, 35 + SIDE - y, left + x + 1.5, 36.5 + SIDE - y), fill=colour)
        draw.rectangle((left + 8, 38, left + SIDE - 8, SIDE + 36), outline="#c0c4ca")
    canvas.save(path)


def lines(
    path: Path,
    at: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str,
    logarithmic: tuple[bool, bool] = (True, False),
    from_zero: bool = False,
) -> None:
    """Curves over common places, with axes, on a logarithmic scale where wanted."""
    width, height = 720, 440
    canvas = Image.new("RGB", (width + 180, height), "white")  # names stand beside the curves
    draw = ImageDraw.Draw(canvas)
    every = [v for values in curves.values() for v in values] + [0.0] * from_zero
    across = _scale(at, logarithmic[0], EDGE + 20, width - 50)
    down = _scale(every, logarithmic[1], height - EDGE, 40)
    draw.line((EDGE + 20, 40, EDGE + 20, height - EDGE, width - 20, height - EDGE), fill="black")
    for value in at if len(at) < 12 else (at[0], at[len(at) // 2], at[-1]):
        draw.text((across(value) - 10, height - EDGE + 8), f"{value:g}", fill="black", font_size=12)
    least, most = min(every), max(every)
    middle = math.sqrt(least * most) if logarithmic[1] else (least + most) / 2
    for value in (least, middle, most):
        draw.text((6, down(value) - 7), f"{value:.3g}", fill="black", font_size=12)
    draw.text((width // 2, height - 26), x, fill="black", font_size=14)
    draw.text((6, 8), y, fill="black", font_size=14)
    for number, (name, values) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        draw.line(
            [(across(a), down(v)) for a, v in zip(at, values, strict=True)], fill=colour, width=3
        )
        draw.text((width, 44 + 18 * number), name, fill=colour, font_size=14)
    canvas.save(path)


def trade(
    path: Path, series: Mapping[str, Mapping[str, tuple[float, float]]], *, x: str, y: str
) -> None:
    """Named points, a panel with its own scales for each series: what one score costs another."""
    width, height = 560, 460
    canvas = Image.new("RGB", (width * len(series), height), "white")
    draw = ImageDraw.Draw(canvas)
    for number, (name, points) in enumerate(series.items()):
        left, colour = number * width, COLOURS[number % len(COLOURS)]
        bottom = height - EDGE
        across = _scale([a for a, _ in points.values()], False, left + 90, left + width - 150)
        down = _scale([b for _, b in points.values()], False, bottom - 20, 60)
        draw.line((left + 60, 40, left + 60, bottom, left + width - 20, bottom), fill="black")
        draw.text((left + 220, 12), name, fill=colour, font_size=16)
        draw.text((left + 150, height - 26), x, fill="black", font_size=14)
        draw.text((left + 6, 12), y, fill="black", font_size=14)
        for value in {min(points.values())[0], max(points.values())[0]}:
            draw.text((across(value) - 12, bottom + 8), f"{value:.1f}", fill="black", font_size=12)
        for value in {min(b for _, b in points.values()), max(b for _, b in points.values())}:
            draw.text((left + 22, down(value) - 7), f"{value:.1f}", fill="black", font_size=12)
        places = {label: (across(a), down(b)) for label, (a, b) in points.items()}
        taken = [(at - 4, top - 4, at + 4, top + 4) for at, top in places.values()]
        for dot in taken:
            draw.ellipse(dot, fill=colour)
        for label, (at, top) in sorted(places.items(), key=lambda item: item[1], reverse=True):
            # The nearest height at which nothing else stands, with a line to where it belongs.
            heights = sorted(range(-18, 400, 14), key=lambda down: abs(down + 7))
            boxes = (draw.textbbox((at + 16, top + h), label, font_size=12) for h in heights)
            box = next(box for box in boxes if not any(_meet(box, other) for other in taken))
            taken.append(box)
            draw.line((at, top, at + 14, (box[1] + box[3]) / 2), fill=colour)
            draw.text((at + 16, box[1]), label, fill=colour, font_size=12, anchor="lt")
    canvas.save(path)


def beside(
    path: Path, series: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str
) -> None:
    """A square from 0 to 1 for each series, three in a row: above the diagonal the second number is larger."""
    side, across = 240, 3
    rows = -(-len(series) // across) or 1
    canvas = Image.new("RGB", (across * (side + 50), rows * (side + 60)), "white")
    draw = ImageDraw.Draw(canvas)
    for number, (name, points) in enumerate(sorted(series.items())):
        left, top = number % across * (side + 50) + 40, number // across * (side + 60) + 28
        draw.rectangle((left, top, left + side, top + side), outline="#57606a")
        draw.line((left, top + side, left + side, top), fill="#c0c4ca")
        better = sum(b >= a for a, b in points)
        title = f"{name}: {better} of {len(points)} above"
        draw.text((left, top - 20), title, fill=COLOURS[number % len(COLOURS)], font_size=14)
        draw.text((left + side // 2 - 20, top + side + 4), x, fill="black", font_size=12)
        draw.text((left - 34, top + side // 2), y, fill="black", font_size=12)
        for a, b in points:
            dot = left + side * a, top + side * (1 - b)
            draw.ellipse(
                (dot[0] - 2.5, dot[1] - 2.5, dot[0] + 2.5, dot[1] + 2.5),
                fill=COLOURS[number % len(COLOURS)],
            )
    canvas.save(path)


def _meet(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _scale(values: Sequence[float], logarithmic: bool, start: float, end: float):
    through = (lambda v: math.log(max(v, 1e-12))) if logarithmic else (lambda v: v)
    low, high = through(min(values)), through(max(values))
    return lambda v: start + (through(v) - low) / ((high - low) or 1.0) * (end - start)
