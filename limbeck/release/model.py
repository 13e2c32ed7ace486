"""`Model`: a released classifier, with its certificate; it predicts rows and knows none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data import Dataset, bare_rows, read_inputs
from ..errors import LimbeckError, ReleaseError
from ..methods import TrainedModel
from ..npz import read_arrays
from ..schema import Schema, canonical
from .arithmetic import read_certificate
from .folder import fill
from .release import RELEASE_DAMAGE, Release, one_line
from .seal import check_sums
from .write_model import write_model

MODEL_LIMITS = (
    "The certificate proves what was claimed and that it adds up, not that the software ran unmodified.",
    "Differential privacy bounds what the model reveals about one unit, not what it reveals about "
    "groups or about the population.",
    "The guarantee is for the rows that the model learned from, not for those that it predicts.",
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A classifier that `limbeck.classify` gives, or that is read by `Model.load`."""

    schema: Schema
    certificate: dict[str, Any]
    classifier: TrainedModel
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The noisy numbers that were used beside the gradients; public now."""

    def __repr__(self) -> str:
        guarantee = self.certificate["guarantee"]
        return (
            f"Model({self.schema.dataset!r}, predicts={self.label!r}, "
            f"epsilon={guarantee['epsilon']}, delta={guarantee['delta']})"
        )

    @property
    def label(self) -> str:
        """Name of what is predicted."""
        assert self.schema.label is not None
        return self.schema.label.name

    def predict(self, rows: object) -> pd.DataFrame:
        """The likeliest value of the label for each row, and the chance of each value.

        It costs no privacy of the rows that the model learned from. The rows predicted are yours to protect.

        Args:
            rows: A frame, a path or images, as `limbeck.read` takes them: with the columns of the schema,
                of which the label may be left out and is not looked at. Images may come without labels:
                (images, None).
        """
        chances = self.chances(rows)
        label = self.schema.label
        assert label is not None
        predicted = label.decode(chances.argmax(axis=1).astype(np.float32))
        table = {f"chance of {canonical(v)}": chances[:, i] for i, v in enumerate(label.values)}
        return pd.DataFrame({self.label: predicted, **table})

    def chances(self, rows: object) -> np.ndarray:
        """Chances of the label's values (rows, values), in the schema's order."""
        data = rows if isinstance(rows, Dataset) else read_inputs(rows, self.schema)
        cells = np.asarray(bare_rows(data).cells)
        return self.classifier.chances(self.schema.expand(cells))

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the model as a folder: all of it or nothing.

        Args:
            folder: Where; must not exist, unless `force`.
            force: Replace what is there.
        """
        folder = Path(folder)
        fill(folder, lambda empty: write_model(self, empty), force=force)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """Read a model; its checksums must hold."""
        folder = Path(folder)
        check_sums(folder)
        if not (folder / "model.npz").exists():
            raise ReleaseError(f"{folder} holds no model. `limbeck classify` makes one.")
        try:
            certificate = read_certificate(folder)
            schema = Schema.load(folder / "schema.toml")
            facts = json.loads((folder / "model.json").read_text(encoding="utf-8"))
            classifier = TrainedModel.load(schema, facts, read_arrays(folder / "model.npz"))
            measurements = read_arrays(folder / "measurements.npz")
        except (LimbeckError, *RELEASE_DAMAGE) as error:
            raise ReleaseError(f"{folder} is not a complete model: {one_line(error)}.") from None
        return cls(
            schema=schema,
            certificate=certificate,
            classifier=classifier,
            measurements=measurements,
        )


def load(folder: str | Path) -> Release | Model:
    """Whichever a folder holds."""
    return (Model if (Path(folder) / "model.npz").exists() else Release).load(folder)
