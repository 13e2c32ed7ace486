"""The command line: verbs, progress, exit codes; no mathematics.

Exit codes: 0 done; 2 something the user can mend (one line on standard error, no traceback);
3 from `verify`: the arithmetic holds and something is left open; 130 interrupted.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import LimbeckError, LimbeckWarning

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Sensitive data in; a small synthetic data set with a privacy certificate out.",
)


class _Console(Console):
    """One that goes on without a word when nobody reads any more: a paid run is not cut short."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _mute(self.file)


def _mute(stream: Any) -> None:
    """Send what is still to be said nowhere, so that nothing complains at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


console = _Console(highlight=False, soft_wrap=True)
errors = _Console(stderr=True, highlight=False, soft_wrap=True)

_INTERRUPTED = "Interrupted. What was paid for is kept, and the same command resumes it."

DataPath = Annotated[
    Path, typer.Argument(help="CSV, Parquet, npz or idx file, or folder.", show_default=False)
]
SchemaPath = Annotated[
    Path, typer.Option("--schema", help="The schema (TOML).", show_default=False)
]
MethodName = Annotated[str | None, typer.Option("--method", help="Method, such as marginals.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy budget.", show_default=False)]
Delta = Annotated[
    float, typer.Option("--delta", help="Chance that the bound may fail; below 1/rows.")
]
RecipePath = Annotated[
    Path | None,
    typer.Option("--recipe", help="Method and settings: a TOML file or a packaged name."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as NAME=VALUE; may be repeated."),
]
PerClass = Annotated[
    int | None, typer.Option("--per-class", help="Rows per class, for methods that distill a set.")
]
PayAgain = Annotated[
    bool,
    typer.Option(
        "--pay-again", help="Give up an unfinished run of the same kind, which stays booked."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from ..version import __version__

        sys.stdout.write(f"limbeck {__version__}\n")
        raise typer.Exit()


@app.callback()
def limbeck(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version."),
    ] = False,
) -> None:
    """Sensitive data in; a small synthetic data set with a privacy certificate out."""


@app.command()
def schema(
    data: DataPath,
    names_are_right: Annotated[
        bool,
        typer.Option("--names-are-right", help="Column names that look like values are names."),
    ] = False,
    encoding: Annotated[
        str, typer.Option("--encoding", help="How a CSV file is written, such as cp1252.")
    ] = "utf-8",
) -> None:
    """Draft a schema: names and kinds; bounds and values are left for you to declare."""
    from ..data import draft_schema

    sys.stdout.write(draft_schema(data, names_are_right=names_are_right, encoding=encoding))


@app.command()
def plan(
    data: DataPath,
    schema: SchemaPath,
    epsilon: Epsilon,
    delta: Delta = 1e-5,
    method: MethodName = None,
    recipe: RecipePath = None,
    per_class: PerClass = None,
    setting: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Show what would be spent on what. Reads the schema and column names, no rows."""
    import limbeck as lk

    declared = lk.Schema.load(schema)
    chosen = _recipe(method, recipe, _settings(per_class, setting), declared)
    dataset = lk.read(data, declared)
    made = lk.plan(chosen.method, dataset.schema, lk.Budget(epsilon, delta, chosen.adjacency))
    refusal = _refusal(made)
    if as_json:
        _print_json(
            {
                "charges": [c.facts() for c in made.charges],
                "epsilon": _finite(made.cost.epsilon),
                "delta": delta,
                "refused_because": refusal,
            }
        )
        return
    _show_plan(made)
    if account := lk.Ledger().account(dataset.schema.dataset):
        console.print(
            f"Spent so far on '{account.dataset}': epsilon {account.spent:.4g} of {account.lifetime.epsilon:g}.",
            markup=False,
        )
    if refusal:
        console.print(f"[yellow]`distill` would refuse this run:[/] {escape(refusal)}")


