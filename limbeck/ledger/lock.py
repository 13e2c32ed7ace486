"""Locks on files, which the operating system lets go of when a process dies; and who may read them.

Linux and macOS: `flock`. Windows: a locked byte. A network drive may offer no locks: then the run is
refused, since two processes could otherwise answer one question with two noises.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

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


def restrict(path: Path, mode: int) -> None:
    """Take away what the mode does not allow; a file that is not ours to change is left."""
    with suppress(OSError):
        now = path.stat().st_mode & 0o777
        if now & ~mode:
            path.chmod(now & mode)
