"""How a folder comes to its place: all of it or nothing."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..errors import ReleaseError
from .seal import SUMS


def fill(folder: Path, write: Callable[[Path], None], *, force: bool) -> None:
    """Make a folder and let it be written to; it comes to its place when it is whole.

    Args:
        folder: Where; must not exist, unless `force`.
        write: Fills an empty folder.
        force: Replace the release that is there.
    """
    check_target(folder, force=force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ReleaseError(_cannot_write(folder, error)) from None
    lock = _held(partial)
    _remove_remains(folder, partial)
    try:
        write(partial)
        partial.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
            folder.replace(old / "old")
            partial.replace(folder)
            shutil.rmtree(old)
        else:
            partial.replace(folder)
    except OSError as error:
        raise ReleaseError(_cannot_write(folder, error)) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def check_target(folder: Path, *, force: bool) -> None:
    """Refuse a folder that is there already, or whose place cannot be written to."""
    if folder.exists() and not force:
        raise ReleaseError(f"{folder} exists already. Choose another folder, or pass force=True.")
    if folder.exists() and force and not _replaceable(folder):
        raise ReleaseError(
            f"{folder} is not a release, so it is not replaced. Choose another folder."
        )
    place = next(p for p in folder.absolute().parents if p.exists())
    try:
        # Only trying tells: permissions, read-only disks and network folders all say it differently.
        Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=place)).rmdir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ReleaseError(f"The name {folder.name} is too long. Choose another.") from None
        raise ReleaseError(
            f"Cannot write to {place}: it is read-only or not a folder. Choose another place."
        ) from None


def _held(place: Path) -> int | None:
    """A handle that holds the lock of a folder while it is worked on; None if it is held already, or
    where folders have no locks."""
    try:
        import fcntl

        handle = os.open(place, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove_remains(folder: Path, own: Path) -> None:
    """Remove what processes that were killed left of the same release: nobody holds its lock any more."""
    beside = re.compile(rf"\.{re.escape(folder.name)}-(old-)?[a-z0-9_]{{8}}")
    for place in folder.parent.iterdir():
        if place != own and beside.fullmatch(place.name) and place.is_dir():
            handle = _held(place)
            if handle is not None:
                shutil.rmtree(place, ignore_errors=True)
                os.close(handle)


def _replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    release = (folder / SUMS).exists() and (folder / "certificate.json").exists()
    return release or not any(folder.iterdir())


def _cannot_write(folder: Path, error: OSError) -> str:
    return (
        f"Cannot write the release {folder}: {error.strerror or error}. Nothing of it was left "
        "there. Once that is mended, the same again costs nothing more."
    )