@app.command()
def distill(
    data: DataPath,
    schema: SchemaPath,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option("--out", help="Folder for the release.", show_default=False)],
    delta: Delta = 1e-5,
    method: MethodName = None,
    recipe: RecipePath = None,
    per_class: PerClass = None,
    setting: Settings = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            "--tune", help="Choose a setting privately, as NAME=[VALUE, VALUE]; may be repeated."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Reproducible noise: not for release.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False,
    non_private: Annotated[
        bool, typer.Option("--non-private", help="Allow --epsilon inf.")
    ] = False,
    pay_again: PayAgain = False,
    as_json: AsJson = False,
) -> None:
    """Make a private release from a data set."""
    import limbeck as lk

    declared = lk.Schema.load(schema)
    chosen = _recipe(method, recipe, _settings(per_class, setting), declared)
    budget = lk.Budget(epsilon, delta, chosen.adjacency)
    dataset = lk.read(data, declared)
    tried = _candidates(chosen.method, candidates)
    steps = _steps(lk.plan(chosen.method, dataset.schema, budget)) if console.is_terminal else {}
    with _progress(quiet=as_json, steps=steps, spent=_booked(epsilon)) as report:
        if tried:
            if non_private:
                raise LimbeckError("--tune chooses within a budget; leave --non-private out.")
            if chosen.unpaid:
                raise LimbeckError(f"--tune takes no recipe with unpaid settings: {chosen.unpaid}.")
            source = f"{chosen.settings_source}; {len(tried)} declared candidates, chosen privately"
            release = lk.tune(
                dataset, tried, budget, out=out, rows=chosen.rows, seed=seed, force=force,
                settings_source=source, progress=report, pay_again=pay_again,
            )  # fmt: skip
        else:
            release = lk.distill(
                dataset,
                chosen.method,
                budget,
                out=out,
                rows=chosen.rows,
                seed=seed,
                force=force,
                non_private=non_private,
                settings_source=chosen.settings_source,
                unpaid=chosen.unpaid,
                progress=report,
                pay_again=pay_again,
            )
    if as_json:
        _print_json({"release": str(out), "guarantee": release.certificate["guarantee"]})
    else:
        _show_release(release, out)


