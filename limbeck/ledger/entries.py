"""The ledger's entries: a table that only grows, each entry sealed by a digest of all before it.

There are four kinds: "lifetime" fixes or changes what a data set may cost, "run" books a charge,
"state" says what became of a run, "seen" that the owner looked at the rows without noise. Nothing is ever rewritten, so an entry's digest, taken over its
words and the digest before it, stays what it was: whoever edits one breaks the chain there. All is read
from the table itself (`NOT INDEXED`): the chain says nothing of an index, in which a run could be missing.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from typing import Any

from ..schema import dataset_name

START = "0" * 64
"""The digest before the first entry."""


def append(
    database: sqlite3.Connection, kind: str, dataset: str, run: str, content: dict[str, Any]
) -> None:
    """Add an entry to the chain; to be called within a transaction that locks the file."""
    last = database.execute("SELECT number, digest FROM entries ORDER BY number DESC").fetchone()
    number, before = (1, START) if last is None else (last["number"] + 1, last["digest"])
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps(content, sort_keys=True)
    words = (number, kind, dataset_name(dataset), run, text, written)
    columns = "number, kind, dataset, run, content, written, digest"
    sealed = (*words, entry_digest(before, words))
    database.execute(f"INSERT INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", sealed)


def lifetime_of(database: sqlite3.Connection, dataset: str) -> dict[str, Any] | None:
    """What the data set may cost, as it was last fixed."""
    row = database.execute(
        "SELECT content FROM entries NOT INDEXED WHERE kind = 'lifetime' AND dataset = ?"
        " ORDER BY number DESC LIMIT 1",
        (dataset_name(dataset),),
    ).fetchone()
    return None if row is None else json.loads(row["content"])


def runs_of(database: sqlite3.Connection, dataset: str) -> list[dict[str, Any]]:
    """Every run that was booked, in order, each with its latest state."""
    runs: dict[str, dict[str, Any]] = {}
    rows = database.execute(
        "SELECT kind, run, content FROM entries NOT INDEXED WHERE dataset = ? AND kind IN ('run', 'state')"
        " ORDER BY number",
        (dataset_name(dataset),),
    )
    for row in rows:
        runs.setdefault(row["run"], {}).update(json.loads(row["content"]))
    return list(runs.values())


def run_of(database: sqlite3.Connection, run: str) -> dict[str, Any] | None:
    """One run's facts with its latest state."""
    rows = database.execute(
        "SELECT dataset, content FROM entries NOT INDEXED WHERE run = ? AND kind IN ('run', 'state')"
        " ORDER BY number",
        (run,),
    ).fetchall()
    facts: dict[str, Any] = {}
    for row in rows:
        facts |= json.loads(row["content"]) | {"dataset": row["dataset"]}
    return facts or None


def entry_digest(before: str, words: tuple[Any, ...]) -> str:
    """The seal of an entry: of its words and of the digest before."""
    return hashlib.sha256(json.dumps([before, *words]).encode()).hexdigest()
