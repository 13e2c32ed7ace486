"""A release: the data, the certificate, and whatever else may leave the house; nothing more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data import Dataset, bare_rows, bare_values
from ..data import read as read_data
from ..errors import LimbeckError, ReleaseError, positive
from ..methods import SOURCES, RowSource
from ..npz import read_arrays
from ..schema import Schema, Where
from .arithmetic import read_certificate
from .drawing import draw
from .folder import fill
from .images import Images
from .sampling import read_wanted
from .seal import check_sums
from .write import write

RELEASE_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""What reading a release that somebody changed can raise."""


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
            f"Release({self.schema.dataset!r}, rows={self.rows}, "
            f"epsilon={guarantee['epsilon']}, delta={guarantee['delta']})"
        )

    def sample(
        self,
        rows: int | None = None,
        *,
        where: Where | None = None,
        like: object = None,
        classes: str | Mapping[Any, float] | None = None,
        seed: int = 0,
    ) -> pd.DataFrame | Images:
        """As many rows as you like: post-processing, at no further cost of privacy.

        Releases of marginals draw exactly from the distribution under the conditions. Generators make
        wanted classes as such, and choose among many rows for conditions on other columns.

        Args:
            rows: How many; may be left out with `like`.
            where: Which ones: {"ward": "Oncology", "age": (40, None)} or ["ward=Oncology", "age>=40"];
                a list of values means any of them, a pair the ends of a range.
            like: A frame with some of the columns: its rows are completed. What it holds comes back
                as it is, so it must be fit for whoever gets the result. Asked for more rows than it
                has, it is gone through again. A cell that is empty or not declared is filled in.
            classes: "even", or shares of the label's values, such as {"ill": 0.5, "well": 0.5}.
            seed: Draws.

        Raises:
            LimbeckError: No row of the release can be so.
        """
        wanted = read_wanted(self.schema, rows, where=where, like=like, classes=classes)
        if wanted.given is not None:
            rows = len(wanted.given.labels)
        if rows is None:
            raise LimbeckError("Say how many rows to draw, or give a frame to complete: like=...")
        positive(rows=rows)
        return draw(self.schema, self.source, rows, seed=seed, wanted=wanted)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the release as a folder: all of it or nothing.

        Args:
            folder: Where; must not exist, unless `force`.
            force: Replace what is there.
        """
        folder = Path(folder)
        fill(folder, lambda empty: write(self, empty), force=force)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release; its checksums must hold."""
        folder = Path(folder)
        check_sums(folder)
        if (folder / "model.npz").exists():
            raise ReleaseError(
                f"{folder} holds a model, which has no rows: `limbeck predict` uses it, "
                "limbeck.Model.load in Python."
            )
        try:
            certificate = read_certificate(folder)
            schema = Schema.load(folder / "schema.toml")
            source = _load_source(folder, schema)
            measurements = read_arrays(folder / "measurements.npz")
            data = _load_data(folder, schema)
        except LimbeckError:
            raise
        except RELEASE_DAMAGE as error:
            raise ReleaseError(f"{folder} is not a complete release: {one_line(error)}.") from None
        return cls(
            schema=schema,
            certificate=certificate,
            data=data,
            source=source,
            measurements=measurements,
        )

    @classmethod
    def of(cls, given: Release | str | Path) -> Release:
        """A release as it is, or the one in a folder."""
        if isinstance(given, str | Path):
            return cls.load(given)
        if not isinstance(given, Release):
            raise ReleaseError(
                f"Expected a release, from limbeck.distill, or its folder; got {type(given).__name__}."
            )
        return given

    @property
    def rows(self) -> int:
        """Number of released rows."""
        return len(self.data.images if isinstance(self.data, Images) else self.data)


def _load_data(folder: Path, schema: Schema) -> pd.DataFrame | Images:
    if not schema.image:
        dataset = read_data(folder / "data.parquet", schema.without_person())
        if schema.rules:
            return _ruled_rows(dataset, schema, folder)
        rows = bare_rows(dataset)  # released rows: nothing private about them
        return schema.decode(np.asarray(rows.cells), rows.labels)
    file = read_arrays(folder / "data.npz")
    images = file["images"]
    return Images(images, file.get("labels", np.asarray([""] * len(images))))


def _ruled_rows(dataset: Dataset, schema: Schema, folder: Path) -> pd.DataFrame:
    """Released rows as they were written; a release whose rows break a rule is refused."""
    parts = []
    for raw in bare_values(dataset):
        values = schema.learned.values_of(raw)
        for text, broken in schema.learned.broken(values).items():
            if broken.any():
                raise ReleaseError(f"{folder}: {broken.sum()} of its rows break the rule '{text}'.")
        parts.append(values)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return schema.table(columns)


def _load_source(folder: Path, schema: Schema) -> RowSource:
    for kind, source in SOURCES.items():
        if (folder / f"{kind}.npz").exists():
            path = folder / f"{kind}.json"
            facts = json.loads(path.read_text()) if path.exists() else {}
            return source.load(schema, facts, read_arrays(folder / f"{kind}.npz"))
    raise ValueError(f"it has none of {', '.join(f'{kind}.npz' for kind in SOURCES)}")


def one_line(error: BaseException) -> str:
    """What an error says, short and in one line."""
    words = " ".join(str(error).split())
    return (words[:160] + "...") if len(words) > 160 else words or type(error).__name__
