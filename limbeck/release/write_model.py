"""What is written into a released model: its noisy numbers, and what is told of them. Nothing else is ever written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .card import make_model_card
from .seal import write_sums
from .write import dump, write_text

if TYPE_CHECKING:
    from .model import Model


def write_model(model: Model, folder: Path) -> None:
    """Fill an empty folder with a model."""
    schema, certificate, classifier = model.schema, model.certificate, model.classifier
    np.savez(folder / f"{classifier.kind}.npz", **classifier.arrays())  # type: ignore[arg-type]
    np.savez(folder / "measurements.npz", **model.measurements)  # type: ignore[arg-type]
    write_text(folder / f"{classifier.kind}.json", dump(dict(classifier.facts)))
    write_text(folder / "schema.toml", schema.toml())
    write_text(folder / "certificate.json", dump(certificate))
    write_text(folder / "README.md", make_model_card(certificate, schema))
    write_sums(folder)
