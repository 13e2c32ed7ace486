"""Noisy answers that were given, kept so that a killed run gives them again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import LimbeckError


class Answers:
    """Answers in a folder, each with the public state that it was given for.

    Args:
        folder: For its owner alone.
        part: Of the run: a run within a run has names of its own.
    """

    def __init__(self, folder: Path, part: str = "") -> None:
        self.folder, self._part = folder, part

    def part(self, name: str) -> Answers:
        """Where a run within this one keeps its answers."""
        return Answers(self.folder, f"{self._part}{name}/")

    def load(self, name: str, *, digest: str = "") -> np.ndarray | None:
        """The kept answer to a question, if it was asked before.

        Args:
            name: The question, and which of its steps.
            digest: Of the public state that it is asked with (parameters, chosen groups). An answer
                that was given to another state is no answer to this one.
        """
        path = self.folder / _file_name(self._part + name)
        if not path.exists():
            return None
        try:
            with open(path, "rb") as file:
                answer = np.load(file, allow_pickle=False)
                asked = str(np.load(file, allow_pickle=False))
        except Exception:  # whatever NumPy makes of a damaged file
            raise LimbeckError(
                f"The unfinished run's answer to '{name}' cannot be read: its file is damaged. Pay for the "
                "run again, and leave the old one: pass pay_again=True."
            ) from None
        if asked != digest:
            raise LimbeckError(
                f"The unfinished run asked '{name}' with other public values than this one does, so "
                "its answer does not fit. Pay for the run again, and leave the old one: pass "
                "pay_again=True."
            )
        return answer

    def save(self, name: str, answer: np.ndarray, *, digest: str = "") -> None:
        """Keep an answer with the digest of the public state that it was asked with."""
        path = self.folder / _file_name(self._part + name)
        with own_file(path.with_suffix(".partial")) as file:
            np.save(file, answer, allow_pickle=False)
            np.save(file, np.asarray(digest), allow_pickle=False)
        path.with_suffix(".partial").replace(path)


@contextmanager
def own_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that its owner alone can read, on the disk when it is closed."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LimbeckError(
            f"Cannot keep what a run resumes from in {path.parent}: {error.strerror}. Mend that and start the same "
            "again: nothing is paid twice."
        ) from None


def _file_name(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40]
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:12]}.npy"