@app.command()
def redistill(
    release: Annotated[Path, typer.Argument(help="Folder of a release.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder for the new one.", show_default=False)],
    per_class: PerClass = None,
    setting: Settings = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make another set from a release's own measurements: no rows, no cost of privacy."""
    import limbeck as lk

    _warn_unverified(release)
    given = lk.Release.load(release)
    with _progress(quiet=as_json, spent="nothing is spent") as report:
        made = lk.redistill(
            given, _settings(per_class, setting), out=out, force=force, progress=report
        )
    if as_json:
        _print_json({"release": str(out), "guarantee": made.certificate["guarantee"]})
    else:
        _show_release(made, out)
        console.print("Nothing was measured and nothing was spent.")


@app.command()
def verify(
    release: Annotated[
        Path, typer.Argument(help="A release, or a file of measured scores.", show_default=False)
    ],
    arithmetic: Annotated[
        bool,
        typer.Option("--arithmetic", help="Do not compare with the method's questions: no JAX."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute epsilon from the certificate alone and check every file's sum.

    Exit code 3: the arithmetic holds, but something is left open, such as a method not known here.
    """
    if release.is_file():
        from ..evaluation import verify_scores

        verdict, holds = verify_scores(release), "every figure follows"
    else:
        from ..release import verify as verify_release

        verdict = verify_release(release, questions=not arithmetic)
        holds = "every checksum holds"
    if as_json:
        _print_json(
            {
                "verified": verdict.verified,
                "open": list(verdict.open),
                "epsilon": _finite(verdict.epsilon),
                "delta": verdict.delta,
                "not_releasable_because": verdict.certificate["not_releasable_because"],
            }
        )
    else:
        _show_verdict(verdict, holds)
    if not verdict.verified:
        raise typer.Exit(3)


@app.command()
def evaluate(
    release: Annotated[Path, typer.Argument(help="Folder of a release.", show_default=False)],
    test: Annotated[Path, typer.Option("--test", help="Real rows to test on.", show_default=False)],
    train: Annotated[
        Path | None,
        typer.Option("--train", help="Real training rows: adds a control of as many real rows."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Twelve classifiers; for images ConvNets (minutes).")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Repetitions; by default 1, with --full 3.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the scores, for `limbeck report`.")
    ] = None,
    releasable: Annotated[
        float | None,
        typer.Option(
            "--releasable",
            help="Count with noise, at this epsilon, charged to the data set: may be published.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="With --releasable.")] = 1e-6,
    pay_again: PayAgain = False,
    as_json: AsJson = False,
) -> None:
    """Score a release against real rows. Internal, unless the scores are paid for: --releasable."""
    import limbeck as lk

    from ..outside import place_outside

    if out is not None:
        place_outside(out, "scores")  # before anything is paid or computed
    _warn_unverified(release)
    given = lk.Release.load(release)
    if pay_again and releasable is None:
        raise LimbeckError("--pay-again goes with --releasable: nothing else is paid for here.")
    if releasable is not None:
        if train is not None or full or seeds is not None:
            raise LimbeckError(
                "--releasable counts the predictions of one classifier; it goes without --train, "
                "--full and --seeds."
            )
        budget = lk.Budget(releasable, delta, given.certificate["guarantee"]["adjacency"])
        with _progress(quiet=as_json, spent=_booked(releasable)) as report:
            measured = lk.measure_scores(
                given, lk.read(test, given.schema), budget, progress=report, pay_again=pay_again
            )
        if out is not None:
            measured.save(out)
        if as_json:
            _print_json(measured.facts())
        else:
            _show_measured(measured, out)
        return
    real = [None if path is None else lk.read(path, given.schema) for path in (test, train)]
    assert real[0] is not None
    with _progress(quiet=as_json) as report:
        found = lk.evaluate(given, real[0], train=real[1], full=full, seeds=seeds, progress=report)
    if out is not None:
        found.save(out)
    if as_json:
        _print_json(found.facts())
    else:
        _show_scores(found)


@app.command()
def report(
    releases: Annotated[
        list[Path],
        typer.Argument(help="A release; further ones are compared with it.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", help="File for the page.")] = Path("report.html"),
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores",
            help="Scores of `limbeck evaluate --out`. Unless paid for, they make the page internal.",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", help="Real rows shown beside the released. Makes the page internal."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing page.")] = False,
) -> None:
    """Write one self-contained HTML page about a release."""
    import limbeck as lk

    from ..evaluation import is_measured
    from ..outside import place_outside, write_outside
    from ..report import make_report

    if out.exists() and not force:
        raise LimbeckError(f"{out} exists already. Choose another file, or pass --force.")
    place_outside(out, "the page")
    for folder in releases:
        _warn_unverified(folder)
    given = [lk.Release.load(folder) for folder in releases]
    paid = [path for path in scores or () if is_measured(path)]
    internal = [path for path in scores or () if path not in paid]
    page = make_report(
        given,
        names=[f"{folder.resolve().name}/" for folder in releases],  # no paths of this machine
        scores=[lk.Scores.load(path) for path in internal],
        measured=[lk.MeasuredScores.load(path) for path in paid],
        real=None if test is None else lk.read(test, given[0].schema),
    )
    write_outside(out, page, "the page")
    console.print(f"Page: {out}", markup=False)
    if internal or test:
        console.print("[yellow]Internal: not covered by epsilon.[/]")


@app.command()
def reproduce(
    name: Annotated[
        str, typer.Argument(help="A table or figure, such as dp-kip-scatternet-table2.")
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
    as_json: AsJson = False,
) -> None:
    """Run a table or figure of the five papers again and print ours beside theirs."""
    from .. import papers as papers

    if list_all or not name:
        found = [papers.find(n) for n in papers.names()]
        if as_json:
            _print_json([{"name": e.name, "kind": e.kind, "title": e.title} for e in found])
            return
        table = Table("name", "cells", "what", box=None, pad_edge=False)
        for exhibit in found:
            table.add_row(exhibit.name, str(len(exhibit.cells) or ""), escape(exhibit.title))
        console.print(table)
        console.print("Run one with `limbeck reproduce NAME`; a part of it with --quick or --only.")
        return
    exhibit = papers.find(name)
    ahead = papers.estimate(exhibit, quick=quick, seeds=seeds, only=only, cache=cache)
    if not as_json:
        console.print(f"[bold]{exhibit.name}[/]: {escape(exhibit.title)}")
        console.print(
            f"{ahead.run} to run, about {_duration(ahead.minutes)} on two cores; {ahead.cached} known "
            f"already; {ahead.left_out} left out. Stopped runs go on where they were."
        )
    with _progress(quiet=as_json) as report:
        done = papers.reproduce(
            exhibit, quick=quick, seeds=seeds, only=only, cache=cache, known=known, progress=report
        )
    if out is not None:
        out.write_text(done.markdown(), encoding="utf-8")
    if as_json:
        _print_json(done.facts())
        return
    head, *body = done.lines()
    table = Table(*head, box=None, pad_edge=False)
    for line in body:
        table.add_row(*(escape(cell.replace("*", "")) for cell in line))
    console.print(table)
    for note in done.notes():
        console.print(note.replace("*", ""), markup=False)


@app.command()
def ledger(
    action: Annotated[
        str, typer.Argument(help="check: look for edited entries.", metavar="[check]")
    ] = "",
    set_dataset: Annotated[
        str | None, typer.Option("--set", help="Change this data set's lifetime budget.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="With --set: lifetime epsilon.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="With --set: lifetime delta.")
    ] = None,
    filter_name: Annotated[
        str | None, typer.Option("--filter", help="With --set: gdp, rdp or sum; else it stays.")
    ] = None,
    noted: Annotated[
        str | None, typer.Option("--noted", help="With check: the digest of an earlier check.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was ever spent, per data set, and what remains; `ledger check` finds edits."""
    import limbeck as lk

    book = lk.Ledger()
    if action not in ("", "check"):
        raise LimbeckError(f"Unknown `limbeck ledger {action}`. There is `limbeck ledger check`.")
    if action == "check":
        _check_ledger(book, noted, as_json)
        return
    if noted is not None:
        raise LimbeckError("--noted goes with `limbeck ledger check`.")
    if set_dataset is not None:
        if epsilon is None or delta is None:
            raise LimbeckError("--set needs --epsilon and --delta: the new lifetime budget.")
        held = [a.lifetime.filter for a in book.accounts() if a.dataset == set_dataset]
        adding = filter_name or (held[0] if held else "gdp")
        book.set_lifetime(set_dataset, lk.Lifetime(epsilon=epsilon, delta=delta, filter=adding))
    elif epsilon is not None or delta is not None or filter_name is not None:
        raise LimbeckError(
            "--epsilon, --delta and --filter change a lifetime budget: say whose with --set."
        )
    accounts = book.accounts()
    if as_json:
        _print_json([_account_facts(a) for a in accounts])
        return
    if not accounts:
        console.print(f"Nothing was spent yet. The ledger is {book.path}.", markup=False)
    for account in accounts:
        life = account.lifetime
        console.print(
            f"[bold]{escape(account.dataset)}[/]: epsilon {account.spent:.4g} spent, {account.remaining:.4g} "
            f"remains of {life.epsilon:g} (delta {life.delta:g}, {life.filter})"
        )
        table = Table("started", "method", "epsilon", "delta", "state", box=None, pad_edge=False)
        for run in account.runs:
            table.add_row(
                run.started, run.method, f"{run.epsilon:.4g}", f"{run.delta:g}", run.status
            )
        console.print(table)


@app.command()
def data(
    name: Annotated[
        str, typer.Argument(help="Name of a public data set; without it, a list.")
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a named public data set to practise on: train and test parts and the schema."""
    from .. import datasets

    if not name:
        table = Table("name", "what", "licence", box=None, pad_edge=False)
        for known in datasets.names():
            about = datasets.about(known)
            table.add_row(known, about.title, about.licence)
        console.print(table)
        return
    if out is None:
        datasets.about(name)  # an unknown name is the first thing to say
        raise LimbeckError(f"Say where to write it: limbeck data {name} --out {name}/")
    for path in datasets.write(name, out, force=force):
        console.print(str(path), markup=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the two releases.")] = Path(
        "demo-release"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace earlier demo releases.")] = False,
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
            with _progress(spent=_booked(1.0)) as report:
                served = run_course(course, out, book, force=force, progress=report)
            _show_release(served.release, served.path)
            told = ", ".join(f"{k.replace('_', ' ')} {v:.3f}" for k, v in served.scores.items())
            console.print(
                f"First score: logistic regression trained on the release, tested on real rows: {told}"
            )
            if (served.path / "contact-sheet.png").exists():
                console.print(f"Picture: {served.path / 'contact-sheet.png'}", markup=False)
            console.print(f"Report: {served.page}\n", markup=False)
    console.print(
        f"Next: limbeck verify {out / 'table'}, then `limbeck schema` on your own data.\n"
        f"Open this first: {served.page}",
        markup=False,
    )


def main() -> NoReturn:
    """Entry point: every mendable error is one line and exit code 2."""
    from typer.main import get_command

    command = get_command(app)
    _open_streams()
    _show_warnings_as_lines()
    try:
        code = command.main(prog_name="limbeck", standalone_mode=False)
        sys.stdout.flush()
    except LimbeckError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(_INTERRUPTED, 130)
    except (BrokenPipeError, SystemExit) as end:
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        _mute(sys.__stdout__)  # whoever read has seen enough; typer makes an exit of it
        sys.exit(0)
    except ModuleNotFoundError as error:
        if (error.name or "limbeck").startswith("limbeck"):
            raise
        _fail(
            f"{error.name} is not installed here, and only `verify` does without: pip install limbeck."
        )
    except OSError as error:
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except OverflowError:
        _fail("A number is too large to compute with. Use a smaller epsilon.")
    except MemoryError:
        _fail("Out of memory. Use fewer features, a smaller batch, or release fewer rows.")
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):
            _fail_usage(error)
        if type(error).__name__ == "Abort":
            if isinstance(error.__cause__, EOFError):
                _fail("A file ended before it was complete. Get a whole copy of it.")
            _fail(_INTERRUPTED, 130)
        raise
    if code == 130:  # how some versions of typer tell of Ctrl-C
        _fail(_INTERRUPTED, 130)
    sys.exit(code if isinstance(code, int) else 0)


def _open_streams() -> None:
    """Streams that were closed before the start lead nowhere; no other file may get their numbers."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _show_warnings_as_lines() -> None:
    """limbeck's own warnings are for the data owner, without the place in the code."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **also: Any) -> None:
        if not issubclass(category, LimbeckWarning):
            usual(message, category, *where, **also)
            return
        errors.print("limbeck: [yellow]warning:[/] ", end="")
        errors.print(str(message), markup=False)

    warnings.showwarning = show


def _fail_usage(error: Any) -> NoReturn:
    """A command line that typer refuses: its words, and what came."""
    message = error.format_message().strip().rstrip(".")
    if not message:  # no command at all: the help was shown instead
        sys.exit(error.exit_code)
    options = getattr(getattr(error, "param", None), "opts", ())
    came = [value for name, value in zip(sys.argv, sys.argv[1:], strict=False) if name in options]
    got = f", got '{came[-1]}'" if came else ""
    end = "" if message.endswith("?") else "."
    _fail(f"{message}{got}{end} See `limbeck --help`.", error.exit_code)


def _fail(message: str, code: int = 2) -> NoReturn:
    errors.print("limbeck: [red]error:[/] ", end="")
    errors.print(message, markup=False)
    sys.exit(code)


def _refusal(made: Any) -> str | None:
    """Why the ledger would not admit a run of this plan; None if it would."""
    from ..ledger import Ledger, new_run

    schema = made.schema
    run = new_run(schema.dataset, made.method.name, made.charges, made.cost, made.budget.adjacency)
    try:
        Ledger().check(schema.dataset, schema.lifetime, run)
    except LimbeckError as error:
        return str(error)
    return None


def _check_ledger(book: Any, noted: str | None, as_json: bool) -> None:
    seal = book.check_entries(noted)
    if as_json:
        _print_json({"entries": seal.entries, "digest": seal.digest})
        return
    console.print(f"[green]Whole[/]   {seal.entries} entries, none was edited")
    console.print(f"[green]Digest[/]  {seal.digest}")
    console.print(
        "Note the digest elsewhere: with --noted a later check also finds entries that were removed "
        "at the end, or all written anew."
    )


def _recipe(method: str | None, path: Path | None, settings: dict[str, Any], schema: Any) -> Any:
    from ..methods import default_method
    from ..run import Recipe, make_method

    if path is None:
        made = make_method(method or default_method(schema), settings)
        return Recipe(method=made, settings_source="command line" if settings else "defaults")
    recipe = Recipe.load(path)
    if method is not None and method != recipe.method.name:
        raise LimbeckError(
            f"--method {method} contradicts the recipe, which says {recipe.method.name}."
        )
    if settings:
        changed = make_method(recipe.method.name, {**recipe.method.settings(), **settings})
        source = f"{recipe.settings_source}; {', '.join(settings)} from the command line"
        return replace(recipe, method=changed, settings_source=source)
    return recipe


def _settings(per_class: int | None, given: list[str] | None) -> dict[str, Any]:
    """Settings named on the command line; values are read as TOML, bare words as text."""
    found: dict[str, Any] = {} if per_class is None else {"per_class": per_class}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise LimbeckError(f"Expected --set NAME=VALUE, got '{text}'.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found


def _candidates(method: Any, given: list[str] | None) -> list[Any]:
    """Every combination of the values that --tune names, each as the method with these settings."""
    from ..run import make_method

    if not given:
        return []
    values = _settings(None, given)
    for name, several in values.items():
        if not isinstance(several, list) or len(several) < 2:
            raise LimbeckError(
                f"Expected --tune {name}=[VALUE, VALUE, ...] with two values or more, got '{several}'."
            )
    return [
        make_method(method.name, {**method.settings(), **dict(zip(values, combined, strict=True))})
        for combined in itertools.product(*values.values())
    ]


@contextmanager
def _progress(
    quiet: bool = False, *, steps: dict[str, int] | None = None, spent: str = ""
) -> Iterator[Callable[[str, float], None]]:
    """A bar per phase on a terminal; elsewhere one line per finished phase, or with `quiet` none.

    Args:
        quiet: Show nothing: the output is for machines.
        steps: How many steps the phases of these names have.
        spent: What is booked once rows are read, shown beside the bars.
    """
    if quiet or not console.is_terminal:
        seen: set[str] = set()

        def line(phase: str, done: float) -> None:
            if done >= 1 and phase not in seen and not quiet:
                seen.add(phase)
                console.print(f"  {phase}: done", markup=False)

        yield line
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("  {task.description:<18}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[where]:>9}", markup=False),
    )
    after = TextColumn("{task.fields[spent]}", markup=False, style="dim")
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), after, console=console
    ) as bars:
        tasks: dict[str, Any] = {}

        def bar(phase: str, done: float) -> None:
            if phase not in tasks:
                told = "" if phase == "reading" else spent
                tasks[phase] = bars.add_task(phase, total=1.0, where="", spent=told)
            count = (steps or {}).get(phase.rpartition(", ")[2], 1)
            where = f"{round(done * count)}/{count}" if count > 1 else f"{done:.0%}"
            bars.update(tasks[phase], completed=done, where=where)

        yield bar


def _steps(made: Any) -> dict[str, int]:
    """How often each measurement of a plan is repeated: its progress counts these."""
    return {c.name: c.steps for c in made.charges}


def _booked(epsilon: float) -> str:
    return "" if math.isinf(epsilon) else f"epsilon {epsilon:g} booked"


def _show_plan(made: Any) -> None:
    table = Table(
        "measurement",
        "mechanism",
        "share",
        "sensitivity",
        "noise (std)",
        "rows",
        "steps",
        box=None,
        pad_edge=False,
    )
    for charge, share in zip(made.charges, made.shares, strict=True):
        table.add_row(
            escape(charge.name),
            charge.mechanism,
            f"{share:.1%}",
            f"{charge.sensitivity:g}",
            f"{charge.noise:.4g}",
            "all" if charge.sampling is None else f"Poisson {charge.sampling:.3g}",
            str(charge.steps),
        )
    console.print(table)
    cost = made.cost
    if math.isinf(cost.epsilon):
        console.print("[yellow]No noise: epsilon is infinite. Never for release.[/]")
        return
    console.print(
        f"Together: epsilon {cost.epsilon:.6g} at delta {cost.delta:g} ({made.budget.adjacency}); "
        f"of delta, {cost.slack:.2g} goes to the grid and {cost.threshold:.2g} to thresholds."
    )
    console.print("No row was read and nothing was spent.")


def _show_release(release: Any, out: Path) -> None:
    guarantee = release.certificate["guarantee"]
    rows = len(release.data.images) if hasattr(release.data, "images") else len(release.data)
    console.print(
        f"[green]Released[/] {rows} {'images' if release.schema.image else 'rows'} to {escape(str(out))}: epsilon "
        f"{guarantee['epsilon']}, delta {guarantee['delta']:g}, protecting {escape(guarantee['unit_of_privacy'])}."
    )
    shares = release.certificate["shares"]
    for charge in release.certificate["charges"]:
        console.print(
            f"  {charge['name']}: {shares[charge['name']]:.0%} of the budget, noise "
            f"{charge['noise_multiplier']:.3g} x sensitivity {charge['sensitivity']:g}",
            markup=False,
        )
    chosen = release.certificate["method"].get("chosen_among")
    if chosen and not release.certificate["method"]["redistilled_from"]:
        won = release.certificate["method"]["settings"]
        others = [c["settings"] for c in chosen["candidates"]]
        told = [f"{k} = {v}" for k, v in won.items() if any(o[k] != v for o in others)]
        console.print(
            f"  chosen among {len(others)} candidates by {chosen['way']}: {', '.join(told)}",
            markup=False,
        )
    for reason in release.certificate["not_releasable_because"]:
        console.print(f"[yellow]Not for release:[/] {escape(reason)}")


def _show_verdict(verdict: Any, holds: str) -> None:
    found, certificate = verdict.cost, verdict.certificate
    guarantee, basis = certificate["guarantee"], certificate["accounting"]["basis"]
    colour = "green" if verdict.verified else "yellow"
    lines = {
        "Files": holds,
        "Epsilon": f"{found.epsilon:.6g} at delta {found.delta:g}, recomputed ({basis}); claimed "
        f"{guarantee['epsilon']}",
        "Cross-check": f"PLD {found.pld:.6g}, RDP {found.rdp:.6g}",
        "Protects": f"{guarantee['unit_of_privacy']}; neighbours differ by {guarantee['neighbours']}",
    }
    for name, words in lines.items():
        console.print(f"[{colour}]{name}[/]{' ' * (12 - len(name))}{escape(words)}")
    for words in verdict.open:
        console.print(f"[yellow]Not verified:[/] arithmetic holds; {escape(words)}")
    for reason in certificate["not_releasable_because"]:
        console.print(f"[yellow]Not for release:[/] {escape(reason)}")


def _warn_unverified(release: Path) -> None:
    """Refuse a release that does not add up; say of another what is left open."""
    from ..release import verify as verify_release

    for words in verify_release(release).open:
        errors.print(f"{release}: arithmetic holds; {words}", markup=False)


def _show_scores(found: Any) -> None:
    heads = {"released": "released", "real": "real rows", "between": "between"}
    used = [of for of in heads if any(s.of == of for s in found.scores)]
    table = Table("score", "figure", box=None, pad_edge=False)
    for of in used:
        table.add_column(heads[of], justify="right")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for score in found.scores:
        rows.setdefault((score.name, score.figure), {})[score.of] = score
    for (name, figure), cells in rows.items():
        texts = [cells[of].text if of in cells else "" for of in used]
        table.add_row(escape(name), escape(figure), *texts)
    console.print(table)
    for note in dict.fromkeys(f"{s.name}: {s.note}" for s in found.scores if s.note):
        console.print(f"  {note}", markup=False)
    console.print(
        f"{found.released_rows} released rows, {found.test_rows} real test rows. "
        f"[yellow]{escape(found.stamp.capitalize())}.[/]"
    )


def _show_measured(measured: Any, out: Path | None) -> None:
    certificate = measured.certificate
    guarantee, data = certificate["guarantee"], certificate["data"]
    table = Table("figure", "value", "spread of the noise", box=None, pad_edge=False)
    for name, figure in measured.figures.items():
        form = ".0f" if name == "rows" else ".4f"
        table.add_row(name, f"{figure['value']:{form}}", f"{figure['noise_spread']:{form}}")
    console.print(table)
    console.print(
        f"{certificate['method']['settings']['classifier']}, trained on the release; its predictions "
        f"counted with noise: epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, charged "
        f"to '{data['dataset']}'.",
        markup=False,
    )
    for reason in certificate["not_releasable_because"]:
        console.print(f"[yellow]Not for release:[/] {escape(reason)}")
    if out is not None:
        console.print(f"With their certificate: {out} (limbeck verify checks it)", markup=False)


def _duration(minutes: float) -> str:
    if minutes < 90:
        return f"{max(1, round(minutes))} minutes" if minutes else "no time"
    return f"{minutes / 60:.0f} hours" if minutes < 60 * 48 else f"{minutes / 1440:.0f} days"


def _account_facts(account: Any) -> dict[str, Any]:
    runs = [
        {
            "started": r.started,
            "method": r.method,
            "epsilon": _finite(r.epsilon),
            "delta": r.delta,
            "state": r.status,
        }
        for r in account.runs
    ]
    life = vars(account.lifetime)
    return {
        "dataset": account.dataset,
        "lifetime": life,
        "spent": account.spent,
        "remaining": account.remaining,
        "runs": runs,
    }


def _finite(value: float) -> float | str:
    return "infinity" if math.isinf(value) else value


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
