"""All score tables of the five papers: a page each in reproduce/, and a summary with pictures.

    python benchmarks/reproduce.py                write pages and summary of what earlier runs found
    python benchmarks/reproduce.py run MINUTES [TEXT ...]
                                                  first run cells that none has found yet, the cheapest first,
                                                  one seed, for so long; only those whose table, row or
                                                  column contains all of the texts
    python benchmarks/reproduce.py whole MINUTES [TEXT ...]
                                                  the same at full settings, slow cells too
    python benchmarks/reproduce.py again MINUTES TEXT [TEXT ...]
                                                  quick cells whose figures are of other code than today's, too

Cells that share a release share its making, and several figures of a score are one run. Cells lie in the cache of `limbeck reproduce`, and in reproduce/cells.json: whoever has this repository has
them, with the commit that made each. A page says where the code has changed since. Records with a `from` were
run by another benchmark here with the same settings, scored in the same way: the entry that it names.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from _measure import HERE
from _plot import beside
from PIL import Image, ImageDraw

from limbeck.methods import METHODS
from limbeck.papers.bench import NotRun
from limbeck.papers.exhibit import Cell, Exhibit, find, names
from limbeck.papers.keep import Keep
from limbeck.papers.result import DONE, QUOTED, Report, Result
from limbeck.papers.running import TAKES, code_of, identity_of, minutes_of, reproduce

PAGES = HERE / "reproduce"
CELLS = PAGES / "cells.json"
COLOURS = {"run": "#1a7f37", "reduced": "#9a6700", "quoted": "#c0c4ca", "not run": "#f0d4d6"}
BAR, HIGH, LEFT = 480, 22, 220
DISTANCES = ("likelihood", "frechet", "marginals")
"""Scores of which less is better: they are in no summary of the others."""


def score_tables() -> list[Exhibit]:
    return [e for e in map(find, names()) if e.kind == "scores"]


def cells_to_run(
    tables: list[Exhibit], quick: bool
) -> Iterator[tuple[float, Exhibit, Cell, dict[str, object]]]:
    """Cells that may be run here, with minutes and identity."""
    for table in tables:
        for cell in table.cells:
            if (cell.quick or not quick) and cell.making != "quoted":
                try:
                    yield minutes_of(cell, quick), table, cell, identity_of(cell, 0, quick)
                except NotRun:
                    continue


def run(tables: list[Exhibit], minutes: float, texts: list[str], quick: bool, again: bool) -> None:
    """The cheapest cells first; a cell that has begun is finished.

    Args:
        again: Run cells, too, that other code than today's has run.
    """
    keep, end = Keep(), time.monotonic() + 60 * minutes
    ahead = [
        c
        for c in cells_to_run(tables, quick)
        if all(text in f"{c[1].name} {c[2].name}" for text in texts)
    ]
    for _, table, cell, identity in sorted(ahead, key=lambda c: c[0]):
        known = keep.load(identity, code_of(cell, quick)) if again else keep.record(identity)
        if time.monotonic() < end and known is None:
            begun, spent = time.monotonic(), time.process_time()
            print(table.name, cell.name, end=" ", flush=True)
            reproduce(replace(table, cells=(cell,)), quick=quick, seeds=1)
            processor = time.process_time() - spent
            print(f"{time.monotonic() - begun:.0f} s, processor {processor:.0f} s", flush=True)


def exchange(tables: list[Exhibit]) -> None:
    """Cells of the repository go into the cache, where it has none; then those of the cache into it."""
    keep, records = Keep(), []
    for record in json.loads(CELLS.read_text()) if CELLS.exists() else []:
        if keep.record(record["identity"]) is None:
            keep.put(record["identity"], record)
    for quick in (True, False):
        for *_, identity in cells_to_run(tables, quick):
            record = keep.record(identity)
            if record is not None and record not in records:
                records.append(record)
    lines = sorted(json.dumps(record, sort_keys=True) for record in records)
    CELLS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def states(report: Report) -> dict[str, int]:
    found = dict.fromkeys(COLOURS, 0)
    for result in report.results:
        if result.status == DONE:
            found["reduced" if result.reduced else "run"] += 1
        else:
            found["quoted" if result.status == QUOTED else "not run"] += 1
    return found


def reasons(report: Report) -> str:
    """Why cells were not run, shortly: how long those would take whose data are here, then what else."""
    left = [r for r in report.results if r.status not in (DONE, QUOTED)]
    slow = [r.cell for r in left if r.note.startswith(TAKES)]
    # Several figures of one score are one run.
    runs = {str(identity_of(cell, 0, cell.quick)): minutes_of(cell, cell.quick) for cell in slow}
    notes = [r.note.split(":")[0].split(".")[0] for r in left if r.cell not in slow]
    others = sorted(set(notes), key=lambda note: -notes.count(note))[:3]
    hours = sum(runs.values()) / 60
    told = f"{hours:,.0f}" if hours > 10 else f"{hours:.1f}"
    return "; ".join(([f"time: about {told} hours"] if runs else []) + others)


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


def compared(results: list[tuple[Exhibit, Result]]) -> dict[str, list[tuple[float, float]]]:
    """By method, the paper's number and ours of every cell that was run, as shares of one; without distances."""
    found: dict[str, list[tuple[float, float]]] = {}
    for table, result in results:
        quote = result.cell.theirs or result.cell.beside
        if result.mean is None or quote is None or table.cells[0].score in DISTANCES:
            continue
        scale = 100.0 if table.percent else 1.0
        pair = (quote.value / scale, result.mean / scale)
        found.setdefault(maker_of(result.cell), []).append(pair)
    return found


