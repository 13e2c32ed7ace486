"""Data out: Parquet and CSV for tables; npz, PNG files per class and a contact sheet for images."""

from __future__ import annotations

import io
import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as Picture
from PIL import ImageDraw, ImageFont

from ..schema import Date, DateTime, Duration, Image, Schema, clock_reading

SHEET_COLUMNS = 10
"""Images per class on the contact sheet."""
SHEET_PIXELS = 800
"""About how wide its images are together."""
FOLDER_LENGTH = 80
"""Letters of a class's name in that of its folder, at most: no disk takes endless names."""
NAME_LENGTH = 24
"""Letters of a class's name on it, at most."""


def save_table(frame: pd.DataFrame, schema: Schema, folder: Path) -> list[str]:
    """Write data.parquet and data.csv."""
    _write_parquet(frame, schema, folder / "data.parquet")
    _write_csv(frame, schema, folder / "data.csv")
    return ["data.parquet", "data.csv"]


def save_rows(frame: pd.DataFrame, schema: Schema, path: Path) -> None:
    """Write a table to one file, CSV or Parquet by the end of its name."""
    if path.suffix == ".parquet":
        _write_parquet(frame, schema, path)
    else:
        _write_csv(frame, schema, path)


def _write_parquet(frame: pd.DataFrame, schema: Schema, path: Path) -> None:
    dates = [c.name for c in schema.columns if isinstance(c, Date)]
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for name in dates:
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.date32()))
    pq.write_table(table, path)


def _write_csv(frame: pd.DataFrame, schema: Schema, path: Path) -> None:
    _as_it_came(frame, schema).to_csv(
        path,
        index=False,
        sep=schema.delimiter or (";" if schema.decimal == "," else ","),
        decimal=schema.decimal,
        encoding=schema.encoding,
        errors="replace",
    )


def _as_it_came(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Dates and moments as texts of the owner's pattern, durations as a clock's reading."""
    texts = {}
    for column in schema.columns:
        cells = frame[column.name]
        if isinstance(column, Date | DateTime) and column.format is not None:
            texts[column.name] = cells.dt.strftime(column.format)
        if isinstance(column, Duration):
            seconds = cells.dt.total_seconds()
            texts[column.name] = seconds.map(clock_reading, na_action="ignore").astype(object)
    return frame.assign(**texts)


def save_images(pixels: np.ndarray, labels: np.ndarray, schema: Schema, folder: Path) -> list[str]:
    """Write data.npz (images and label values), images/<class>/*.png and contact-sheet.png."""
    assert schema.image is not None
    names = class_folders(schema)
    values = np.asarray(schema.classes)[labels]
    arrays = {"images": pixels} | ({"labels": values} if schema.label else {})
    np.savez_compressed(folder / "data.npz", **arrays)
    shown = as_bytes(pixels, schema.image)
    width = len(str(len(labels)))
    for name in names:
        (folder / "images" / name).mkdir(parents=True)
    for i, (picture, label) in enumerate(zip(shown, labels, strict=True)):
        file = folder / "images" / names[label] / f"{i:0{width}d}.png"
        _picture(picture).save(file, compress_level=1)
    sheet = contact_sheet(shown, labels, [str(value) for value in schema.classes])
    sheet.save(folder / "contact-sheet.png")
    return ["data.npz", "images/", "contact-sheet.png"]


def as_bytes(pixels: np.ndarray, image: Image) -> np.ndarray:
    """Pixels of any declared range as 0..255 for viewing."""
    if pixels.dtype == np.uint8 and (image.min, image.max) == (0, 255):
        return pixels
    return (
        np.rint(255 * image.expand(pixels.reshape(len(pixels), -1)))
        .astype(np.uint8)
        .reshape(pixels.shape)
    )


def contact_sheet(pictures: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> Picture.Image:
    """One line per class with its name, the first images beside it, enlarged for the eye.

    Args:
        pictures: Bytes (rows, height, width, channels).
        labels: A class per picture, by its number.
        names: Of the classes; the empty name of a set without classes is not written.
    """
    if list(names) == [""]:  # no classes: as many lines as there are
        shown = pictures[: SHEET_COLUMNS**2]
        groups = [shown[i : i + SHEET_COLUMNS] for i in range(0, len(shown), SHEET_COLUMNS)]
    else:
        groups = [pictures[np.flatnonzero(labels == c)[:SHEET_COLUMNS]] for c in range(len(names))]
    height, width, channels = pictures.shape[1:]
    zoom = max(1, round(SHEET_PIXELS / (SHEET_COLUMNS * width)))
    high, wide, gap = zoom * height, zoom * width, 3
    font = ImageFont.load_default(min(max(high // 3, 10), 24))
    margin = max((math.ceil(font.getlength(_short(name))) for name in names), default=0)
    left = margin + 4 * gap if margin else gap
    most = max((len(group) for group in groups), default=0)
    line = max(high, 12) + gap
    size = (left + max(most, 1) * (wide + gap), max(len(groups), 1) * line + gap)
    sheet = Picture.new("L" if channels == 1 else "RGB", size, "white")
    pen = ImageDraw.Draw(sheet)
    for row, group in enumerate(groups):
        top = gap + row * line
        if margin:
            middle = (left - 2 * gap, top + high // 2)
            pen.text(middle, _short(names[row]), fill="black", font=font, anchor="rm")
        for place, picture in enumerate(group):
            enlarged = _picture(picture).resize((wide, high), Picture.Resampling.NEAREST)
            sheet.paste(enlarged, (left + place * (wide + gap), top))
    return sheet


def _picture(pixels: np.ndarray) -> Picture.Image:
    """Bytes (height, width, channels) as a picture, grey or coloured."""
    return Picture.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _short(name: str) -> str:
    """A name in letters that Pillow's own font has: without accents, others as question marks."""
    bare = [c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)]
    plain = "".join(bare).encode("ascii", "replace").decode()
    return plain if len(plain) <= NAME_LENGTH else plain[: NAME_LENGTH - 3] + "..."


def png_strip(pixels: np.ndarray, image: Image) -> bytes:
    """Pictures side by side as the bytes of one PNG file."""
    shown = as_bytes(pixels, image)
    gap = max(1, image.width // 14)
    wide = np.zeros(
        (image.height, len(shown) * (image.width + gap) - gap, image.channels), np.uint8
    )
    solid = np.zeros((*wide.shape[:2], 1), np.uint8)  # gaps are transparent: pages may be dark
    for number, picture in enumerate(shown):
        left = number * (image.width + gap)
        wide[:, left : left + image.width] = picture
        solid[:, left : left + image.width] = 255
    return png_of(np.concatenate([wide, solid], axis=2))


def png_of(pixels: np.ndarray) -> bytes:
    """Pixels (height, width, channels) of bytes as a PNG file."""
    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def class_folders(schema: Schema) -> list[str]:
    """A safe folder name per class: the value where it can be one, else its beginning, and numbered where two
    would be alike (on some disks in another case, too)."""
    letters = [re.sub(r"[^A-Za-z0-9._-]+", "-", str(v)).strip(".-") for v in schema.classes]
    safe = [name[:FOLDER_LENGTH] or "all" for name in letters]
    if len({name.lower() for name in safe}) == len(safe):
        return safe
    return [f"{i}-{name}" for i, name in enumerate(safe)]
