"""Pictures: from checked bytes to arrays of pixels and label values."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import decode_picture
from ..schema import Image, Schema
from .registry import Distribution

PARTS = ("train", "test")

Coded = tuple[np.ndarray, np.ndarray]
"""Pixels, and labels as places in the schema's list of classes."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images with their labels."""

    images: np.ndarray
    """uint8, (rows, height, width, channels)."""
    labels: np.ndarray
    """The label's declared values, one per image."""

    def __len__(self) -> int:
        return len(self.images)


def read_pictures(
    source: Distribution, files: Mapping[str, bytes], schema: Schema
) -> tuple[Pictures, Pictures]:
    """Training and test part."""
    assert schema.image is not None
    values = np.asarray(schema.classes)
    train, test = (
        Pictures(pixels.reshape(-1, *schema.image.shape), values[codes])
        for pixels, codes in _READERS[source.format](files, source.options, schema.image)
    )
    return train, test


def _npz(files: Mapping[str, bytes], options: Mapping[str, Any], image: Image) -> Iterator[Coded]:
    """NumPy archives that together hold x_train, y_train, x_test and y_test."""
    arrays = {key: array for content in files.values() for key, array in _arrays(content).items()}
    for part in PARTS:
        yield arrays[f"x_{part}"], arrays[f"y_{part}"]


def _idx(files: Mapping[str, bytes], options: Mapping[str, Any], image: Image) -> Iterator[Coded]:
    """The format of MNIST's makers: a part is a file of images and a file of labels."""
    for part in PARTS:
        pixels, codes = (_idx_array(files[name]) for name in options[part])
        yield pixels, codes


def _mosaic(
    files: Mapping[str, bytes], options: Mapping[str, Any], image: Image
) -> Iterator[Coded]:
    """Large pictures that hold many small ones, row by row; labels in a NumPy archive."""
    labels = _arrays(files[options["labels"]])
    for part in PARTS:
        tiles = [_tiles(files[name], image) for name in options[part]]
        yield np.concatenate(tiles), labels[f"y_{part}"]


def _records(
    files: Mapping[str, bytes], options: Mapping[str, Any], image: Image
) -> Iterator[Coded]:
    """A tar archive of fixed-size records: a byte of label, then the colour planes."""
    (archive,) = files.values()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for part in PARTS:
            members = [tar.extractfile(name) for name in options[part]]
            content = b"".join(member.read() for member in members if member is not None)
            rows = np.frombuffer(content, np.uint8).reshape(-1, 1 + image.slots)
            planes = rows[:, 1:].reshape(-1, image.channels, image.height, image.width)
            yield planes.transpose(0, 2, 3, 1), rows[:, 0]


_READERS: Mapping[
    str, Callable[[Mapping[str, bytes], Mapping[str, Any], Image], Iterator[Coded]]
] = {"npz": _npz, "idx": _idx, "mosaic": _mosaic, "records": _records}


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as archive:
        return dict(archive)


def _idx_array(content: bytes) -> np.ndarray:
    """The fourth byte is the number of axes; their big-endian lengths follow, then the bytes."""
    axes = content[3]
    shape = np.frombuffer(content, ">i4", axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _tiles(content: bytes, image: Image) -> np.ndarray:
    sheet = decode_picture(io.BytesIO(content), image.channels)
    down, across = sheet.shape[0] // image.height, sheet.shape[1] // image.width
    grid = sheet.reshape(down, image.height, across, image.width, image.channels)
    return grid.transpose(0, 2, 1, 3, 4).reshape(-1, *image.shape)
