"""Locks on files, which the operating system lets go of when a process dies; and who may read them.

Linux and macOS: `flock`. Windows: a locked byte. A network drive may offer no locks: then the run is
refused, since two processes could otherwise answer one question with two noises.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from ..errors import LimbeckError

if sys.platform == "win32":
    import msvcrt

    def _seize(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


PATIENCE = 0.5
"""Seconds to wait for a folder's lock: a look at what is running holds it for a moment."""
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What systems say when another process holds the lock."""


def try_lock(path: Path) -> int | None:
    """A handle that holds the file's lock until it is closed; None if another process holds it.

    Raises:
        FileNotFoundError: The file's folder is gone.
        LimbeckError: The file system knows no locks.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _seize(handle)
        # Whoever held it may have removed the file meanwhile: then this lock guards nothing.
        if os.fstat(handle).st_ino != path.stat().st_ino:
            raise FileNotFoundError(path)
    except OSError as error:
        os.close(handle)
        if error.errno in _HELD:
            return None
        if isinstance(error, FileNotFoundError):
            raise
        raise LimbeckError(
            f"Cannot lock files in {path.parent}: {error.strerror}. Put the ledger on a local disk; "
            "name the place in LIMBECK_LEDGER."
        ) from None
    return handle


class LockedFolder:
    """A folder for its owner alone, in which one process at a time works.

    Args:
        folder: Made where there is none.
        keeps: A folder without a file of this name is removed when it is let go of.
    """

    def __init__(self, folder: Path, keeps: str) -> None:
        self.folder, self._keeps = folder, folder / keeps
        self._lock = self._seized()

    def _seized(self) -> int:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; an empty one goes."""
        if self._lock >= 0:
            empty = not self._keeps.exists()
            if empty:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1
            if empty and os.name == "nt":
                shutil.rmtree(self.folder, ignore_errors=True)  # open files stay on Windows


def restrict(path: Path, mode: int) -> None:
    """Take away what the mode does not allow; a file that is not ours to change is left."""
    with suppress(OSError):
        now = path.stat().st_mode & 0o777
        if now & ~mode:
            path.chmod(now & mode)
