"""The verbs about finished releases: verify, evaluate, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LimbeckError
from . import options as opt
from .show import (
    booked,
    console,
    finite,
    print_json,
    progress_bars,
    say_what_is_open,
    show_measured,
    show_scores,
    show_verdict,
)

if TYPE_CHECKING:
    from ..audits import Audit
    from ..release import Release


def verify(
    release: Annotated[
        Path, typer.Argument(help="A release, or a file of measured scores.", show_default=False)
    ],
    arithmetic: Annotated[
        bool,
        typer.Option("--arithmetic", help="Do not compare with the method's questions: no JAX."),
    ] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Make rows again from the measurements and public seeds: finds real rows.",
        ),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Recompute epsilon from the certificate alone and check every file's sum.

    Exit code 3: the arithmetic holds, but something is left open, such as a method not known here.
    """
    if deep and arithmetic:
        raise LimbeckError("--deep needs the method's code, which --arithmetic does not load.")
    if release.is_file():
        if deep:
            raise LimbeckError(f"--deep is for releases; {release} is a file.")
        from ..evaluation import verify_scores

        verdict, holds = verify_scores(release), "every figure follows"
    else:
        from ..release import verify as verify_release

        verdict = verify_release(release, questions=not arithmetic, deep=deep)
        holds = "every checksum holds"
    if as_json:
        print_json(
            {
                "verified": verdict.verified,
                "open": list(verdict.open),
                "redone": verdict.redone,
                "epsilon": finite(verdict.epsilon),
                "delta": verdict.delta,
                "not_releasable_because": verdict.certificate["not_releasable_because"],
            }
        )
    else:
        show_verdict(verdict, holds)
    if not verdict.verified:
        raise typer.Exit(3)


def evaluate(
    release: opt.ReleasePath,
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
    fid: Annotated[
        Path | None,
        typer.Option(
            "--fid", help="Inception weights (.npz): adds the Frechet distance of images."
        ),
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
    pay_again: opt.PayAgain = False,
    as_json: opt.AsJson = False,
) -> None:
    """Score a release against real rows. Internal, unless the scores are paid for: --releasable."""
    import limbeck as lk

    from ..outside import place_outside
    from ..release import load

    if out is not None:
        place_outside(out, "scores")  # before anything is paid or computed
    say_what_is_open(release)
    given = load(release)
    if releasable is not None:
        if isinstance(given, lk.Model):
            raise LimbeckError("--releasable counts what released rows teach, and this is a model.")
        if train is not None or full or seeds is not None or fid is not None:
            raise LimbeckError(
                "--releasable counts the predictions of one classifier; it goes without --train, "
                "--full, --seeds and --fid."
            )
        _measure(given, test, releasable, delta, out, pay_again, as_json)
        return
    if pay_again:
        raise LimbeckError("--pay-again goes with --releasable: nothing else is paid for here.")
    tested = test if isinstance(given, lk.Model) else lk.read(test, given.schema)
    control = None if train is None else lk.read(train, given.schema)
    with progress_bars(quiet=as_json) as report:
        scores = lk.evaluate(
            given, tested, train=control, full=full, seeds=seeds, fid=fid, progress=report
        )
    if out is not None:
        scores.save(out)
    if as_json:
        print_json(scores.facts())
    else:
        show_scores(scores)


def _measure(
    release: Release,
    test: Path,
    epsilon: float,
    delta: float,
    out: Path | None,
    pay_again: bool,
    as_json: bool,
) -> None:
    """Scores that are paid for."""
    import limbeck as lk

    budget = lk.Budget(epsilon, delta, release.certificate["guarantee"]["adjacency"])
    with progress_bars(quiet=as_json, spent=booked(epsilon)) as report:
        measured = lk.measure_scores(
            release,
            lk.read(test, release.schema),
            budget,
            out=out,
            progress=report,
            pay_again=pay_again,
        )
    if as_json:
        print_json(measured.facts())
    else:
        show_measured(measured, out)


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
    force: opt.Force = False,
) -> None:
    """Write one self-contained HTML page about a release."""
    import limbeck as lk

    from ..evaluation import is_measured
    from ..outside import place_outside, write_outside
    from ..report import folder_names, make_report

    if out.exists() and not force:
        raise LimbeckError(f"{out} exists already. Choose another file, or pass --force.")
    place_outside(out, "the page")
    names = folder_names(releases)
    for folder in releases:
        say_what_is_open(folder)
    given = [lk.Release.load(folder) for folder in releases]
    paid = [path for path in scores or () if is_measured(path)]
    internal = [path for path in scores or () if path not in paid]
    page = make_report(
        given,
        names=names,
        scores=[lk.Scores.load(path) for path in internal],
        measured=[lk.MeasuredScores.load(path) for path in paid],
        real=None if test is None else lk.read(test, given[0].schema),
        audit=_audit_of(releases[0], given[0]),
    )
    write_outside(out, page, "the page")
    console.print(f"Page: {out}", markup=False)
    if internal or test:
        console.print("[yellow]Internal: not covered by epsilon.[/]")


def _audit_of(folder: Path, release: Release) -> Audit | None:
    """The findings of `limbeck audit` about a release, where they lie beside it."""
    from ..audits import Audit
    from ..release import certificate_digest
    from .audit import beside

    path = beside(folder)
    if not path.exists():
        return None
    audit = Audit.load(path)
    return audit if audit.release == certificate_digest(release.certificate) else None
