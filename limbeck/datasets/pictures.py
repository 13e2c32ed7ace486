"""Pictures: from checked bytes to arrays of pixels and label values."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import decode_picture, shrink_picture
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
    """A tar archive of fixed-size records: bytes of labels, the last of them ours, then the colour planes."""
    (archive,) = files.values()
    labels = options.get("label_bytes", 1)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for part in PARTS:
            members = [tar.extractfile(name) for name in options[part]]
            content = b"".join(member.read() for member in members if member is not None)
            rows = np.frombuffer(content, np.uint8).reshape(-1, labels + image.slots)
            planes = rows[:, labels:].reshape(-1, image.channels, image.height, image.width)
            yield planes.transpose(0, 2, 3, 1), rows[:, labels - 1]


def _mat(files: Mapping[str, bytes], options: Mapping[str, Any], image: Image) -> Iterator[Coded]:
    """A MATLAB file for each part: X with images along its last axis, and y; label `modulo` is class 0."""
    from scipy.io import loadmat

    for part in PARTS:
        arrays = loadmat(io.BytesIO(files[options[part]]), variable_names=("X", "y"))
        yield np.moveaxis(arrays["X"], -1, 0), arrays["y"].ravel() % options["modulo"]


def _faces(files: Mapping[str, bytes], options: Mapping[str, Any], image: Image) -> Iterator[Coded]:
    """A zip archive of pictures, cut to the square in their middle and shrunk; which part a picture is of and
    whether it has the `attribute` stands in text files, a line for each picture."""
    parts = dict(line.split() for line in files[options["parts"]].decode().splitlines())
    _, names, *lines = files[options["attributes"]].decode().splitlines()
    place = 1 + names.split().index(options["attribute"])
    has = {words[0]: words[place] == "1" for words in map(str.split, lines)}
    with zipfile.ZipFile(io.BytesIO(files[options["pictures"]])) as archive:
        for part in PARTS:
            chosen = [name for name, number in parts.items() if int(number) in options[part]]
            pixels = [
                shrink_picture(io.BytesIO(archive.read(options["folder"] + name)), image)
                for name in chosen
            ]
            yield np.stack(pixels), np.asarray([has[name] for name in chosen], np.int64)


_READERS: Mapping[
    str, Callable[[Mapping[str, bytes], Mapping[str, Any], Image], Iterator[Coded]]
] = {"npz": _npz, "idx": _idx, "mosaic": _mosaic, "records": _records, "mat": _mat, "faces": _faces}


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
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
