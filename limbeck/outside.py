"""Files that stay out of releases: what is internal must not travel with what may be published."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import LimbeckError


def place_outside(path: str | Path, what: str) -> Path:
    """Where a file will really be written, links and `..` followed; refused within a release.

    Args:
        path: Where it is wanted.
        what: What it is, for the message.
    """
    place = Path(os.path.realpath(path))
    for folder in place.parents:
        if (folder / "certificate.json").exists():
            raise LimbeckError(
                f"{folder} is a release and stays as it is. Write {what} elsewhere than {path}."
            )
    return place


def write_outside(path: str | Path, text: str, what: str) -> None:
    """Write a file beside releases, whole or not at all.

    The file is made anew and takes the place of one that is there: a hard link would lead into a
    release, too.
    """
    place = place_outside(path, what)
    if place.exists() and not place.is_file():  # a terminal, a pipe
        place.write_text(text, encoding="utf-8")
        return
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{place.name[:40]}-", dir=place.parent)
    except OSError as error:
        raise LimbeckError(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, place)
    except BaseException:
        os.unlink(partial)
        raise
