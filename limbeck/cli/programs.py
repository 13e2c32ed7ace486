"""Compiled programs are kept between runs of the command, so that the second run does not compile again.

What XLA compiles is code and the shapes of its arrays: rows are its arguments, and are never in it. Shapes may say
how many rows a file has, so the folder is its owner's alone.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import MutableMapping
from pathlib import Path

FOLDER, SETTING = "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"
LEAST = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3"
"""Seconds of compilation from which a program is kept."""
MOST_BYTES = 1 << 30
"""Bytes of all programs, beyond which the oldest are removed when the command starts."""


def keep_programs(environment: MutableMapping[str, str]) -> Path | None:
    """Tell JAX, which must not be imported yet, where to keep programs; where, or None if nowhere.

    Whoever has told JAX something already is not overruled, and a folder that others can write to or read
    is not used: a program from it is run.
    """
    if FOLDER in environment or SETTING in environment:
        return None
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "limbeck" / f"programs-{_processor()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _own(folder):
            return None
        _remove_oldest(folder)
    except OSError:
        return None  # no place to keep anything: programs are compiled, as ever
    environment[FOLDER] = str(folder)
    environment.setdefault(*LEAST)
    return folder


def _own(folder: Path) -> bool:
    """Whether nobody else can read or change a folder."""
    about = folder.lstat()
    if not hasattr(os, "getuid"):
        return True
    return folder.is_dir() and about.st_uid == os.getuid() and not about.st_mode & 0o077


def _processor() -> str:
    """Tells processors apart: a program for one may not run on another that shares the folder."""
    told = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        told += "".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
    except OSError:
        pass
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _remove_oldest(folder: Path) -> None:
    """Keep the newest programs that fit."""
    files = [(path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir()]
    room = MOST_BYTES
    for _, size, path in sorted(files, key=lambda one: one[0], reverse=True):
        room -= size
        if room < 0:
            path.unlink(missing_ok=True)
