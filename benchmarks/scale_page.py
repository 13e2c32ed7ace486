"""What `docs/scale.md` says in figures, from what `scale.py` measured: between marks on the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
NAMES = {"marginals": "marginals", "dp-merf": "DP-MERF with 200 features"}
ROWS, MACHINES, CORES, TASKS, MERGERS = 10**9, 100, 8, 800, 8
DOLLARS = 0.05
"""For an hour of a core."""


def write(results: Mapping[str, Any], ratios: list[str], slopes: Mapping[Any, float]) -> None:
    """Put the figures between their marks."""
    text = PAGE.read_text()
    for mark, lines in (("costs", costs(results, ratios, slopes)), ("paper", paper(results))):
        if lines:
            block = f"<!-- {mark} -->\n" + "\n".join(lines) + f"\n<!-- end of {mark} -->"
            text = re.sub(
                f"<!-- {mark} -->.*<!-- end of {mark} -->", lambda _, b=block: b, text, flags=re.S
            )
    PAGE.write_text(text)


def costs(results: Mapping[str, Any], ratios: list[str], slopes: Mapping[Any, float]) -> list[str]:
    """A table of large tables, what is told as ratios, and how time grows."""
    lines = [
        "| 20 columns, both cores | seconds of a core | peak, GiB |",
        "|---|---|---|",
    ]
    for method, name in NAMES.items():
        for power in (6, 7):
            run = results[f"{method}/rows/{10**power}"][""]
            lines.append(f"| {name}, 10^{power} rows | {run['cpu']:.1f} | {run['peak']:.2f} |")
    powers = ", ".join(
        f"with {what} {slopes[axis, 'marginals']:.1f} and {slopes[axis, 'dp-merf']:.1f}"
        for axis, what in (
            ("rows", "rows"), ("count", "columns"), ("features", "cells or features"), ("classes", "classes")
        )
    )  # fmt: skip
    told = "Seconds of a core grow, over the larger half of what was measured, by these powers for marginals and DP-MERF:"
    return [*lines, "", *ratios, "", f"{told} {powers}."]


def paper(results: Mapping[str, Any]) -> list[str]:
    """Many rows on many machines, from what one machine took; nothing where Spark was not measured."""
    if "spark" not in results:
        return []
    few, many = (results[f"marginals/rows/{n}"][""]["cpu"] for n in (10**6, 10**7))
    here = (many - few) / 9e6
    one, two, four, less = (results["spark"][name] for name in ("1", "2", "4", "few"))
    row = (two["cpu"] - less["cpu"]) / (two["rows"] - less["rows"])
    more = max(0.0, (four["cpu"] - one["cpu"]) / (four["workers"] - one["workers"]))
    begin = one["cpu"] - row * one["rows"]
    kept, partials = two["kept"] / two["rows"], two["partials"]
    work = row * ROWS
    minutes = (begin + work / (MACHINES * CORES)) / 60
    return [
        "| | on paper |",
        "|---|---|",
        f"| work | {1e6 * here:.1f} microseconds of a core per row in one process, {1e6 * row:.1f} on a worker, where each "
        f"row has a digest of its own and travels as a record: {work:,.0f} seconds of a core, {work / (MACHINES * CORES):.0f} "
        f"seconds on {MACHINES * CORES} cores |",
        f"| to begin | some {begin:.0f} seconds of a core for Spark and the first tasks, which import and compile; "
        f"{more:.1f} seconds for each executor more |",
        f"| encoded rows, kept | {kept:.0f} bytes each: {kept * ROWS / 1e9:.0f} GB, {kept * ROWS / 1e9 / MACHINES:.1f} GB a machine |",
        f"| moved by all questions | one partial sum of each per task, {partials / 1e6:.2f} MB together: of {TASKS} tasks "
        f"{partials * TASKS / 1e9:.1f} GB to the {MERGERS} that merge, {partials * MERGERS / 1e6:.0f} MB to the driver |",
        f"| moved for persons | all encoded rows once: {kept * ROWS / 1e9:.0f} GB |",
        "",
        f"That is {minutes:.1f} minutes; at {DOLLARS} dollars for an hour of a core, {MACHINES * CORES} cores for "
        f"twice as long cost {2 * minutes / 60 * MACHINES * CORES * DOLLARS:.2f} dollars.",
    ]
