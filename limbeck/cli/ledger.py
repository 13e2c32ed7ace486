"""The verb about what was ever spent: ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LimbeckError
from . import options as opt
from .show import console, finite, print_json, show_account

if TYPE_CHECKING:
    from ..ledger import Account, Ledger


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
    as_json: opt.AsJson = False,
) -> None:
    """Show what was ever spent, per data set, and what remains; `ledger check` finds edits."""
    from ..ledger import Ledger

    book = Ledger()
    if action not in ("", "check"):
        raise LimbeckError(f"Unknown `limbeck ledger {action}`. There is `limbeck ledger check`.")
    if action == "check":
        _check(book, noted, as_json)
        return
    if noted is not None:
        raise LimbeckError("--noted goes with `limbeck ledger check`.")
    if set_dataset is not None:
        _set_lifetime(book, set_dataset, epsilon, delta, filter_name)
    elif epsilon is not None or delta is not None or filter_name is not None:
        raise LimbeckError(
            "--epsilon, --delta and --filter change a lifetime budget: say whose with --set."
        )
    accounts, looks = book.accounts(), book.looks()
    if as_json:
        print_json([_facts(a) | {"looks": looks.get(a.dataset, [])} for a in accounts])
        return
    if not accounts:
        console.print(f"Nothing was spent yet. The ledger is {book.path}.", markup=False)
    for account in accounts:
        show_account(account)
    for dataset, times in looks.items():
        often = "once" if len(times) == 1 else f"{len(times)} times"
        console.print(
            f"{dataset}: rows looked at without noise (limbeck check) {often}, last at {times[-1]}",
            markup=False,
        )


def _check(book: Ledger, noted: str | None, as_json: bool) -> None:
    seal = book.check_entries(noted)
    if as_json:
        print_json({"entries": seal.entries, "digest": seal.digest})
        return
    console.print(f"[green]Whole[/]   {seal.entries} entries, none was edited")
    console.print(f"[green]Digest[/]  {seal.digest}")
    console.print(
        "Note the digest elsewhere: with --noted a later check also finds entries that were removed "
        "at the end, or all written anew."
    )


def _set_lifetime(
    book: Ledger,
    dataset: str,
    epsilon: float | None,
    delta: float | None,
    filter_name: str | None,
) -> None:
    from ..schema import Lifetime

    if epsilon is None or delta is None:
        raise LimbeckError("--set needs --epsilon and --delta: the new lifetime budget.")
    filters = [a.lifetime.filter for a in book.accounts() if a.dataset == dataset]
    adding = filter_name or (filters[0] if filters else "gdp")
    book.set_lifetime(dataset, Lifetime(epsilon=epsilon, delta=delta, filter=adding))


def _facts(account: Account) -> dict[str, Any]:
    runs = [
        {
            "started": r.started,
            "method": r.method,
            "epsilon": finite(r.epsilon),
            "delta": r.delta,
            "state": r.status,
        }
        for r in account.runs
    ]
    return {
        "dataset": account.dataset,
        "lifetime": vars(account.lifetime),
        "spent": account.spent,
        "remaining": account.remaining,
        "runs": runs,
    }
