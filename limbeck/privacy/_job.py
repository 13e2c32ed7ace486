"""Runs survive: the protected state from which a killed run resumes by replay.

A job's folder (mode 0700, beside the ledger, never in a release) holds the run's noise secret,
a keyed digest of the rows, and the noisy answers given so far. A resumed run with the same rows
gives the same answers, so nothing is paid twice and no measurement is ever answered with two
noises. With other rows the state is discarded and the charge is paid anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .._check import LimbeckError


class Job:
    """One run's folder, locked while it is open.

    Args:
        root: Folder of all jobs.
        identity: Plain data that says what is being made: data set, schema, method, budget.
    """

    def __init__(self, root: Path, identity: Mapping[str, object]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        self.key = hashlib.sha256(text.encode()).hexdigest()[:24]
        self.folder = root / self.key
        self._lock = self._lock_folder()

    def _lock_folder(self) -> int:
        path = self.folder / "lock"
        while True:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(handle).st_ino == path.stat().st_ino:
                    return handle
            except FileNotFoundError:
                pass  # whoever held it removed the folder meanwhile: try again
            except OSError:
                os.close(handle)
                raise LimbeckError(
                    "The same job is already running in another process. Wait for it to end."
                ) from None
            os.close(handle)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; what it holds stays for a resumed run, an empty one goes."""
        if self._lock >= 0:
            if self.secret() is None:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    @property
    def run(self) -> str | None:
        """The ledger entry that pays for this job, if it was begun before."""
        return self._read("run")

    def begin(self, run: str, secret: bytes, digest: str) -> None:
        """Keep what a resumed run needs; written before the charge and before any noise."""
        self._write("secret", secret)
        self._write("digest", digest.encode())
        self._write("run", run.encode())

    def secret(self) -> bytes | None:
        path = self.folder / "secret"
        return path.read_bytes() if path.exists() else None

    def matches(self, digest: str) -> bool:
        return self._read("digest") == digest

    def load(self, name: str, digest: str = "") -> np.ndarray | None:
        path = self.folder / _file_name(name)
        return np.load(path, allow_pickle=False) if path.exists() else None

    def save(self, name: str, answer: np.ndarray, digest: str = "") -> None:
        path = self.folder / _file_name(name)
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as file:
            np.save(file, answer, allow_pickle=False)
            os.fsync(file.fileno())
        partial.replace(path)

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

    def _write(self, name: str, content: bytes) -> None:
        handle = os.open(self.folder / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fsync(file.fileno())


class JobPart:
    """Answers of one part of a job, under names of their own."""

    def __init__(self, job: Job, name: str) -> None:
        self._job, self._name = job, name

    def load(self, name: str, digest: str = "") -> np.ndarray | None:
        return self._job.load(f"{self._name}/{name}", digest)

    def save(self, name: str, answer: np.ndarray, digest: str = "") -> None:
        self._job.save(f"{self._name}/{name}", answer, digest)


def _file_name(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40]
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:12]}.npy"
