"""Memory that the process is done with is kept for its next step, when it is our own command.

By default glibc gives large freed blocks back to the system, and every step of a training loop
gets the same blocks again, page by page, zeroed: a fifth to a third of its time. The C library
only listens before other threads have memory of their own, so this module is the first that the
package imports. In somebody else's process nothing is changed.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

COMMAND = "limbeck"
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8


def keep_freed_memory() -> None:
    """Ask the C library for it; those that do not know the question are left alone."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    wanted = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 2**27, _ARENA_MAX: 1}
    for name, value in wanted.items():
        mallopt(name, value)


if sys.platform.startswith("linux") and Path(*sys.argv[:1]).stem == COMMAND:
    keep_freed_memory()
