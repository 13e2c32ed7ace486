"""Data out: Parquet and CSV for tables; npz, PNG files per class and a contact sheet for images."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as Picture

from ..schema import Date, Image, Schema

SHEET_COLUMNS = 10
"""Images per class on the contact sheet."""


def save_table(frame: pd.DataFrame, schema: Schema, folder: Path) -> list[str]:
    """Write data.parquet and data.csv."""
    dates = [c.name for c in schema.columns if isinstance(c, Date)]
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for name in dates:
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.date32()))
    pq.write_table(table, folder / "data.parquet")
    frame.to_csv(folder / "data.csv", index=False)
    return ["data.parquet", "data.csv"]


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
        Picture.fromarray(picture.squeeze()).save(file, compress_level=1)
    contact_sheet(shown, labels, len(names)).save(folder / "contact-sheet.png")
    return ["data.npz", "images/", "contact-sheet.png"]


def as_bytes(pixels: np.ndarray, image: Image) -> np.ndarray:
    """Pixels of any declared range as 0..255 for viewing."""
    if pixels.dtype == np.uint8:
        return pixels
    return (
        np.rint(255 * image.expand(pixels.reshape(len(pixels), -1)))
        .astype(np.uint8)
        .reshape(pixels.shape)
    )


def contact_sheet(pictures: np.ndarray, labels: np.ndarray, classes: int) -> Picture.Image:
    """One column per class, the first images of each below one another, enlarged for the eye."""
    gap = 2
    height, width, channels = pictures.shape[1:]
    deep = max((int((labels == c).sum()) for c in range(classes)), default=0)
    rows = max(1, min(SHEET_COLUMNS, deep))
    shape = (rows * (height + gap) + gap, classes * (width + gap) + gap, channels)
    sheet = np.full(shape, 255, np.uint8)
    for c in range(classes):
        for r, at in enumerate(np.flatnonzero(labels == c)[:rows]):
            top, left = gap + r * (height + gap), gap + c * (width + gap)
            sheet[top : top + height, left : left + width] = pictures[at]
    picture = Picture.fromarray(sheet.squeeze(-1) if channels == 1 else sheet)
    zoom = max(1, round(800 / max(picture.size)))
    return picture.resize((picture.width * zoom, picture.height * zoom), Picture.Resampling.NEAREST)


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
    file = io.BytesIO()
    Picture.fromarray(np.concatenate([wide, solid], axis=2)).save(file, "PNG", optimize=True)
    return file.getvalue()


def class_folders(schema: Schema) -> list[str]:
    """A safe folder name per class: the value where it can be one, else numbered."""
    safe = [re.sub(r"[^A-Za-z0-9._-]+", "-", str(v)).strip(".-") or "all" for v in schema.classes]
    if len(set(safe)) == len(safe):
        return safe
    return [f"{i}-{name}" for i, name in enumerate(safe)]
