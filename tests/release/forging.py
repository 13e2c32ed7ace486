"""What a forger changes in a release, and makes right again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]


def reseal(folder: Path) -> None:
    """Make the checksums right again, as a clever forger would."""
    names = sorted(
        p.relative_to(folder).as_posix()
        for p in folder.rglob("*")
        if p.is_file() and p.name != "SHA256SUMS"
    )
    sums = (f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names)
    (folder / "SHA256SUMS").write_text("".join(sums))


def tamper(folder: Path, change: Change) -> None:
    path = folder / "certificate.json"
    certificate = json.loads(path.read_text())
    change(certificate)
    path.write_text(json.dumps(certificate))
    reseal(folder)


def put(*path: str | int, value: object) -> Change:
    """A forger's change of one field."""

    def change(certificate: dict[str, Any]) -> None:
        *way, last = path
        place: Any = certificate
        for step in way:
            place = place[step]
        place[last] = value

    return change


def both(*changes: Change) -> Change:
    def change(certificate: dict[str, Any]) -> None:
        for one in changes:
            one(certificate)

    return change
