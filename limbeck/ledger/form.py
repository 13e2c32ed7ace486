"""The form of the ledger's file: its tables, and how files of older versions are brought to it.

The file carries its form in `PRAGMA user_version`. A file of an older form is brought to today's in
one transaction; one of a newer form is refused, since misreading it could spend a budget twice.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from ..errors import LimbeckError
from .entries import append, lifetime_of
from .lock import restrict

FORM = 1
"""The form of the ledger's file that this version writes. Form 0 had no chain."""

_TABLES = (
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, run TEXT NOT NULL,
        content TEXT NOT NULL, written TEXT NOT NULL, digest TEXT NOT NULL)""",
    "CREATE INDEX entries_of_dataset ON entries (dataset)",
    "CREATE INDEX entries_of_run ON entries (run)",
    """CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END""",
    """CREATE TRIGGER entries_remain BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END""",
    # Programs that know form 0 alone must not take this file for an empty ledger and spend again:
    # they ask for tables of these names, and writing to a view fails.
    "CREATE VIEW runs AS SELECT run, dataset, content FROM entries WHERE kind = 'run'",
    "CREATE VIEW datasets AS SELECT dataset, content FROM entries WHERE kind = 'lifetime'",
)

_FORM_0 = {
    "datasets": {"name", "epsilon", "delta", "filter"},
    "runs": {"id", "dataset", "method", "epsilon", "delta", "adjacency"}
    | {"charges", "private", "status", "started"},
}


def create_file(path: Path) -> None:
    """Make the ledger's file, for its owner alone, where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise cannot_open(path, error) from None


def guard_files(path: Path, jobs: Path) -> None:
    """Let nobody but the owner read the file, what SQLite keeps beside it, and the jobs."""
    restrict(jobs, 0o700)
    for ending in ("", "-journal", "-wal", "-shm"):
        restrict(path.with_name(path.name + ending), 0o600)


def cannot_open(path: Path, error: Exception) -> LimbeckError:
    return LimbeckError(
        f"Cannot open the ledger {path}: {error}. Nothing can be spent without it; name a writable "
        "place in LIMBECK_LEDGER."
    )


def prepare(database: sqlite3.Connection) -> None:
    """Bring the file to today's form, or refuse one that a newer version made."""
    if _form(database) == FORM:
        return
    database.execute("BEGIN IMMEDIATE")
    form = _form(database)  # another process may have been first
    if form == 0:
        _from_form_0(database)
    database.execute("COMMIT")


def _form(database: sqlite3.Connection) -> int:
    form = int(database.execute("PRAGMA user_version").fetchone()[0])
    if form > FORM:
        raise LimbeckError(
            f"The ledger was written by a newer version of limbeck (form {form}; this one reads up to "
            f"{FORM}). Install that version; nothing is read or spent with this one."
        )
    return form


def _from_form_0(database: sqlite3.Connection) -> None:
    """A new file, or one whose tables of data sets and runs become the first entries."""
    known = database.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    tables = {
        row["name"]: {c["name"] for c in database.execute(f'PRAGMA table_info("{row["name"]}")')}
        for row in known.fetchall()
    }
    if tables not in ({}, _FORM_0):
        raise sqlite3.DatabaseError("it is the database of something else")
    old = [
        database.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall() if tables else []
        for table in _FORM_0
    ]
    for table in ("runs", "datasets"):
        database.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _TABLES:
        database.execute(statement)
    for row in old[0]:
        # Names that differed in spelling alone become one: the smallest promise of theirs holds.
        fixed = lifetime_of(database, row["name"])
        life = {name: row[name] for name in ("epsilon", "delta", "filter")}
        if fixed is None or (life["epsilon"], life["delta"]) < (fixed["epsilon"], fixed["delta"]):
            append(database, "lifetime", row["name"], "", life)
    for row in old[1]:
        content = {name: row[name] for name in row.keys()}  # noqa: SIM118 (a Row yields values)
        content |= {"charges": json.loads(row["charges"]), "private": bool(row["private"])}
        content["epsilon"] = row["epsilon"] if row["private"] else None
        append(database, "run", content.pop("dataset"), row["id"], content)
    database.execute(f"PRAGMA user_version = {FORM}")
