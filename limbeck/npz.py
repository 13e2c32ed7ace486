"""Files of arrays from somebody else's hands: no pickles, no bombs, one kind of error for whatever is wrong."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

UNPACKED = 1 << 28
"""Bytes (256 MiB) that a file may always unpack to."""
RATIO = 200
"""How many times its own size a file may unpack to beyond that."""


class NotArrays(ValueError):
    """Why a file is not read; says nothing of what is in it."""


def unpacked_at_most(packed: int) -> int:
    """Bytes that a packed file of so many may unpack to: more is taken for a bomb."""
    return max(UNPACKED, RATIO * packed)


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file, or those of some names that it holds.

    Raises:
        NotArrays: It is no such file, is damaged, holds objects, or unpacks to far more than its size.
        OSError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            _check_size(path)
            opened = np.load(file, allow_pickle=False)
            if isinstance(opened, np.ndarray):
                raise NotArrays("it holds a single, nameless array")
            with opened:
                wanted = opened.files if names is None else names
                return {name: opened[name] for name in wanted if name in opened}
    except (NotArrays, OSError):
        raise
    except (
        Exception
    ) as error:  # NumPy's readers let through whatever zip files and headers made them raise
        raise NotArrays(f"it is no whole file of arrays ({type(error).__name__})") from None


def unpacked(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is gzipped.

    Raises:
        NotArrays: It unpacks to far more than its size.
        OSError, EOFError, zlib.error: It cannot be read.
    """
    raw = path.read_bytes()
    if raw[:2] != b"\x1f\x8b":
        return raw
    most = unpacked_at_most(len(raw))
    with gzip.open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise NotArrays("it would unpack to far more than its own size")
    return content


def _check_size(path: Path) -> None:
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return
    with zipfile.ZipFile(path) as archive:
        if sum(one.file_size for one in archive.infolist()) > unpacked_at_most(path.stat().st_size):
            raise NotArrays("it would unpack to far more than its own size")
