"""Load a named public data set, or write it out as the files a data owner would start from."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import ReleaseError
from ..schema import Schema
from . import registry
from .files import absent, at_hand, fetch
from .pictures import Pictures, read_pictures
from .registry import About, Entry
from .tables import read_tables


@dataclass(frozen=True, eq=False)
class PublicData:
    """A public data set in memory."""

    name: str
    schema: Schema
    train: pd.DataFrame | Pictures
    test: pd.DataFrame | Pictures


def load(name: str) -> PublicData:
    """A data set by name: embedded, else from the folder LIMBECK_DATA, else downloaded.

    Downloads are kept in the user's cache folder (or LIMBECK_CACHE); LIMBECK_MIRROR replaces
    the address they come from.

    >>> data = load("adult")
    >>> len(data.train), len(data.test)
    (32561, 16281)
    """
    return read(
        registry.entry(name),
        registry.schema(name),
        folder=_folder(),
        mirror=os.environ.get("LIMBECK_MIRROR"),
        cache=_kept(),
    )


def missing(name: str) -> str:
    """Why a data set can be neither read nor downloaded here, and what to do; "" if it can.

    >>> missing("adult")
    ''
    """
    return absent(registry.entry(name), _folder())


def here(name: str) -> bool:
    """Whether a data set can be read without a download.

    >>> here("adult")
    True
    """
    return at_hand(registry.entry(name), _folder(), _kept())


def _folder() -> Path | None:
    folder = os.environ.get("LIMBECK_DATA")
    return Path(folder) if folder else None


def _kept() -> Path | None:
    """The folder of earlier downloads, if one is named."""
    cache = os.environ.get("LIMBECK_CACHE")
    return Path(cache) if cache else None


def read(
    entry: Entry,
    schema: Schema,
    *,
    folder: Path | None = None,
    mirror: str | None = None,
    cache: Path | None = None,
) -> PublicData:
    """The data set that a registry entry describes."""
    source, files = fetch(entry, folder=folder, mirror=mirror, cache=cache)
    train: pd.DataFrame | Pictures
    test: pd.DataFrame | Pictures
    if schema.image:
        train, test = read_pictures(source, files, schema)
    else:
        train, test = read_tables(entry, source, files, schema)
    return PublicData(entry.about.name, schema, train, test)


def write(name: str, out: str | Path, force: bool = False) -> list[Path]:
    """Write a data set as train, test, schema.toml and LICENCE.txt; returns the paths.

    All files are complete before the first appears in `out`. A folder that holds something is
    refused; with `force`, files of these names in it are replaced and all others left alone.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{out} is not a folder. Choose another place.")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise ReleaseError(f"{out} is not empty. Choose another folder, or pass force=True.")
    data = load(name)
    draft = out.absolute().parent / f".{out.absolute().name}-{uuid.uuid4().hex[:8]}"
    try:
        draft.mkdir(parents=True)
        _save(data.train, draft / "train")
        _save(data.test, draft / "test")
        shutil.copyfile(registry.schema_file(name), draft / "schema.toml")
        (draft / "LICENCE.txt").write_text(_licence(registry.about(name)), encoding="utf-8")
        files = sorted(path.name for path in draft.iterdir())
        if out.exists():
            for file in files:
                os.replace(draft / file, out / file)
        else:
            draft.rename(out)
    except OSError as error:
        raise ReleaseError(f"Cannot write {out}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [out / file for file in files]


def _save(part: pd.DataFrame | Pictures, path: Path) -> None:
    if isinstance(part, Pictures):
        np.savez_compressed(path.with_suffix(".npz"), images=part.images, labels=part.labels)
    else:
        part.to_csv(path.with_suffix(".csv"), index=False, lineterminator="\n")


def _licence(about: About) -> str:
    dropped = f"Columns left out: {', '.join(about.dropped)}." if about.dropped else ""
    facts = (
        about.title,
        f"Source: {about.home}",
        f"Licence: {about.licence}",
        f"Please cite: {about.citation}",
        about.changes and f"Changes: {about.changes}",
        dropped,
        "train, test and schema.toml were written by limbeck.",
    )
    return "".join(f"{fact}\n" for fact in facts if fact)
