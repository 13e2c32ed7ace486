"""`Ledger`: the book as its owner reads it: what was ever spent on a data set, and what is left."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import LimbeckError
from ..schema import Lifetime, dataset_name
from .book import Book, booked_runs
from .booked import Run
from .chain import Seal, check_chain
from .entries import append, lifetime_of
from .filters import spent
from .lock import try_lock


def default_path() -> Path:
    """`$LIMBECK_LEDGER`, or ledger.sqlite in the user's state folder."""
    if "LIMBECK_LEDGER" in os.environ:
        return Path(os.environ["LIMBECK_LEDGER"])
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "limbeck" / "ledger.sqlite"


@dataclass(frozen=True)
class Account:
    """A data set's lifetime budget and what is spent of it."""

    dataset: str
    lifetime: Lifetime
    spent: float
    """Epsilon at the lifetime's delta, by the lifetime's filter."""
    runs: tuple[Run, ...]

    @property
    def remaining(self) -> float:
        return max(0.0, self.lifetime.epsilon - self.spent)


class Ledger(Book):
    """The local book of all spending.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ledger(Path(folder) / "ledger.sqlite").accounts()
    []
    """

    def __init__(self, path: str | Path | None = None) -> None:
        super().__init__(Path(path) if path is not None else default_path())

    def account(self, dataset: str) -> Account | None:
        """What was spent on one data set; None if it was never charged."""
        return next((a for a in self.accounts() if a.dataset == dataset_name(dataset)), None)

    def accounts(self) -> list[Account]:
        """Every data set that was ever charged; runs that did not end are told apart."""
        with self._connect() as database:
            names = database.execute(
                "SELECT DISTINCT dataset FROM entries NOT INDEXED WHERE kind != 'seen' ORDER BY dataset"
            )
            accounts = [_account(database, row["dataset"]) for row in names.fetchall()]
        if any(run.status == "running" for account in accounts for run in account.runs):
            states = unfinished(self.jobs)
            accounts = [replace(a, runs=tuple(_now(r, states) for r in a.runs)) for a in accounts]
        return accounts

    def set_lifetime(self, dataset: str, lifetime: Lifetime) -> None:
        """Change a data set's lifetime budget: a decision of the owner, made knowingly."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            if lifetime_of(database, dataset) is None:
                raise LimbeckError(f"The ledger has no data set '{dataset}'.")
            append(database, "lifetime", dataset, "", vars(lifetime))

    def note_look(self, dataset: str, schema: str) -> None:
        """Note that the owner looks at the rows without noise: called before a row is read.

        Args:
            dataset: Whose rows.
            schema: Digest of the schema that they are held against.
        """
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            append(database, "seen", dataset, "", {"schema": schema})

    def looks(self) -> dict[str, list[str]]:
        """When the owner looked at the rows without noise, by data set."""
        times: dict[str, list[str]] = {}
        with self._connect() as database:
            entries = database.execute(
                "SELECT dataset, written FROM entries NOT INDEXED WHERE kind = 'seen' ORDER BY dataset, number"
            )
            for entry in entries:
                times.setdefault(entry["dataset"], []).append(entry["written"])
        return times

    def check_entries(self, noted: str | None = None) -> Seal:
        """Recompute the chain of entries, and find one that was edited.

        Args:
            noted: The digest of an earlier check, which must still be in the chain. Without one,
                entries removed at the end cannot be missed.
        """
        with self._connect() as database:
            return check_chain(database, noted)


def unfinished(jobs: Path) -> dict[str, str]:
    """What became of the runs whose jobs are kept: they are running, or can be resumed."""
    states = {}
    for path in jobs.glob("*/run") if jobs.is_dir() else ():
        try:
            run = path.read_text(encoding="utf-8", errors="replace")
            handle = try_lock(path.parent / "lock")
        except FileNotFoundError:
            continue  # it ended meanwhile
        if handle is not None:
            os.close(handle)
        states[run] = "running" if handle is None else "interrupted, resumable"
    return states


def _account(database: sqlite3.Connection, name: str) -> Account:
    lifetime, runs = Lifetime(**(lifetime_of(database, name) or {})), booked_runs(database, name)
    return Account(name, lifetime, spent(runs, lifetime), runs)


def _now(run: Run, states: Mapping[str, str]) -> Run:
    """A run booked as running whose job is gone will never end."""
    return replace(run, status=states.get(run.id, "abandoned")) if run.status == "running" else run
