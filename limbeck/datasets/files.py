"""The bytes of a data set's files: embedded, in the user's folder, or downloaded; always checked.

A checksum guards every road, also that of the embedded files: numbers measured on a data set can
only be compared when it is the same data set, byte for byte.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..errors import DataError
from .registry import EMBEDDED, About, Distribution, Entry

_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress}


def fetch(
    entry: Entry,
    *,
    folder: Path | None = None,
    mirror: str | None = None,
    cache: Path | None = None,
) -> tuple[Distribution, dict[str, bytes]]:
    """The first form of the data set at hand, with the unpacked content of its files.

    `folder` is the user's own folder of data; `mirror` replaces the address of downloads
    (files are then looked for under `mirror/name/`); `cache` is where downloads are kept.
    """
    for source, place in _on_disk(entry, folder):
        return source, {name: _from_disk(place / name, source) for name in source.files}
    if folder is not None and not folder.is_dir():
        raise DataError(f"LIMBECK_DATA names {folder}, which is not a folder.")
    for source in entry.sources:
        if source.base:
            base = f"{mirror.rstrip('/')}/{entry.about.name}" if mirror else source.base.rstrip("/")
            kept = _cache(cache) / entry.about.name
            return source, {
                name: _from_web(f"{base}/{name}", kept / name, source, entry.about)
                for name in source.files
            }
    raise DataError(absent(entry, folder))


def absent(entry: Entry, folder: Path | None) -> str:
    """Why a data set can be neither read nor downloaded, and what to do; "" if it can."""
    if any(source.base for source in entry.sources) or any(True for _ in _on_disk(entry, folder)):
        return ""
    return f"Data set '{entry.about.name}' is not on this machine. {_advice(entry)}"


def at_hand(entry: Entry, folder: Path | None, cache: Path | None) -> bool:
    """Whether a data set can be read without a download."""
    kept = _cache(cache) / entry.about.name
    return any(True for _ in _on_disk(entry, folder)) or any(
        source.base and all((kept / name).is_file() for name in source.files)
        for source in entry.sources
    )


def _on_disk(entry: Entry, folder: Path | None) -> Iterator[tuple[Distribution, Path]]:
    """The forms of a data set whose files are all there, and where."""
    for source in entry.sources:
        place = EMBEDDED if source.embedded else folder
        if place is not None and all((place / name).is_file() for name in source.files):
            yield source, place


def _advice(entry: Entry) -> str:
    files = " or ".join(", ".join(source.files) for source in entry.sources)
    return (
        f"Put {files} into a folder and name that folder in the environment variable "
        f"LIMBECK_DATA. {entry.about.obtain} Home: {entry.about.home}"
    )


def _cache(cache: Path | None) -> Path:
    import pooch

    return cache or Path(pooch.os_cache("limbeck"))


def _from_disk(path: Path, source: Distribution) -> bytes:
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None
    return _checked(packed, str(path), path.name, source)


def _from_web(url: str, path: Path, source: Distribution, about: About) -> bytes:
    import pooch

    # pooch reports each download on standard error; what is shown is the caller's business.
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        # The checksum is ours to check: pooch would not look into a compressed file.
        pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent)
        packed = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"Cannot download {url} ({error}). Get {path.name} from {about.home} and put it into "
            "the folder named by the environment variable LIMBECK_DATA."
        ) from None
    finally:
        logger.setLevel(level)
    try:
        return _checked(packed, url, path.name, source)
    except DataError:
        path.unlink(missing_ok=True)  # else the bad copy would be found again for ever
        raise


def _checked(packed: bytes, where: str, name: str, source: Distribution) -> bytes:
    """The content of a file whose checksums, packed and unpacked, are those of the registry."""
    _compare(packed, where, source.files[name])
    try:
        content = _UNPACK.get(Path(name).suffix, bytes)(packed)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"Cannot unpack {where}: {error}.") from None
    _compare(content, f"the content of {where}", source.unpacked.get(name, ""))
    return content


def _compare(data: bytes, where: str, wanted: str) -> None:
    if not wanted:
        return
    method, _, expected = wanted.partition(":")
    got = hashlib.new(method, data, usedforsecurity=False).hexdigest()
    if got != expected:
        raise DataError(f"Wrong checksum of {where}: expected {method} {expected}, got {got}.")