def maker_of(cell: Cell) -> str:
    """What made a cell's number, by the method's name and whose settings it had."""
    if cell.making != "method":
        return f"{cell.making} rows" if cell.making == "real" else cell.making
    recipe = cell.recipe.partition("#")[0]
    name = cell.method or next(n for n in sorted(METHODS, key=len)[::-1] if recipe.startswith(n))
    ours = not recipe or recipe.endswith("-presets")
    return f"{name}, our settings" if ours else f"{name}, published settings"


def differences(pairs: dict[str, list[tuple[float, float]]]) -> list[str]:
    """A line for each maker: how many cells, both means, and on how many ours is not below."""
    lines = [
        "| made by | cells | mean of the papers' | mean of ours | difference | not below the paper |",
        "|---|---|---|---|---|---|",
    ]
    for name, both in sorted(pairs.items()):
        theirs, ours = (sum(numbers) / len(both) for numbers in zip(*both, strict=True))
        reached = sum(mine >= quoted for quoted, mine in both)
        lines.append(
            f"| {name} | {len(both)} | {theirs:.3f} | {ours:.3f} | {ours - theirs:+.3f} | {reached} |"
        )
    return lines


def main() -> None:
    tables = score_tables()
    PAGES.mkdir(exist_ok=True)
    exchange(tables)
    verb, *rest = [*sys.argv[1:], ""]
    if verb in ("run", "whole", "again"):
        run(tables, float(rest[0]), rest[1:], quick=verb != "whole", again=verb == "again")
        exchange(tables)
    lines = [
        "| table | cells | run | reduced | quoted | not run | why not |",
        "|---|---|---|---|---|---|---|",
    ]
    counts, every = {}, []
    for table in tables:
        report = reproduce(table, quick=True, known=True)
        found = counts[table.name] = states(report)
        (PAGES / f"{table.name}.md").write_text(report.markdown())
        every += [(table, result) for result in report.results]
        told = (len(table.cells), *found.values())
        link = f"[{table.name}]({table.name}.md)"
        lines.append(f"| {link} | {' | '.join(map(str, told))} | {reasons(report)} |")
    drawn(PAGES / "summary.png", counts)
    pairs = compared(every)
    beside(PAGES / "compared.png", pairs, x="the paper", y="ours")
    totals = {state: sum(found[state] for found in counts.values()) for state in COLOURS}
    told = ", ".join(f"{count} {state}" for state, count in totals.items())
    records = json.loads(CELLS.read_text())
    seconds = sum(r["found"].get("seconds", 0.0) for r in records)
    taken = sum("from" in record for record in records)
    words = (PAGES / "why.md").read_text() if (PAGES / "why.md").exists() else ""
    text = [
        "# The papers' score tables",
        "",
        f"{len(tables)} tables, by `python benchmarks/reproduce.py`: {told} cells; those run took "
        f"{seconds / 60:.0f} minutes. A figure is of one seed. {taken} of {len(records)} runs were made by other "
        "benchmarks here with the same settings (`from` in cells.json).",
        "",
        *lines,
        "",
        "![Cells of each table](summary.png)",
        "",
        "## The papers' numbers and ours",
        "",
        "Cells that were run, as shares of one, distances left out; those that several tables have count once in each.",
        "",
        *(differences(pairs) if pairs else ["None yet."]),
        "",
        "![Ours over the papers' numbers](compared.png)",
        "",
        words,
    ]
    (PAGES / "README.md").write_text("\n".join(text).rstrip() + "\n")


if __name__ == "__main__":
    main()
