"""The seal of a folder: every file is listed with its checksum, and nothing else lies there.

Names come from the folder itself and never from a list in it, and links are refused, so whoever
reads a sealed folder reads nothing outside of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ..errors import ReleaseError

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """List every file of the folder with its checksum."""
    lines = [f"{sha256(folder / name)}  {name}\n" for name in files(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def check_sums(folder: Path) -> None:
    """Every file must be listed in SHA256SUMS and have the listed sum; links are refused."""
    present = set(files(folder)) if folder.is_dir() else set()
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        raise ReleaseError(f"{folder} is not a release: it has no readable {SUMS}.") from None
    for name in sorted(set(listed) - present):
        raise ReleaseError(f"{folder} lacks {name}, which {SUMS} lists.")
    for name in sorted(present - set(listed)):
        raise ReleaseError(f"{folder} holds {name}, which {SUMS} does not list.")
    for name, digest in listed.items():
        if sha256(folder / name) != digest:
            raise ReleaseError(f"{folder / name} was changed after the release was written.")


def files(folder: Path) -> list[str]:
    """Every file of the folder but the list of sums, by its relative name."""
    names = (
        p.relative_to(folder).as_posix()
        for p in _inside(folder)
        if p.parent != folder or p.name != SUMS
    )
    return sorted(names)


def _inside(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_symlink():
            raise ReleaseError(
                f"{path} is a link. A release holds its own files: put the file itself there."
            )
        if path.is_dir():
            yield from _inside(path)
        elif path.is_file():
            yield path
        else:
            raise ReleaseError(
                f"{path} is neither a file nor a folder; a release holds no such thing."
            )


def sha256(path: Path) -> str:
    """The checksum of one file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
