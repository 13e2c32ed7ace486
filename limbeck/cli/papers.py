"""The verbs on public data: reproduce, data, demo."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ..errors import LimbeckError
from . import options as opt
from .show import booked, console, print_json, progress_bars, show_release, show_table

if TYPE_CHECKING:
    from ..papers.result import Report


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="A table or figure, such as dp-kip-scatternet-table2.", show_default=False
        ),
    ] = "",
    list_all: Annotated[bool, typer.Option("--list", help="Name every table and figure.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the quick cells, with reduced settings.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Repetitions; 1 with --quick, else the paper's.")
    ] = None,
    only: Annotated[
        str, typer.Option("--only", help="Run only cells whose row or column contains this.")
    ] = "",
    known: Annotated[
        bool, typer.Option("--known", help="Run nothing: show what earlier runs found.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="File for the result (.md).")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder of finished parts.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run a table or figure of the five papers again and print ours beside theirs."""
    from .. import papers

    if list_all or not name:
        _list_exhibits(as_json)
        return
    exhibit = papers.find(name)
    ahead = papers.estimate(exhibit, quick=quick, seeds=seeds, only=only, cache=cache)
    if not as_json:
        console.print(f"[bold]{exhibit.name}[/]: {escape(exhibit.title)}")
        console.print(
            f"{ahead.run} to run, about {_duration(ahead.minutes)} on two cores; {ahead.cached} known "
            f"already; {ahead.left_out} left out. Stopped runs go on where they were."
        )
    with progress_bars(quiet=as_json) as report:
        result = papers.reproduce(
            exhibit, quick=quick, seeds=seeds, only=only, cache=cache, known=known, progress=report
        )
    if out is not None:
        out.write_text(result.markdown(), encoding="utf-8")
    if as_json:
        print_json(result.facts())
    else:
        _show_result(result)


def _list_exhibits(as_json: bool) -> None:
    from .. import papers

    exhibits = [papers.find(name) for name in papers.names()]
    if as_json:
        print_json([{"name": e.name, "kind": e.kind, "title": e.title} for e in exhibits])
        return
    show_table(
        ("name", "cells", "what"),
        [(e.name, str(len(e.cells) or ""), e.title) for e in exhibits],
        right=("cells",),
    )
    console.print("Run one with `limbeck reproduce NAME`; a part of it with --quick or --only.")


def _show_result(result: Report) -> None:
    head, *body = result.lines()
    show_table(head, [[cell.replace("*", "") for cell in line] for line in body])
    for note in result.notes():
        console.print(note.replace("*", ""), markup=False)


def _duration(minutes: float) -> str:
    if minutes < 90:
        return f"{max(1, round(minutes))} minutes" if minutes else "no time"
    return f"{minutes / 60:.0f} hours" if minutes < 60 * 48 else f"{minutes / 1440:.0f} days"


def data(
    name: Annotated[
        str,
        typer.Argument(help="Name of a public data set; without it, a list.", show_default=False),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write to.")] = None,
    force: opt.Force = False,
) -> None:
    """Write a named public data set to practise on: train and test parts and the schema."""
    from .. import datasets

    if not name:
        facts = [datasets.about(known) for known in datasets.names()]
        named = zip(datasets.names(), facts, strict=True)
        show_table(("name", "what", "licence"), [(n, f.title, f.licence) for n, f in named])
        return
    if out is None:
        datasets.about(name)  # an unknown name is the first thing to say
        raise LimbeckError(f"Say where to write it: limbeck data {name} --out {name}/")
    for path in datasets.write(name, out, force=force):
        console.print(str(path), markup=False)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the two releases.")] = Path(
        "demo-release"
    ),
    force: opt.Force = False,
) -> None:
    """Run the whole road on embedded data: a private release of images and one of a table."""
    import limbeck as lk

    from ..demo import COURSES, run_course

    console.print(
        "Two private releases from embedded public data, each with epsilon 1, delta 1e-6.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        # Embedded data are public: their practice runs are kept out of the owner's ledger.
        book = lk.Ledger(Path(folder) / "ledger.sqlite")
        for course in COURSES:
            console.print(f"[bold]{course.folder}[/]: {lk.datasets.about(course.dataset).title}")
            with progress_bars(spent=booked(1.0)) as report:
                served = run_course(course, out, book, force=force, progress=report)
            show_release(served.release, served.path)
            figures = ", ".join(f"{k.replace('_', ' ')} {v:.3f}" for k, v in served.scores.items())
            console.print(
                "First score: logistic regression trained on the release, tested on real rows: "
                f"{figures}"
            )
            if (served.path / "contact-sheet.png").exists():
                console.print(f"Picture: {served.path / 'contact-sheet.png'}", markup=False)
            console.print(f"Report: {served.page}\n", markup=False)
    console.print(
        f"Next: limbeck verify {out / 'table'}, then `limbeck schema` on your own data.\n"
        f"Open this first: {served.page}",
        markup=False,
    )
