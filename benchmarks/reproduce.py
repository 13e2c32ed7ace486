"""All score tables of the five papers: a page each in reproduce/, and a summary with a picture.

    python benchmarks/reproduce.py               write pages and summary of what earlier runs found
    python benchmarks/reproduce.py run MINUTES   first run the cheapest cells, one seed, for so long

Cells lie in the cache of `limbeck reproduce`, so both go on where they were. A page that knows more cells than
the cache is left as it is: its cells were made by earlier code.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from _measure import HERE
from PIL import Image, ImageDraw

from limbeck.papers.exhibit import Exhibit, find, names
from limbeck.papers.result import DONE, QUOTED, Report
from limbeck.papers.running import estimate, reproduce

PAGES = HERE / "reproduce"
COLOURS = {"run": "#1a7f37", "reduced": "#9a6700", "quoted": "#c0c4ca", "not run": "#f0d4d6"}
BAR, HIGH, LEFT = 480, 22, 220


def score_tables() -> list[Exhibit]:
    return [e for e in map(find, names()) if e.kind == "scores"]


def run(tables: list[Exhibit], minutes: float) -> None:
    """The cheapest tables first; a cell that has begun is finished."""
    end = time.monotonic() + 60 * minutes
    for table in sorted(tables, key=lambda e: estimate(e, quick=True).minutes):
        for cell in table.cells:
            if time.monotonic() < end:
                print(table.name, cell.name, flush=True)
                reproduce(table, quick=True, only=cell.name)


def counted(page: str) -> int:
    """How many cells a page says were run."""
    found = re.search(r"^- (\d+) of \d+ cells run", page, re.MULTILINE)
    return int(found[1]) if found else 0


def keep_page(report: Report) -> bool:
    """Write the page, unless the one that is there knows more cells."""
    path, text = PAGES / f"{report.exhibit.name}.md", report.markdown()
    if path.exists() and counted(path.read_text()) > counted(text):
        return False
    path.write_text(text)
    return True


def states(report: Report) -> dict[str, int]:
    found = dict.fromkeys(COLOURS, 0)
    for result in report.results:
        if result.status == DONE:
            found["reduced" if result.reduced else "run"] += 1
        else:
            found["quoted" if result.status == QUOTED else "not run"] += 1
    return found


def reasons(report: Report) -> str:
    """Why cells were not run, shortly: the most frequent reason first."""
    notes = [
        r.note.split(":")[0].split(".")[0] for r in report.results if r.status != DONE and r.note
    ]
    return "; ".join(sorted(set(notes), key=lambda note: -notes.count(note))[:3])


def drawn(path: Path, counts: dict[str, dict[str, int]]) -> None:
    """A bar of cells for every table."""
    canvas = Image.new("RGB", (LEFT + BAR + 20, HIGH * (len(counts) + 2)), "white")
    draw = ImageDraw.Draw(canvas)
    for number, (name, found) in enumerate(counts.items()):
        top, left, total = HIGH * number + 6, float(LEFT), sum(found.values()) or 1
        draw.text((6, top), name, fill="black", font_size=13)
        for state, count in found.items():
            right = left + BAR * count / total
            if count:
                draw.rectangle((left, top, right, top + HIGH - 6), fill=COLOURS[state])
            left = right
    for place, (state, colour) in enumerate(COLOURS.items()):
        left, top = LEFT + 110 * place, HIGH * len(counts) + 12
        draw.rectangle((left, top, left + 14, top + 14), fill=colour)
        draw.text((left + 20, top), state, fill="black", font_size=13)
    canvas.save(path)


def main() -> None:
    tables = score_tables()
    if sys.argv[1:2] == ["run"]:
        run(tables, float(sys.argv[2]))
    PAGES.mkdir(exist_ok=True)
    lines = [
        "| table | cells | run | reduced | quoted | not run | why not |",
        "|---|---|---|---|---|---|---|",
    ]
    counts, older = {}, []
    for table in tables:
        report = reproduce(table, quick=True, known=True)
        found = counts[table.name] = states(report)
        if not keep_page(report):
            older.append(table.name)
        link = f"[{table.name}]({table.name}.md)"
        told = (len(table.cells), *found.values())
        lines.append(f"| {link} | {' | '.join(map(str, told))} | {reasons(report)} |")
    drawn(PAGES / "summary.png", counts)
    head = [
        "# The papers' score tables",
        "",
        f"{len(tables)} tables, by `python benchmarks/reproduce.py`.",
        "",
    ]
    kept = [
        f"Pages with cells of earlier code, which are not counted here: {', '.join(older)}.",
        "",
    ]
    words = ["", "![Cells of each table](summary.png)", "", *(kept if older else [])]
    (PAGES / "README.md").write_text("\n".join([*head, *lines, *words]).rstrip() + "\n")


if __name__ == "__main__":
    main()
