"""The chain of the ledger's entries, recomputed: whether one was edited."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..errors import LimbeckError
from .entries import START, entry_digest


class Seal(NamedTuple):
    """How long the chain is, and its last digest: noted elsewhere, it shows that nothing is gone."""

    entries: int
    digest: str


def check_chain(database: sqlite3.Connection, noted: str | None = None) -> Seal:
    """Recompute every digest.

    Args:
        database: The ledger.
        noted: A digest that was noted earlier: it must still be in the chain.

    Raises:
        LimbeckError: An entry was changed, added or removed other than by booking, or the file
            contradicts itself.
    """
    damage = [row[0] for row in database.execute("PRAGMA integrity_check")]
    if damage != ["ok"]:
        raise LimbeckError(
            f"The ledger's file is damaged or was edited ({str(damage[0]).splitlines()[-1]}). Compare it with "
            "a backup."
        )
    before, count, seen = START, 0, noted in (None, START)
    for row in database.execute("SELECT * FROM entries ORDER BY number"):
        words = tuple(row[n] for n in ("number", "kind", "dataset", "run", "content", "written"))
        if row["number"] != count + 1:
            raise LimbeckError(
                f"The ledger was edited: entry {count + 1} is missing. Compare it with a backup."
            )
        if row["digest"] != entry_digest(before, words):
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
