"""The verb that tries to break a claim: audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LimbeckError
from . import options as opt
from .show import console, print_json, progress_bars, show_table

if TYPE_CHECKING:
    from ..audits import Audit, Finding
    from ..methods import AbstractMethod


def audit(
    release: Annotated[
        Path | None,
        typer.Argument(help="Folder of a release: audits what it claims.", show_default=False),
    ] = None,
    method: opt.MethodName = None,
    recipe: opt.RecipePath = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", help="Made-up rows are of this schema (TOML).", show_default=False
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Claim of the runs; by default 4.", show_default=False),
    ] = None,
    delta: opt.Delta = None,
    setting: opt.Settings = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer neighbours and draws: seconds, not minutes.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of made-up rows, coins and noise.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File for the findings; by default audit.json, beside a release that is audited.",
            show_default=False,
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Try to show that a method, or a release, spends more privacy than it claims.

    Works on made-up rows: no row of yours is read and nothing is spent. Exit code 2: it does spend more.
    """
    import limbeck as lk
    from limbeck.accounting import default_delta

    if (release is None) == (method is None and recipe is None):
        raise LimbeckError(
            "Say what to audit: the folder of a release, or --method NAME, or --recipe NAME."
        )
    if release is not None and (schema or setting or epsilon or delta):
        raise LimbeckError("A release names its schema, settings and budget: leave yours out.")
    declared = None if schema is None else lk.Schema.load(schema)
    budget = None
    if epsilon is not None or delta is not None:
        rows = None if declared is None else declared.units
        budget = lk.Budget(4.0 if epsilon is None else epsilon, delta or default_delta(rows))
    subject = release if release is not None else _asked(method, recipe, setting)
    with progress_bars(quiet=as_json) as report:
        found = lk.audit(
            subject, schema=declared, budget=budget, quick=quick, seed=seed, progress=report
        )
    path = out or (Path("audit.json") if release is None else beside(release))
    found.save(path)
    if as_json:
        print_json(found.facts())
    else:
        show_audit(found, path)
    if not found.holds:
        raise typer.Exit(2)


def beside(release: Path) -> Path:
    """Where the findings about a release lie: next to its folder, never in it."""
    return release.resolve().parent / "audit.json"


def _asked(method: str | None, recipe: Path | None, setting: list[str] | None) -> AbstractMethod:
    """What is to be audited: a name stands for few steps, a recipe or settings for what they say."""
    from ..audits.small import small_method
    from ..methods import overlaid
    from ..run import Recipe, make_method

    if recipe is not None:
        chosen = Recipe.load(recipe).method
        if method is not None and method != chosen.name:
            raise LimbeckError(
                f"--method {method} contradicts the recipe, which says {chosen.name}."
            )
    else:
        assert method is not None
        chosen = small_method(method)
    changes = opt.read_settings(None, setting)
    return make_method(chosen.name, overlaid(chosen.settings(), changes)) if changes else chosen


def show_audit(found: Audit, path: Path) -> None:
    """A table of all parts, and what they prove."""
    console.print(
        f"{found.method}: epsilon {found.epsilon:g} at delta {found.delta:g} ({found.adjacency}, "
        f"per {found.unit}). Rows were made up, none of yours was read."
    )
    show_table(
        ("part", "claim", "at least", "delta", "runs", "seconds", "holds"),
        [_cells(finding) for finding in found.findings],
        right=("claim", "at least", "delta", "runs", "seconds"),
    )
    for finding in found.findings:
        mark = "[green]holds[/]" if finding.holds else "[red]broken[/]"
        console.print(f"{finding.part}: {mark}: ", end="")
        console.print(f"{finding.says}.", markup=False)
    if not found.holds:
        console.print("[red]The claim is broken.[/] Publish nothing made so, and see SECURITY.md.")
    console.print(f"Written to {path}.", markup=False)


def _cells(finding: Finding) -> tuple[str, ...]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    return (
        finding.part,
        number(finding.claim),
        number(finding.bound),
        number(finding.delta),
        f"{finding.runs:,}",
        f"{finding.seconds:.1f}",
        "yes" if finding.holds else "NO",
    )
