"""Pictures of how a table's columns correlate, released beside real."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..data import Dataset, bare_rows, png_of
from ..evaluation import by_column, released_data
from ..release import Release
from ..scores import correlations

COLUMNS = 60
"""Columns that a picture shows, at most."""
PALE, PLUS, MINUS = (np.array(c, float) for c in ((244, 245, 248), (47, 98, 217), (196, 86, 26)))
"""Colours of correlations of 0, 1 and -1."""
PIXELS = 480
"""Pixels on a side of a picture, at least."""


def correlation_view(release: Release, real: Dataset | None) -> dict[str, Any] | None:
    """A picture of the released columns' correlations, and one of the real ones' if they are given; None
    where fewer than two columns are numbers, times, or have two values."""
    if release.schema.image:
        return None
    sides: list[dict[str, str]] = []
    names: tuple[str, ...] = ()
    for of, data in (("released", released_data(release)), ("real", real)):
        if data is not None:
            plain = by_column(data)
            rows = bare_rows(plain)
            names, matrix = correlations(plain.schema, np.asarray(rows.cells), rows.labels)
            sides.append({"of": of, "png": matrix_png(matrix[:COLUMNS, :COLUMNS])})
    if len(names) < 2:
        return None
    return {"sides": sides, "names": names[:COLUMNS], "more": max(len(names) - COLUMNS, 0)}


def matrix_png(matrix: np.ndarray) -> str:
    """A matrix of numbers from -1 to 1 as a picture, a square for each: PNG in base64."""
    if not len(matrix):
        return ""
    size = np.abs(matrix)[:, :, None]
    colours = PALE + size * (np.where(matrix[:, :, None] > 0, PLUS, MINUS) - PALE)
    each = -(-PIXELS // len(matrix))
    pixels = np.rint(colours).astype(np.uint8).repeat(each, axis=0).repeat(each, axis=1)
    return base64.b64encode(png_of(pixels)).decode()
