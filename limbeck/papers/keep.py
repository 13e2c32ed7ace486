"""The cache of reproductions: releases and scores, so that a stopped run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import LimbeckError


def default_folder() -> Path:
    """`$LIMBECK_CACHE/reproduce`, or the same in the user's cache folder."""
    named = os.environ.get("LIMBECK_CACHE")
    if named:
        return Path(named) / "reproduce"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "limbeck" / "reproduce"


class Keep:
    """Results under the digest of all they depend on, the code that made them included."""

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
        entry = self.load(fixed)
        folder = None if entry is None else self.folder / "releases" / entry["release"]
        return folder if folder is not None and folder.exists() else None

    def remember(self, fixed: Mapping[str, object], folder: Path) -> None:
        """Note which release has the measurements that these settings ask for."""
        self.save(fixed, {"release": folder.name})

    def load(self, identity: Mapping[str, object]) -> dict[str, Any] | None:
        """What was computed for this identity before, if anything."""
        path = self.folder / "scores" / f"{_digest(identity)}.json"
        try:
            return json.loads(path.read_text())["found"]
        except (OSError, ValueError, KeyError):  # none yet, or half written by a killed run
            return None

    def save(self, identity: Mapping[str, object], result: Mapping[str, Any]) -> None:
        """Keep what was computed: written whole or not at all."""
        path = self.folder / "scores" / f"{_digest(identity)}.json"
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({"identity": identity, "found": result}, indent=2))
        partial.replace(path)


def _digest(identity: Mapping[str, object]) -> str:
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
