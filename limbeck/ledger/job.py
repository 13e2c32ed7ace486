"""Runs survive: the protected state from which a killed run resumes by replay.

A job's folder (mode 0700, beside the ledger, never in a release) holds the run's noise secret,
its plan and the software that made it, a keyed digest of the rows, and the noisy answers given so
far. A resumed run with the same plan and rows gives the same answers, so nothing is paid twice and
no measurement is ever answered with two noises.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import LimbeckError
from .lock import restrict, try_lock
from .part import JobPart

PATIENCE = 0.5
"""Seconds to wait for a job's lock: a look at what is running holds it for a moment."""


class Job:
    """One run's folder, locked while it is open.

    Args:
        root: Folder of all jobs.
        identity: Plain data that says what is being made: data set, schema, method, budget.
    """

    def __init__(self, root: Path, identity: Mapping[str, object]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        self.folder = root / hashlib.sha256(text.encode()).hexdigest()[:24]
        self._lock = self._lock_folder()

    def _lock_folder(self) -> int:
        end = time.monotonic() + PATIENCE
        while True:
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                restrict(folder, 0o700)
            try:
                handle = try_lock(self.folder / "lock")
            except FileNotFoundError:
                continue  # whoever held it removed the folder meanwhile: try again
            if handle is not None:
                return handle
            if time.monotonic() > end:
                raise LimbeckError(
                    "The same job is already running in another process. Wait for it to end."
                )
            time.sleep(0.02)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; what it holds stays for a resumed run, an empty one goes."""
        if self._lock >= 0:
            empty = self.secret() is None
            if empty:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1
            if empty and os.name == "nt":
                shutil.rmtree(self.folder, ignore_errors=True)  # open files stay on Windows

    @property
    def run(self) -> str | None:
        """The ledger entry that pays for this job, if it was begun before."""
        return self._read("run")

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that the job was begun with, and the software that made it."""
        return json.loads(self._read("plan") or "{}")

    def begin(self, run: str, secret: bytes, digest: str, plan: Mapping[str, Any]) -> None:
        """Keep what a resumed run needs; written before the charge and before any noise."""
        words = {"digest": digest, "plan": json.dumps(plan), "run": run}
        for name, content in {
            "secret": secret,
            **{k: v.encode() for k, v in words.items()},
        }.items():
            with _own_file(self.folder / name) as file:
                file.write(content)

    def secret(self) -> bytes | None:
        path = self.folder / "secret"
        return path.read_bytes() if path.exists() else None

    def matches(self, digest: str) -> bool:
        return self._read("digest") == digest

    def load(self, name: str, *, digest: str = "") -> np.ndarray | None:
        """The kept answer to a question, if it was asked before.

        Args:
            name: The question, and which of its steps.
            digest: Of the public state that it is asked with (parameters, chosen groups). An answer
                that was given to another state is no answer to this one.
        """
        path = self.folder / _file_name(name)
        if not path.exists():
            return None
        with open(path, "rb") as file:
            answer = np.load(file, allow_pickle=False)
            asked = str(np.load(file, allow_pickle=False))
        if asked != digest:
            raise LimbeckError(
                f"The unfinished run asked '{name}' with other public values than this one does, so "
                "its answer does not fit. Pay for the run again, and leave the old one: --pay-again "
                "(pay_again=True)."
            )
        return answer

    def save(self, name: str, answer: np.ndarray, *, digest: str = "") -> None:
        """Keep an answer with the digest of the public state that it was asked with."""
        path = self.folder / _file_name(name)
        with _own_file(path.with_suffix(".partial")) as file:
            np.save(file, answer, allow_pickle=False)
            np.save(file, np.asarray(digest), allow_pickle=False)
        path.with_suffix(".partial").replace(path)

    def part(self, name: str) -> JobPart:
        """Where a run within this one keeps its answers."""
        return JobPart(self, name)

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
        return path.read_text() if path.exists() else None


@contextmanager
def _own_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that its owner alone can read, on the disk when it is closed."""
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _file_name(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40]
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:12]}.npy"
