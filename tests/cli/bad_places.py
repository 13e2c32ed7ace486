"""Places that cannot be written to, and ledgers that pay nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from desk import Builder, Case, Desk, filled_folder, overspend, spend


def summed_folder(desk: Desk) -> Path:
    """Many folders that are no release have a file of this name."""
    desk.file("out/SHA256SUMS", "0  diary.txt\n")
    return filled_folder(desk)


def contradict(desk: Desk) -> list[str]:
    spend(desk)
    return desk.declare("epsilon = 1.5", "epsilon = 20")


def at_ledger(make: Callable[[Desk], Path], words: Builder = Desk.distill) -> Builder:
    def build(desk: Desk) -> list[str]:
        desk.environment["LIMBECK_LEDGER"] = str(make(desk))
        return words(desk)

    return build


def other_database(desk: Desk) -> Path:
    path = desk.folder.parent / "elsewhere" / "other.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE datasets (title TEXT)")
    database.close()
    return path


def known_set(*more: str) -> Builder:
    def build(desk: Desk) -> list[str]:
        spend(desk)
        return ["ledger", "--set", "people", *more]

    return build


LEDGER = "Nothing can be spent without it"

PLACES: list[Case] = [
    ("out exists", lambda d: d.distill(out=filled_folder(d)), ("out exists", "--force")),
    ("out is a file", lambda d: d.distill(out=d.file("out", "")), ("out exists", "--force")),
    (
        "force on a folder",
        lambda d: d.distill("--force", out=filled_folder(d)),
        ("not a release", "not replaced"),
    ),
    (
        "force on sums",
        lambda d: d.distill("--force", out=summed_folder(d)),
        ("not a release", "not replaced"),
    ),
    (
        "force on a file",
        lambda d: d.distill("--force", out=d.file("out", "")),
        ("not a release", "not replaced"),
    ),
    (
        "out below a file",
        lambda d: d.distill(out=d.file("notes.txt", "") / "out"),
        ("Cannot write to", "notes.txt", "not a folder"),
    ),
    (
        "out deep below a file",
        lambda d: d.distill(out=d.file("notes.txt", "") / "deep" / "out"),
        ("Cannot write to", "notes.txt", "not a folder"),
    ),
    ("out in /proc", lambda d: d.distill(out=Path("/proc/none/out")), ("Cannot write to", "/proc")),
    (
        "budget spent",
        overspend,
        ("Budget spent", "'people'", "1.5", "is spent", "smaller epsilon"),
    ),
    (
        "lifetime contradicts",
        contradict,
        ("[lifetime]", "epsilon 20", "epsilon 1.5", "limbeck ledger --set people"),
    ),
    (
        "ledger is a folder",
        at_ledger(lambda d: d.folder),
        ("Cannot open the ledger", LEDGER, "LIMBECK_LEDGER"),
    ),
    (
        "ledger is a text",
        at_ledger(lambda d: d.file("ledger.txt", "dear diary\n" * 99)),
        ("Cannot open the ledger", "ledger.txt", LEDGER, "LIMBECK_LEDGER"),
    ),
    (
        "ledger below a file",
        at_ledger(lambda d: d.file("notes.txt", "") / "ledger.sqlite"),
        ("Cannot open the ledger", "notes.txt", "LIMBECK_LEDGER"),
    ),
    ("ledger of others", at_ledger(other_database), ("ledger", "LIMBECK_LEDGER")),
    (
        "ledger of others, shown",
        at_ledger(other_database, lambda d: ["ledger"]),
        ("ledger", "LIMBECK_LEDGER"),
    ),
    (
        "set of nobody",
        lambda d: ["ledger", "--set", "nobody", "--epsilon", "1", "--delta", "1e-5"],
        ("no data set 'nobody'",),
    ),
    ("set to nothing", known_set(), ("--set", "--epsilon and --delta")),
    ("set without delta", known_set("--epsilon", "2"), ("--set", "--epsilon and --delta")),
    ("set below 0", known_set("--epsilon", "-2", "--delta", "0.1"), ("epsilon", "got -2")),
    (
        "set by a filter",
        known_set("--epsilon", "2", "--delta", "0.1", "--filter", "x"),
        ("filter", '"x"', "gdp"),
    ),
    ("ledger of a verb", lambda d: ["ledger", "chek"], ("chek", "limbeck ledger check")),
    ("noted for nothing", lambda d: ["ledger", "--noted", "0a"], ("--noted", "check")),
    (
        "noted wrongly",
        lambda d: ["ledger", "check", "--noted", "0a"],
        ("noted digest", "removed", "backup"),
    ),
    ("lifetime of nobody", lambda d: ["ledger", "--epsilon", "5"], ("--set",)),
]
