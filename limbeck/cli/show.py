"""What verbs say: tables and lines for people, bars while they wait, JSON for machines."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ..evaluation import Look, MeasuredScores
    from ..ledger import Account
    from ..planning import Plan
    from ..release import Model, Release, Verdict
    from ..scores import Scores


class QuietConsole(Console):
    """One that goes on without a word when nobody reads any more: a paid run is not cut short."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        mute(self.file)


def mute(stream: Any) -> None:
    """Send what is still to be said nowhere, so that nothing complains at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _console(stream: Any) -> Console:
    """On a terminal, words are wrapped at its width. Elsewhere a line stays one line, for `grep`."""
    if stream is not None and stream.isatty():
        return QuietConsole(highlight=False)
    return QuietConsole(highlight=False, soft_wrap=True, width=1000)


console = _console(sys.stdout)
errors = QuietConsole(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def progress_bars(
    quiet: bool = False, *, steps: dict[str, int] | None = None, spent: str = ""
) -> Iterator[Callable[[str, float], None]]:
    """A bar per phase on a terminal; elsewhere one line per finished phase, or with `quiet` none.

    Args:
        quiet: Show nothing: the output is for machines.
        steps: How many steps the phases of these names have.
        spent: What is booked once rows are read, shown beside the bars.
    """
    if quiet or not console.is_terminal:
        yield _finished_lines(quiet)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from ..planning import CHECK

    # Together within 80 columns.
    columns = (
        TextColumn("  {task.description:<18}", markup=False),
        BarColumn(bar_width=14),
        TextColumn("{task.fields[where]:>9}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}", markup=False, style="dim"),
    )
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, Any] = {}

        def bar(phase: str, done: float) -> None:
            if phase not in tasks:
                beside = "" if phase in ("reading", CHECK) else spent
                tasks[phase] = bars.add_task(phase, total=1.0, where="", spent=beside)
            count = (steps or {}).get(phase.rpartition(", ")[2], 1)
            where = f"{round(done * count)}/{count}" if count > 1 else f"{done:.0%}"
            bars.update(tasks[phase], completed=done, where=where)

        yield bar


def _finished_lines(quiet: bool) -> Callable[[str, float], None]:
    seen: set[str] = set()

    def line(phase: str, done: float) -> None:
        if done >= 1 and phase not in seen and not quiet:
            seen.add(phase)
            console.print(f"  {phase}: done", markup=False)

    return line


def booked(epsilon: float) -> str:
    """What is said beside the bars of a run that is paid for."""
    return "" if math.isinf(epsilon) else f"epsilon {epsilon:g} booked"


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    heads_shown: bool = True,
) -> None:
    """A table without lines.

    Args:
        heads: Of the columns.
        rows: Cells, as plain text.
        right: Heads of columns that end flush.
        heads_shown: Whether there is a line of heads.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=heads_shown)
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)


def show_look(look: Look) -> None:
    """How the rows fit their schema, in bands, and the stamp."""
    show_table(
        ("column", "usable", "missing", "outside", "unknown", "declared"),
        [(name, *bands.values(), look.declared[name]) for name, bands in look.bands.items()],
    )
    if look.rules:
        show_table(("rule", "rows that break it"), list(look.rules.items()))
    for doubt in look.doubts:
        console.print(f"[yellow]Does not fit:[/] {escape(doubt)}")
    if look.fits_nothing:
        console.print(
            "[red]No column fits:[/] is this the schema of another file, or a draft that was filled in "
            "without knowing the file? Nothing should be paid for it."
        )
    elif not look.doubts:
        console.print("[green]Fits:[/] nearly every cell holds what its column declares.")
    console.print(
        f"[yellow]{look.stamp.capitalize()}.[/] Noted in the ledger; certificates of later runs say that "
        "the schema was seen against the rows."
    )


