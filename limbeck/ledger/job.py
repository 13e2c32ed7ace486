"""Runs survive: the protected state from which a killed run resumes by replay.

Its folder (mode 0700, beside the ledger, never in a release) holds the run's noise secret, its plan
and software, a keyed digest of the rows, and the noisy answers so far. With the same plan and rows it
gives the same answers: nothing is paid twice, no measurement is answered with two noises.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .answers import Answers, own_file
from .lock import LockedFolder

SECRET_BYTES = 32
"""Of a run's secret."""


class Job(LockedFolder, Answers):
    """One run's folder, locked while it is open; `identity` is plain data that says what is being made:
    data set, schema, method, budget."""

    def __init__(self, root: Path, identity: Mapping[str, object]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        LockedFolder.__init__(self, root / hashlib.sha256(text.encode()).hexdigest()[:24], "secret")
        Answers.__init__(self, self.folder)

    @property
    def run(self) -> str | None:
        """The ledger entry that pays for this job, if it was begun before and its file is whole."""
        run = self._read("run")
        return run if run and re.fullmatch(r"[0-9a-zA-Z-]{1,64}", run) else None

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that the job was begun with, and the software that made it; nothing of a damaged file."""
        try:
            plan = json.loads(self._read("plan") or "{}")
        except ValueError:
            return {}
        whole = isinstance(plan, dict) and {"charges", "measurements", "software"} <= plan.keys()
        return plan if whole else {}

    def begin(self, run: str, secret: bytes, digest: str, plan: Mapping[str, Any]) -> None:
        """Keep what a resumed run needs; written before the charge and before any noise."""
        words = {"digest": digest, "plan": json.dumps(plan), "run": run}
        files = {"secret": secret} | {name: text.encode() for name, text in words.items()}
        for name, content in files.items():
            with own_file(self.folder / name) as file:
                file.write(content)

    def secret(self) -> bytes | None:
        """What the run's noise is drawn from; nothing if it is not all there."""
        path = self.folder / "secret"
        secret = path.read_bytes() if path.exists() else b""
        return secret if len(secret) == SECRET_BYTES else None

    def matches(self, digest: str) -> bool:
        return self._read("digest") == digest

    def clear(self) -> None:
        """Erase secret and answers, keeping the folder and its lock."""
        for path in self.folder.iterdir():
            if path.name == "secret":
                with open(path, "r+b") as file:  # in place, not truncated: the old blocks
                    file.write(bytes(path.stat().st_size))
                    file.flush()
                    os.fsync(file.fileno())
            if path.name != "lock":
                path.unlink()

    def erase(self) -> None:
        """The result is stored: nothing of the job remains."""
        self.clear()
        self.close()

    def _read(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
