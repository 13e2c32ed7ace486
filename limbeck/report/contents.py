"""What a release holds, for the page: pictures by class, distributions of columns, first rows.

Real rows, where they are given, stand beside the released ones; the page is internal then.
"""

from __future__ import annotations

import base64
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd

from ..data import Dataset, bare_rows, png_strip
from ..evaluation import by_column, released_data
from ..release import Images, Release
from ..schema import Category, Column, Numeric, clock_reading
from .charts import histogram, value_bar

PICTURES = 10
"""Images shown per class."""
COLUMNS, VALUES, ROWS = 60, 6, 6
"""Columns, values of a category, and sample rows shown."""
BINS = 20
"""Parts that the range of a number or a date is cut into."""
WHOLE_NUMBERS = 24
"""Whole numbers that have a bar each, at most; of more, bins are shown."""
TICK_LETTERS = 30
"""Letters and gaps that fit below the bars; where all numbers need more, only the ends are named."""


def length(release: Release) -> int:
    """How many rows or images were released."""
    data = release.data
    return len(data.images if isinstance(data, Images) else data)


def pictures(release: Release, real: Dataset | None) -> list[dict[str, Any]]:
    """A strip of released images per class, and one of real ones below it if they are given."""
    schema, image = release.schema, release.schema.image
    assert isinstance(release.data, Images) and image is not None
    codes = {str(value): code for code, value in enumerate(schema.classes)}
    labels = np.asarray([codes[str(value)] for value in release.data.labels.tolist()])
    sides = [("released", release.data.images, labels)]
    if real is not None:
        rows = bare_rows(real)
        sides.append(("real", np.asarray(rows.cells).reshape(-1, *image.shape), rows.labels))
    shown = []
    for code, value in enumerate(schema.classes):
        strips = []
        for of, pixels, classes in sides:
            at = np.flatnonzero(classes == code) if schema.label else np.arange(len(pixels))
            if len(at):
                few = min(len(at), PICTURES)
                png = base64.b64encode(png_strip(pixels[at[:few]], image)).decode()
                count = f"{few} of {len(at):,}" if few < len(at) else f"{few}"
                strips.append(
                    {"of": of, "png": png, "count": count, "width": 100 * few // PICTURES}
                )
        if strips:
            shown.append({"label": str(value), "strips": strips})
    return shown


def columns(release: Release, real: Dataset | None) -> list[dict[str, Any]]:
    """Distributions of the released columns, beside those of the real ones if they are given."""
    label, released = release.schema.label, released_data(release)
    described: list[Column] = [*released.schema.inputs, *([label] if label else [])]
    sides = []
    for data in (released, real):
        if data is not None:
            rows = bare_rows(by_column(data))
            cells = [*np.asarray(rows.cells).T, *([rows.labels] if label else [])]
            sides.append([shares(c, v) for c, v in zip(described, cells, strict=True)])
    cards = []
    for column, *given in itertools.islice(zip(described, *sides, strict=True), COLUMNS):
        released, theirs = given[0], given[1] if real is not None else None
        card: dict[str, Any] = {"name": column.name, "kind": column.kind}
        if isinstance(column, Category):
            card |= _category(column, released, theirs)
        else:
            card |= _numbers(column, released, theirs)
        gone = float(released[-1])
        card["missing"] = f"{gone:.1%} without a value" if gone else ""
        cards.append(card)
    return cards


def shares(column: Column, cells: np.ndarray) -> np.ndarray:
    """Shares of a column's values or bins, which the schema alone decides; of no value, the last."""
    if isinstance(column, Category):
        count = len(column.values)
        codes = np.where((cells >= 0) & (cells < count), cells, count)
    else:
        unit = np.clip(np.nan_to_num(np.asarray(cells, np.float64)), 0.0, 1.0)
        whole = whole_numbers(column)
        if whole:
            count = len(whole)
            values = column.number.from_unit(unit)  # type: ignore[union-attr]
            codes = np.clip(np.rint(values) - whole[0], 0, count - 1)
        else:
            count = BINS
            codes = np.minimum(np.floor(unit * count), count - 1)
        codes = np.where(np.isnan(cells), count, codes)
    return np.bincount(codes.astype(np.int64), minlength=count + 1) / max(len(codes), 1)


def whole_numbers(column: Column) -> list[int]:
    """The values of a column of few whole numbers; none of any other."""
    if not (isinstance(column, Numeric) and column.integer and column.lattice == 1):
        return []
    low, high = math.ceil(column.range[0]), math.floor(column.range[1])
    return list(range(low, high + 1)) if 0 <= high - low < WHOLE_NUMBERS else []


def _numbers(column: Column, released: np.ndarray, real: np.ndarray | None) -> dict[str, Any]:
    whole, facts = [plain(value) for value in whole_numbers(column)], column.facts()
    room = len(whole) * (1 + max(map(len, whole), default=0))
    logarithmic = column.number.scale == "log"  # type: ignore[union-attr]
    middle = [plain(column.decode(np.asarray([0.5]))[0])] if logarithmic else []
    return {
        "chart": histogram(released[:-1], None if real is None else real[:-1], names=whole),
        "ends": [plain(facts["min"]), *middle, plain(facts["max"])],
        "ticks": whole if room <= TICK_LETTERS else [],
    }


def _category(column: Category, released: np.ndarray, real: np.ndarray | None) -> dict[str, Any]:
    order = np.argsort(-released[:-1], kind="stable")
    top = max(float(released.max()), float(real.max()) if real is not None else 0.0)
    bars = [
        {
            "label": str(column.values[i]),
            "share": f"{released[i]:.1%}",
            "chart": value_bar(float(released[i]), None if real is None else float(real[i]), top),
        }
        for i in order[:VALUES]
    ]
    return {"bars": bars, "more": max(len(column.values) - VALUES, 0)}


def sample(release: Release) -> dict[str, Any] | None:
    """The first rows of a table."""
    if isinstance(release.data, Images):
        return None
    rows = release.data.head(ROWS)
    cells = [[plain(v) for v in row] for row in rows.itertuples(index=False)]
    return {"head": [str(c) for c in rows.columns], "rows": cells}


def plain(value: Any) -> str:
    """A cell as people write it."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "–"
    if isinstance(value, pd.Timestamp):
        midnight = value.tz is None and value == value.normalize()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, pd.Timedelta):
        return clock_reading(value.total_seconds())
    if isinstance(value, float | np.floating):
        return f"{value:,.6g}"
    if isinstance(value, int | np.integer) and abs(int(value)) >= 10_000:
        return f"{value:,}"
    return str(value)
