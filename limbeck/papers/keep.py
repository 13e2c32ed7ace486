"""The cache of reproductions: releases and scores, so that a stopped run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import LimbeckError
from .code import commit


def default_folder() -> Path:
    """`$LIMBECK_CACHE/reproduce`, or the same in the user's cache folder."""
    named = os.environ.get("LIMBECK_CACHE")
    if named:
        return Path(named) / "reproduce"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "limbeck" / "reproduce"


class Keep:
    """Results under the digest of what was asked for; each says which code made it.

    A result of other code than today's is not taken for one of today's. It stays, to be shown for what
    it is, until it is made again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        try:
            for name in ("releases", "scores", "ledgers"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LimbeckError(
                f"Cannot write to the cache {self.folder}: {error.strerror}. Name another folder as cache."
            ) from None

    def release(self, identity: Mapping[str, object]) -> Path:
        """The folder of a release; it exists once the release was made."""
        return self.folder / "releases" / _digest(identity)

    def ledger(self, identity: Mapping[str, object]) -> Path:
        """A ledger of its own for each release: practice runs never touch the owner's."""
        return self.folder / "ledgers" / _digest(identity) / "ledger.sqlite"

    def measured(self, fixed: Mapping[str, object]) -> Path | None:
        """A release with the same measurements, whatever was made of them."""
        entry = self.load(fixed, ())
        folder = None if entry is None else self.folder / "releases" / entry["release"]
        return folder if folder is not None and folder.exists() else None

    def remember(self, fixed: Mapping[str, object], folder: Path) -> None:
        """Note which release has the measurements that these settings ask for."""
        self.save(fixed, {"release": folder.name}, ())

    def load(self, identity: Mapping[str, object], code: Sequence[str]) -> dict[str, Any] | None:
        """What this code computed for this identity before, if anything."""
        record = self.record(identity)
        return record["found"] if record and record["code"] == list(code) else None

    def record(self, identity: Mapping[str, object]) -> dict[str, Any] | None:
        """What any code computed for it, last: `found`, the digests of its `code`, `commit` and `date`."""
        try:
            record = json.loads(self._path(identity).read_text())
        except (OSError, ValueError):  # none yet, or half written by a killed run
            return None
        return record if {"found", "code", "commit", "date"} <= set(record) else None

    def save(
        self, identity: Mapping[str, object], result: Mapping[str, Any], code: Sequence[str]
    ) -> None:
        """Keep what was computed."""
        made = {"code": list(code), "commit": commit(), "date": time.strftime("%Y-%m-%d")}
        self.put(identity, {"identity": identity, **made, "found": result})

    def put(self, identity: Mapping[str, object], record: Mapping[str, Any]) -> None:
        """Keep a record as it is: written whole or not at all."""
        path = self._path(identity)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(record, indent=2))
        partial.replace(path)

    def _path(self, identity: Mapping[str, object]) -> Path:
        return self.folder / "scores" / f"{_digest(identity)}.json"


def _digest(identity: Mapping[str, object]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