def show_plan(planned: Plan) -> None:
    """What would be measured, and what it costs together."""
    show_table(
        ("measurement", "mechanism", "share", "sensitivity", "noise", "rows", "steps"),
        [
            (
                charge.name,
                charge.mechanism,
                f"{share:.1%}",
                f"{charge.sensitivity:.4g}",
                f"{charge.noise:.4g}",
                "all" if charge.sampling is None else f"Poisson {charge.sampling:.3g}",
                str(charge.steps),
            )
            for charge, share in zip(planned.charges, planned.shares, strict=True)
        ],
        right=("share", "sensitivity", "noise", "steps"),
    )
    cost = planned.cost
    if math.isinf(cost.epsilon):
        console.print("[yellow]No noise: epsilon is infinite. Never for release.[/]")
        return
    console.print(
        "Noise: its standard deviation. Together: "
        f"epsilon {cost.epsilon:.6g} at delta {cost.delta:g} ({planned.budget.adjacency}); "
        f"of delta, {cost.slack:.2g} goes to the grid and {cost.threshold:.2g} to thresholds."
    )
    _show_check(planned)
    console.print("No row was read and nothing was spent.")


def _show_check(planned: Plan) -> None:
    """What is said of the check before it is paid for."""
    from ..schema import enough_for_gaps, enough_rows

    if planned.check is None:
        console.print("No check: the file is not held against its schema first.")
        return
    charge = planned.check.charges[0]
    console.print(
        f"First the check ({charge.name}), booked alone: epsilon {planned.check_cost.epsilon:.2g}. If by its "
        f"noisy counts a column is mostly unusable, or over a tenth of it empty where no gaps are declared, the "
        f"rest is not spent. It can tell from about {math.ceil(enough_rows(charge.noise)):,} rows on, gaps of a "
        f"fifth from about {math.ceil(enough_for_gaps(charge.noise)):,}."
    )


def show_blindness(planned: Plan) -> None:
    """Said before a run whose check cannot tell anything, by the number of rows that is declared."""
    from ..schema import enough_rows

    units, person = planned.schema.units, planned.schema.person
    least = 0.0 if planned.check is None else enough_rows(planned.check.charges[0].noise)
    if units is not None and units * (person.rows_at_most if person else 1) < least:
        console.print(
            f"With so few rows the noisy check cannot tell whether the file fits its schema (it can from about "
            f"{math.ceil(least):,}): hold them against it with `limbeck check` first."
        )


def show_spent(account: Account) -> None:
    """What was spent so far, in a line."""
    console.print(
        f"Spent so far on '{account.dataset}': epsilon {account.spent:.4g} of "
        f"{account.lifetime.epsilon:g}.",
        markup=False,
    )


def show_refusal(why: str) -> None:
    console.print(f"[yellow]`distill` would refuse this run:[/] {escape(why)}")


def show_release(release: Release | Model, out: Path) -> None:
    """What a release holds and what it cost."""
    certificate = release.certificate
    guarantee, shares = certificate["guarantee"], certificate["shares"]
    if hasattr(release, "label"):
        what = f"a model that predicts '{escape(release.label)}'"
    else:
        what = f"{release.rows} {'images' if release.schema.image else 'rows'}"
    console.print(
        f"[green]Released[/] {what} to {escape(str(out))}: epsilon "
        f"{guarantee['epsilon']}, delta {guarantee['delta']:g}, protecting {escape(guarantee['unit_of_privacy'])}."
    )
    for charge in certificate["charges"]:
        console.print(
            f"  {charge['name']}: {shares[charge['name']]:.0%} of the budget, noise "
            f"{charge['noise_multiplier']:.3g} x sensitivity {charge['sensitivity']:g}",
            markup=False,
        )
    chosen = certificate["method"].get("chosen_among")
    if chosen and not certificate["method"]["redistilled_from"]:
        others = [c["settings"] for c in chosen["candidates"]]
        decided = [
            f"{name} = {value}"
            for name, value in certificate["method"]["settings"].items()
            if any(other[name] != value for other in others)
        ]
        console.print(
            f"  chosen among {len(others)} candidates by {chosen['way']}: {', '.join(decided)}",
            markup=False,
        )
    _show_reasons(certificate)


def _show_reasons(certificate: Mapping[str, Any]) -> None:
    for reason in certificate["not_releasable_because"]:
        console.print(f"[yellow]Not for release:[/] {escape(reason)}")


