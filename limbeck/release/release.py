"""A release: the data, the certificate, and whatever else may leave the house; nothing more."""

from __future__ import annotations

import errno
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..data import bare_rows, save_images, save_table
from ..data import read as read_data
from ..errors import ReleaseError, positive
from ..methods import SOURCES, RowSource
from ..schema import Schema
from .arithmetic import read_certificate
from .card import make_card, make_croissant
from .seal import SUMS, check_sums, sha256, write_sums


class Images(NamedTuple):
    """Released images: pixels (rows, height, width, channels) in the declared range, label values."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Release:
    """What one run gives back; made by `limbeck.distill` or read by `Release.load`."""

    schema: Schema
    certificate: dict[str, Any]
    data: pd.DataFrame | Images
    """The released rows, in the owner's columns, or the released images."""
    source: RowSource
    """What the rows came from: a generator, or the exact numbers of a distilled set."""
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The noisy numbers everything was made from; public now."""

    def __repr__(self) -> str:
        guarantee = self.certificate["guarantee"]
        return (
            f"Release({self.schema.dataset!r}, rows={_length(self.data)}, "
            f"epsilon={guarantee['epsilon']}, delta={guarantee['delta']})"
        )

    def sample(self, rows: int, *, seed: int = 0) -> pd.DataFrame | Images:
        """As many rows as you like: post-processing, at no further cost of privacy."""
        positive(rows=rows)
        return draw(self.schema, self.source, rows, seed=seed)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the release as a folder: all of it or nothing.

        Args:
            folder: Where; must not exist, unless `force`.
            force: Replace what is there.
        """
        folder = Path(folder)
        check_target(folder, force=force)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        except OSError as error:
            raise ReleaseError(_cannot_write(folder, error)) from None
        try:
            self._write(partial)
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
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release; its checksums must hold."""
        folder = Path(folder)
        check_sums(folder)
        try:
            certificate = read_certificate(folder)
            schema = Schema.load(folder / "schema.toml")
            source = _load_source(folder, schema)
            with np.load(folder / "measurements.npz", allow_pickle=False) as file:
                measurements = dict(file)
            data = _load_data(folder, schema)
        except (OSError, ValueError, KeyError) as error:
            raise ReleaseError(f"{folder} is not a complete release: {error}.") from None
        return cls(
            schema=schema,
            certificate=certificate,
            data=data,
            source=source,
            measurements=measurements,
        )

    def _write(self, folder: Path) -> None:
        if isinstance(self.data, Images):
            codes = {str(v): i for i, v in enumerate(self.schema.classes)}
            labels = np.asarray([codes[str(v)] for v in self.data.labels.tolist()])
            written = save_images(self.data.images, labels, self.schema, folder)
        else:
            written = save_table(self.data, self.schema, folder)
        kind = self.source.kind
        _save_arrays(folder / f"{kind}.npz", self.source.arrays())
        _save_arrays(folder / "measurements.npz", self.measurements)
        if facts := self.source.facts():
            _write_text(folder / f"{kind}.json", _dump(facts))
        _write_text(folder / "schema.toml", self.schema.toml())
        _write_text(folder / "certificate.json", _dump(self.certificate))
        _write_text(
            folder / "README.md",
            make_card(self.certificate, self.schema, _length(self.data), [*written, f"{kind}.npz"]),
        )
        sums = {name: sha256(folder / name) for name in written if not name.endswith("/")}
        _write_text(
            folder / "croissant.json", _dump(make_croissant(self.certificate, self.schema, sums))
        )
        write_sums(folder)


def draw(schema: Schema, source: RowSource, rows: int, *, seed: int) -> pd.DataFrame | Images:
    """Rows from a source, decoded to the owner's values."""
    encoded, labels = source.draw(schema, rows, seed=seed)
    if schema.image:
        return Images(schema.image.decode(encoded), np.asarray(schema.classes)[labels])
    return schema.decode(encoded, labels)


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


def _load_data(folder: Path, schema: Schema) -> pd.DataFrame | Images:
    if not schema.image:
        dataset = read_data(folder / "data.parquet", schema)
        rows = bare_rows(dataset)  # released rows: nothing private about them
        return schema.decode(np.asarray(rows.cells), rows.labels)
    with np.load(folder / "data.npz", allow_pickle=False) as file:
        images = file["images"]
        labels = file["labels"] if "labels" in file else np.asarray([""] * len(images))
    return Images(images, labels)


def _load_source(folder: Path, schema: Schema) -> RowSource:
    for kind, source in SOURCES.items():
        if (folder / f"{kind}.npz").exists():
            path = folder / f"{kind}.json"
            facts = json.loads(path.read_text()) if path.exists() else {}
            with np.load(folder / f"{kind}.npz", allow_pickle=False) as file:
                return source.load(schema, facts, dict(file))
    raise ValueError(f"it has none of {', '.join(f'{kind}.npz' for kind in SOURCES)}")


def _save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _length(data: pd.DataFrame | Images) -> int:
    return len(data.images if isinstance(data, Images) else data)
