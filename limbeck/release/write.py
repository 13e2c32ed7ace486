"""What is written into a release: the rows that were made, what they came from, and what is told of them.

All of it is made of noisy answers, the schema and the certificate. Nothing else is ever written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import save_images, save_table
from .card import make_card, make_croissant
from .images import Images
from .seal import sha256, write_sums

if TYPE_CHECKING:
    from .release import Release


def write(release: Release, folder: Path) -> None:
    """Fill an empty folder with a release."""
    schema, certificate, source = release.schema, release.certificate, release.source
    if isinstance(release.data, Images):
        codes = {str(v): i for i, v in enumerate(schema.classes)}
        labels = np.asarray([codes[str(v)] for v in release.data.labels.tolist()])
        written = save_images(release.data.images, labels, schema, folder)
    else:
        written = save_table(release.data, schema, folder)
    np.savez(folder / f"{source.kind}.npz", **source.arrays())  # type: ignore[arg-type]
    np.savez(folder / "measurements.npz", **release.measurements)  # type: ignore[arg-type]
    if facts := source.facts():
        write_text(folder / f"{source.kind}.json", dump(facts))
    write_text(folder / "schema.toml", schema.toml())
    write_text(folder / "certificate.json", dump(certificate))
    card = make_card(certificate, schema, release.rows, [*written, f"{source.kind}.npz"])
    write_text(folder / "README.md", card)
    sums = {name: sha256(folder / name) for name in written if not name.endswith("/")}
    write_text(folder / "croissant.json", dump(make_croissant(certificate, schema, sums)))
    write_sums(folder)


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