def show_verdict(verdict: Verdict, holds: str) -> None:
    """What `verify` found, and what it left open."""
    cost, certificate = verdict.cost, verdict.certificate
    guarantee, basis = certificate["guarantee"], certificate["accounting"]["basis"]
    colour = "green" if verdict.verified else "yellow"
    lines = {
        "Files": holds,
        "Epsilon": f"{cost.epsilon:.6g} at delta {cost.delta:g}, recomputed ({basis}); claimed "
        f"{guarantee['epsilon']}",
        "Cross-check": f"PLD {cost.pld:.6g}, RDP {cost.rdp:.6g}",
        "Protects": f"{guarantee['unit_of_privacy']}; neighbours differ by {guarantee['neighbours']}",
    }
    if verdict.redone:
        lines["Made again"] = verdict.redone
    for name, words in lines.items():
        console.print(f"[{colour}]{name}[/]{' ' * (12 - len(name))}{escape(words)}")
    for words in verdict.open:
        console.print(f"[yellow]Not verified:[/] arithmetic holds; {escape(words)}")
    _show_reasons(certificate)


def say_what_is_open(release: Path) -> None:
    """Refuse a release that does not add up; say of another what is left open."""
    from ..release import verify as verify_release

    for words in verify_release(release).open:
        errors.print(f"{release}: arithmetic holds; {words}", markup=False)


def show_scores(scores: Scores) -> None:
    """Scores beside those of real rows, and the stamp."""
    heads = {"released": "released", "real": "real rows", "between": "between"}
    used = [of for of in heads if any(s.of == of for s in scores.scores)]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for score in scores.scores:
        rows.setdefault((score.name, score.figure), {})[score.of] = score.text
    shown = [heads[of] for of in used]
    show_table(
        ("score", "figure", *shown),
        [(*named, *(texts.get(of, "") for of in used)) for named, texts in rows.items()],
        right=shown,
    )
    if scores.pairs:
        show_table(
            ("columns that correlate most", "", "released", "real rows"),
            [(p.first, p.second, f"{p.released:.2f}", f"{p.real:.2f}") for p in scores.pairs],
            right=("released", "real rows"),
        )
    for note in dict.fromkeys(f"{s.name}: {s.note}" for s in scores.scores if s.note):
        console.print(f"  {note}", markup=False)
    released = f"{scores.released_rows} released rows" if scores.released_rows else "A model"
    console.print(
        f"{released}, {scores.test_rows} real test rows. "
        f"[yellow]{escape(scores.stamp.capitalize())}.[/]"
    )


def show_measured(measured: MeasuredScores, out: Path | None) -> None:
    """Scores that were paid for, with what they cost."""
    certificate = measured.certificate
    guarantee, data = certificate["guarantee"], certificate["data"]
    rows = []
    for name, figure in measured.figures.items():
        form = ".0f" if name == "rows" else ".4f"
        rows.append((name, f"{figure['value']:{form}}", f"{figure['noise_spread']:{form}}"))
    show_table(
        ("figure", "value", "spread of the noise"), rows, right=("value", "spread of the noise")
    )
    console.print(
        f"{certificate['method']['settings']['classifier']}, trained on the release; its predictions "
        f"counted with noise: epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, charged "
        f"to '{data['dataset']}'.",
        markup=False,
    )
    _show_reasons(certificate)
    if out is not None:
        console.print(f"With their certificate: {out} (limbeck verify checks it)", markup=False)


def show_account(account: Account) -> None:
    """One data set's lifetime budget and its runs."""
    life = account.lifetime
    console.print(
        f"[bold]{escape(account.dataset)}[/]: epsilon {account.spent:.4g} spent, {account.remaining:.4g} "
        f"remains of {life.epsilon:g} (delta {life.delta:g}, {life.filter})"
    )
    show_table(
        ("started", "method", "epsilon", "delta", "state"),
        [(r.started, r.method, f"{r.epsilon:.4g}", f"{r.delta:g}", r.status) for r in account.runs],
        right=("epsilon", "delta"),
    )


def finite(value: float) -> float | str:
    """For JSON, which has no infinity."""
    return "infinity" if math.isinf(value) else value


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
