"""What is written into a release: the rows that were made, what they came from, and what is told of them.

All of it is made of noisy answers, the schema and the certificate. Nothing else is ever written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import save_images, save_table
from .card import make_card, make_croissant, make_model_card
from .images import Images
from .seal import sha256, write_sums

if TYPE_CHECKING:
    from .model import Model
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
    _write_source(release, source, source.facts(), folder)
    card = make_card(certificate, schema, release.rows, [*written, f"{source.kind}.npz"])
    _write_text(folder / "README.md", card)
    sums = {name: sha256(folder / name) for name in written if not name.endswith("/")}
    _write_text(folder / "croissant.json", _dump(make_croissant(certificate, schema, sums)))
    write_sums(folder)


def write_model(model: Model, folder: Path) -> None:
    """Fill an empty folder with a model."""
    _write_source(model, model.classifier, model.classifier.facts, folder)
    _write_text(folder / "README.md", make_model_card(model.certificate, model.schema))
    write_sums(folder)


def _write_source(
    release: Release | Model, source: Any, facts: Mapping[str, Any], folder: Path
) -> None:
    """What was made of the measurements, they themselves, the schema and the certificate."""
    np.savez(folder / f"{source.kind}.npz", **source.arrays())
    np.savez(folder / "measurements.npz", **release.measurements)  # type: ignore[arg-type]
    if facts:
        _write_text(folder / f"{source.kind}.json", _dump(facts))
    _write_text(folder / "schema.toml", release.schema.toml())
    _write_text(folder / "certificate.json", _dump(release.certificate))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
