"""`Book`: where a run's charge is written before its noise is drawn.

Keyed by the name that the schema declares, never by the rows. A crash can over-count, never
under-count. One SQLite transaction checks and books, so two processes cannot both spend the last of
a budget. The file is for its owner alone (mode 0600): it says which data sets there are.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..accounting import Charge
from ..schema import Lifetime
from .booked import Run
from .entries import append, lifetime_of, run_of, runs_of
from .filters import check_admitted
from .form import cannot_open, create_file, guard_files, prepare


class Book:
    """The local book of all spending, as a run uses it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        create_file(path)
        with self._connect() as database:
            prepare(database)
        guard_files(path, self.jobs)

    @property
    def jobs(self) -> Path:
        """Folder with the protected state of unfinished runs."""
        return self.path.parent / "jobs"

    def check(self, dataset: str, lifetime: Lifetime, run: Run) -> None:
        """Refuse a run that would overdraw; called before rows are read."""
        with self._connect() as database:
            _admit(database, dataset, lifetime, run)

    def charge(self, lifetime: Lifetime, run: Run, *, instead_of: str | None = None) -> None:
        """Check and book in one transaction; called before noise is drawn. A run that is booked again is
        booked anew, with all its charges. `instead_of` is an unfinished run that is given up; it stays booked."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            _admit(database, run.dataset, lifetime, run)
            if lifetime_of(database, run.dataset) is None:
                append(database, "lifetime", run.dataset, "", vars(lifetime))
            if instead_of is not None:
                _mark(database, instead_of, "abandoned")
            append(database, "run", run.dataset, run.id, run.facts())

    def finish(self, run: str, state: str = "done") -> None:
        """Mark what became of a run; its charge stays what it was."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            _mark(database, run, state)

    def booked(self, run: str) -> tuple[Charge, ...]:
        """What was booked for a run so far: its check, then everything; nothing if it is not known."""
        with self._connect() as database:
            facts = run_of(database, run)
        return () if facts is None else Run.from_facts(facts).charges

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                database.row_factory = sqlite3.Row
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise cannot_open(self.path, error) from None


def booked_runs(database: sqlite3.Connection, dataset: str) -> tuple[Run, ...]:
    """Every run that was booked on a data set, in order."""
    return tuple(Run.from_facts(f | {"dataset": dataset}) for f in runs_of(database, dataset))


def _admit(database: sqlite3.Connection, dataset: str, declared: Lifetime, run: Run) -> None:
    fixed = lifetime_of(database, dataset)
    lifetime = declared if fixed is None else Lifetime(**fixed)
    before = [booked for booked in booked_runs(database, dataset) if booked.id != run.id]
    check_admitted(run, before, declared, lifetime)


def _mark(database: sqlite3.Connection, run: str, state: str) -> None:
    """Note what became of a run; one that is never released stays so."""
    facts = run_of(database, run)
    if facts is not None and facts["private"] and facts["status"] != state:
        append(database, "state", facts["dataset"], run, {"status": state})
