"""The ledger's entries: a table that only grows, each entry sealed by a digest of all before it.

There are three kinds: "lifetime" fixes or changes what a data set may cost, "run" books a charge,
"state" says what became of a run. Nothing is ever rewritten, so an entry's digest, taken over its
words and the digest before it, stays what it was: whoever edits one breaks the chain there.

The file carries its form in `PRAGMA user_version`. A file of an older form is brought to today's in
one transaction; one of a newer form is refused, since misreading it could spend a budget twice.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import unicodedata
from typing import Any, NamedTuple

from ..errors import LimbeckError

FORM = 1
"""The form of the ledger's file that this version writes. Form 0 had no chain."""
START = "0" * 64
"""The digest before the first entry."""

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


class Seal(NamedTuple):
    """How long the chain is, and its last digest: noted elsewhere, it shows that nothing is gone."""

    entries: int
    digest: str


def key_of(dataset: str) -> str:
    """The name that a data set is booked under: spelling, case and blanks do not make a new one.

    >>> key_of(" People  2020 ") == key_of("people 2020")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", dataset).casefold().split())


def prepare(database: sqlite3.Connection) -> None:
    """Bring the file to today's form, or refuse one that a newer version made."""
    if _form(database) == FORM:
        return
    database.execute("BEGIN IMMEDIATE")
    form = _form(database)  # another process may have been first
    if form == 0:
        _from_form_0(database)
    database.execute("COMMIT")


def append(
    database: sqlite3.Connection, kind: str, dataset: str, run: str, content: dict[str, Any]
) -> None:
    """Add an entry to the chain; to be called within a transaction that locks the file."""
    last = database.execute("SELECT number, digest FROM entries ORDER BY number DESC").fetchone()
    number, before = (1, START) if last is None else (last["number"] + 1, last["digest"])
    text = json.dumps(content, sort_keys=True)
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    words = (number, kind, key_of(dataset), run, text, written)
    database.execute(
        "INSERT INTO entries (number, kind, dataset, run, content, written, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*words, _digest(before, words)),
    )


def lifetime_of(database: sqlite3.Connection, dataset: str) -> dict[str, Any] | None:
    """What the data set may cost, as it was last fixed."""
    row = database.execute(
        "SELECT content FROM entries WHERE kind = 'lifetime' AND dataset = ?"
        " ORDER BY number DESC LIMIT 1",
        (key_of(dataset),),
    ).fetchone()
    return None if row is None else json.loads(row["content"])


def runs_of(database: sqlite3.Connection, dataset: str) -> list[dict[str, Any]]:
    """Every run that was booked, in order, each with its latest state."""
    found: dict[str, dict[str, Any]] = {}
    rows = database.execute(
        "SELECT kind, run, content FROM entries WHERE dataset = ? AND kind IN ('run', 'state')"
        " ORDER BY number",
        (key_of(dataset),),
    )
    for row in rows:
        found.setdefault(row["run"], {}).update(json.loads(row["content"]))
    return list(found.values())


def run_of(database: sqlite3.Connection, run: str) -> dict[str, Any] | None:
    """One run's facts with its latest state."""
    rows = database.execute(
        "SELECT dataset, content FROM entries WHERE run = ? ORDER BY number", (run,)
    ).fetchall()
    found: dict[str, Any] = {}
    for row in rows:
        found |= json.loads(row["content"]) | {"dataset": row["dataset"]}
    return found or None


def datasets(database: sqlite3.Connection) -> list[str]:
    """Every data set that was ever charged."""
    rows = database.execute("SELECT DISTINCT dataset FROM entries ORDER BY dataset")
    return [row["dataset"] for row in rows]


def check_chain(database: sqlite3.Connection, noted: str | None = None) -> Seal:
    """Recompute every digest.

    Args:
        database: The ledger.
        noted: A digest that was noted earlier: it must still be in the chain.

    Raises:
        LimbeckError: An entry was changed, added or removed other than by booking.
    """
    before, count, seen = START, 0, noted in (None, START)
    for row in database.execute("SELECT * FROM entries ORDER BY number"):
        words = tuple(row[n] for n in ("number", "kind", "dataset", "run", "content", "written"))
        if row["number"] != count + 1:
            raise LimbeckError(
                f"The ledger was edited: entry {count + 1} is missing. Compare it with a backup."
            )
        if row["digest"] != _digest(before, words):
            raise LimbeckError(
                f"The ledger was edited: entry {row['number']} (kind {row['kind']}, data set "
                f"'{row['dataset']}', written {row['written']}) does not fit its digest. Compare it "
                "with a backup."
            )
        before, count = row["digest"], row["number"]
        seen = seen or before == noted
    if not seen:
        raise LimbeckError(
            f"The ledger's {count} entries are whole, but the noted digest is not among them: entries "
            "were removed at the end, or all were written anew. Compare it with a backup."
        )
    return Seal(count, before)


def _digest(before: str, words: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps([before, *words]).encode()).hexdigest()


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
        held = lifetime_of(database, row["name"])
        life = {name: row[name] for name in ("epsilon", "delta", "filter")}
        if held is None or (life["epsilon"], life["delta"]) < (held["epsilon"], held["delta"]):
            append(database, "lifetime", row["name"], "", life)
    for row in old[1]:
        content = {name: row[name] for name in row.keys()}  # noqa: SIM118 (a Row yields values)
        content |= {"charges": json.loads(row["charges"]), "private": bool(row["private"])}
        content["epsilon"] = row["epsilon"] if row["private"] else None
        append(database, "run", content.pop("dataset"), row["id"], content)
    database.execute(f"PRAGMA user_version = {FORM}")
