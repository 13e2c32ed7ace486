"""Images in: a folder per class (PNG, JPEG), npz, idx, and arrays in memory."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image as Picture
from PIL import ImageOps

from ..errors import DataError
from ..npz import NotArrays, read_arrays, unpacked
from ..schema import Image, Raw, Scalar, Schema, Values, canonical
from .cells import cell_text, object_texts, values

CHUNK = 4096
CROPPED_PIXELS = 1 << 26
"""Of a picture that is cut to the declared shape, at most: unpacked it takes some 200 MB."""
ENDINGS = {".png", ".jpg", ".jpeg"}
_ARRAYS = ("images", "x", "labels", "y")


class ArraySource:
    """Images (rows, height, width[, channels]) and labels (rows,), in memory."""

    def __init__(
        self, images: np.ndarray, labels: object | None, where: str = "the arrays"
    ) -> None:
        self._images, self._where = np.asarray(images), where
        self._labels = None if labels is None else label_array(labels)
        if self._images.ndim == 3:
            self._images = self._images[..., None]
        if self._images.ndim != 4 or self._images.dtype.kind not in "uifb":
            raise DataError(
                f"{where}: expected numbers of shape (rows, height, width[, channels]), got "
                f"{self._images.dtype} with {self._images.ndim} axes."
            )
        if self._labels is None:
            return
        if self._labels.ndim != 1 or self._labels.dtype.kind not in "biufSUOMm":
            raise DataError(
                f"{where}: expected one label per image, got {self._labels.dtype} labels with "
                f"{self._labels.ndim} axes."
            )
        if len(self._labels) != len(self._images):
            raise DataError(f"{where}: there are not as many labels as images.")

    def check(self, schema: Schema) -> None:
        image = _image_of(schema, self._where)
        if self._images.shape[1:] != image.shape:
            raise DataError(
                f"{self._where} holds images of shape {self._images.shape[1:]}; the schema declares "
                f"{image.shape} (height, width, channels)."
            )
        if schema.label and self._labels is None:
            raise DataError(f"{self._where} has no labels, but the schema declares a label.")

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        image = _image_of(schema, self._where)
        for start in range(0, len(self._images), CHUNK):
            at = slice(start, start + CHUNK)
            raw: dict[str, Raw] = {image.name: self._images[at]}
            if schema.label and self._labels is not None:
                raw[schema.label.name] = label_values(self._labels[at])
            yield raw


class ImageFolderSource:
    """A folder with one folder of images per class."""

    def __init__(self, path: Path) -> None:
        self.path = path
        folders = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
        self._files = [
            (file, folder.name)
            for folder in folders
            for file in sorted(folder.iterdir())
            if file.suffix.lower() in ENDINGS
        ]
        self._classes = {folder.name for folder in folders}

    def check(self, schema: Schema) -> None:
        _image_of(schema, str(self.path))
        if schema.label and not self._classes & {canonical(v) for v in schema.label.values}:
            raise DataError(
                f"{self.path}: none of its folders is named like a declared label value "
                f"({_some(schema.label.values)})."
            )

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        image = _image_of(schema, str(self.path))
        for start in range(0, len(self._files), CHUNK):
            files = self._files[start : start + CHUNK]
            raw: dict[str, Raw] = {image.name: np.stack([_open(f, image) for f, _ in files])}
            if schema.label:
                raw[schema.label.name] = label_values(np.asarray([name for _, name in files]))
            yield raw


def read_npz(path: Path) -> ArraySource:
    """Arrays `images` and `labels` (or `x` and `y`) of an npz file."""
    try:
        arrays = read_arrays(path, _ARRAYS)
    except (OSError, NotArrays) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"Cannot read {path} as npz: {words}.") from None
    images = arrays.get("images", arrays.get("x"))
    if images is None:
        raise DataError(f"{path} holds no array named `images` (or `x`).")
    return ArraySource(images, arrays.get("labels", arrays.get("y")), str(path))


def read_idx(path: Path) -> ArraySource:
    """An idx file of images; its labels lie beside it under the matching name."""
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    labels = _idx(beside) if beside != path and beside.exists() else None
    return ArraySource(_idx(path), labels, str(path))


def label_array(labels: object) -> np.ndarray:
    """Labels as an array: one of its own type as it is, anything else as objects, cell by cell.

    NumPy would give a list one type for all its cells, which could turn on one of them.
    """
    if hasattr(labels, "__array__"):
        return np.asarray(labels)
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise DataError(f"Expected labels as an array or a list, got {type(labels).__name__}.")
    listed = list(labels)
    cells = np.empty(len(listed), object)
    for place, label in enumerate(listed):
        cells[place] = label
    return cells


def label_values(labels: np.ndarray) -> Values:
    """Label values of any plain type as codes into distinct texts."""
    if labels.dtype.kind == "O":
        return values(object_texts(list(labels)))
    distinct, codes = np.unique(labels, return_inverse=True)
    texts = [cell_text(v) for v in distinct.tolist()]
    absent = np.asarray([text is None for text in texts], bool)
    return Values(
        np.where(absent[codes], -1, codes).astype(np.int64), [text or "" for text in texts]
    )


def _some(values: Sequence[Scalar]) -> str:
    return ", ".join([canonical(v) for v in values[:5]] + ["..."] * (len(values) > 5))


def _image_of(schema: Schema, where: str) -> Image:
    if schema.image is None:
        raise DataError(f"{where} holds images, but the schema declares no image column.")
    return schema.image


def decode_picture(file: Path | BinaryIO, channels: int) -> np.ndarray:
    """Pixels of a picture file, grey (height, width) or in colour (height, width, 3)."""
    with Picture.open(file) as picture:
        return _pixels(picture, channels)


def shrink_picture(file: BinaryIO, image: Image) -> np.ndarray:
    """Pixels of the square in the middle of a coloured picture, brought to the size of the schema's images."""
    with Picture.open(file) as picture:
        side = min(picture.size)
        left, top = ((length - side) // 2 for length in picture.size)
        square = picture.convert("RGB").crop((left, top, left + side, top + side))
        return np.asarray(square.resize((image.width, image.height), Picture.Resampling.BILINEAR))


def _pixels(picture: Picture.Image, channels: int) -> np.ndarray:
    return np.asarray(picture.convert("L" if channels == 1 else "RGB"))


def _cropped(picture: Picture.Image, image: Image) -> Picture.Image:
    """The largest part of the image's shape in the middle of a picture, upright, brought to its size."""
    side = max(image.width, image.height)
    picture.draft("RGB", (side, side))  # unpacks no more of a large photo than is needed
    upright = ImageOps.exif_transpose(picture).convert("L" if image.channels == 1 else "RGB")
    return ImageOps.fit(upright, (image.width, image.height), Picture.Resampling.BILINEAR)


def _open(file: Path, image: Image) -> np.ndarray:
    """Its size is known before anything is unpacked: a small file may hold a huge picture."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Picture.DecompressionBombWarning)
            file.stat()
            if not file.is_file():  # a pipe would be waited for without end
                raise ValueError
            with Picture.open(file) as opened:
                picture: Picture.Image = opened
                width, height = picture.size
                fits = (height, width) == (image.height, image.width)
                if not fits and image.fit == "crop" and width * height <= CROPPED_PIXELS:
                    picture, fits = _cropped(picture, image), True
                pixels = _pixels(picture, image.channels) if fits else None
    except FileNotFoundError:
        raise DataError(f"No image at {file} any more.") from None
    except Exception:  # a damaged file can raise anything; its words might quote the file
        raise DataError(
            f"Cannot read the image {file}: it is damaged, too large or no image."
        ) from None
    if pixels is None:
        raise DataError(
            f"{file} is {height}x{width} pixels (height x width); the schema declares "
            f"{image.height}x{image.width}. Bring all images to one size, or, where none has more than "
            f'{CROPPED_PIXELS:,} pixels, say fit = "crop" in its [[column]].'
        )
    return pixels.reshape(image.shape)


def _idx(path: Path) -> np.ndarray:
    try:
        raw = unpacked(path)
        if not raw:
            raise DataError(f"{path} is empty: expected an idx file.")
        zero, kind, dimensions = struct.unpack(">HBB", raw[:4])
        shape = struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])
        body = np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions)
    except DataError:
        raise
    except (OSError, EOFError, zlib.error, struct.error, ValueError) as error:
        raise DataError(f"Cannot read {path} as idx: {error}.") from None
    if zero != 0 or kind != 8 or body.size != math.prod(shape):
        raise DataError(f"{path} is not an idx file of bytes, or it is cut short.")
    return body.reshape(shape)
