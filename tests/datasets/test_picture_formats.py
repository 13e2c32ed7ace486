"""Formats that public pictures come in."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from test_source_files import idx_bytes

from limbeck import datasets
from limbeck.datasets import registry as _registry
from limbeck.datasets.public import read
from limbeck.errors import DataError
from limbeck.schema import Schema

# ---- formats of pictures ------------------------------------------------------------------------

IMAGES = np.random.RandomState(0).randint(0, 256, (6, 2, 3, 3), np.uint8)
CODES = np.asarray([0, 1, 1, 0, 1, 0], np.uint8)


def _read_pictures(
    tmp_path: Path, files: dict[str, bytes], source: str, channels: int
) -> tuple[datasets.Pictures, datasets.Pictures]:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    sums = "".join(
        f'"{name}" = "md5:{hashlib.md5(content).hexdigest()}"\n' for name, content in files.items()
    )
    entry = _registry.parse(
        f'[p]\ntitle="p"\nkind="images"\nlicence=""\nhome=""\ncitation=""\nobtain=""\n'
        f"[[p.source]]\n{source}\n[p.source.files]\n{sums}"
    )["p"]
    schema = Schema.parse(
        f"""
dataset = "p"
rows = 4
confirmed = true
column = [
    {{ name = "image", kind = "image", height = 2, width = 3, channels = {channels} }},
    {{ name = "label", kind = "label", values = ["cat", "dog"] }},
]
"""
    )
    data = read(entry, schema, folder=tmp_path)
    assert isinstance(data.train, datasets.Pictures) and isinstance(data.test, datasets.Pictures)
    return data.train, data.test


def _assert_parts(parts: tuple[datasets.Pictures, ...], images: np.ndarray) -> None:
    assert np.array_equal(np.concatenate([p.images for p in parts]), images)
    labels = np.concatenate([p.labels for p in parts])
    assert labels.tolist() == np.asarray(["cat", "dog"])[CODES].tolist()
    assert [len(p) for p in parts] == [4, 2]


def test_idx(tmp_path: Path) -> None:
    grey = IMAGES[..., 0]
    files = {
        "a.gz": gzip.compress(idx_bytes(grey[:4])),
        "b.gz": gzip.compress(idx_bytes(CODES[:4])),
        "c.gz": gzip.compress(idx_bytes(grey[4:])),
        "d.gz": gzip.compress(idx_bytes(CODES[4:])),
    }
    source = 'format = "idx"\ntrain = ["a.gz", "b.gz"]\ntest = ["c.gz", "d.gz"]'
    _assert_parts(_read_pictures(tmp_path, files, source, 1), grey[..., None])


def test_records(tmp_path: Path) -> None:
    planes = IMAGES.transpose(0, 3, 1, 2).reshape(6, -1)
    rows = np.concatenate([CODES[:, None], planes], axis=1)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, part in (("x/1.bin", rows[:1]), ("x/2.bin", rows[1:4]), ("x/t.bin", rows[4:])):
            info = tarfile.TarInfo(name)
            info.size = part.size
            tar.addfile(info, io.BytesIO(part.tobytes()))
    source = 'format = "records"\ntrain = ["x/1.bin", "x/2.bin"]\ntest = ["x/t.bin"]'
    _assert_parts(_read_pictures(tmp_path, {"x.tar.gz": packed.getvalue()}, source, 3), IMAGES)


def test_records_with_two_labels(tmp_path: Path) -> None:
    planes = IMAGES.transpose(0, 3, 1, 2).reshape(6, -1)
    rows = np.concatenate([CODES[:, None] * 0 + 7, CODES[:, None], planes], axis=1)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, part in (("x/1.bin", rows[:4]), ("x/t.bin", rows[4:])):
            info = tarfile.TarInfo(name)
            info.size = part.size
            tar.addfile(info, io.BytesIO(part.tobytes()))
    source = 'format = "records"\nlabel_bytes = 2\ntrain = ["x/1.bin"]\ntest = ["x/t.bin"]'
    _assert_parts(_read_pictures(tmp_path, {"x.tar.gz": packed.getvalue()}, source, 3), IMAGES)


def test_matlab(tmp_path: Path) -> None:
    from scipy.io import savemat

    files = {}
    for name, part in (("a.mat", slice(0, 4)), ("b.mat", slice(4, 6))):
        content = io.BytesIO()
        labels = np.where(CODES[part] == 0, 3, CODES[part])[:, None]  # class 0 is written as 3
        savemat(content, {"X": np.moveaxis(IMAGES[part], 0, -1), "y": labels})
        files[name] = content.getvalue()
    source = 'format = "mat"\nmodulo = 3\ntrain = "a.mat"\ntest = "b.mat"'
    _assert_parts(_read_pictures(tmp_path, files, source, 3), IMAGES)


def test_faces(tmp_path: Path) -> None:
    from PIL import Image

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(6):
            wide = np.zeros((12, 16, 3), np.uint8)
            wide[:, 2:14] = 40 * number  # what is left of a picture: the square in its middle
            content = io.BytesIO()
            Image.fromarray(wide).save(content, "PNG")
            archive.writestr(f"faces/{number}.jpg", content.getvalue())
    has = ["1" if code else "-1" for code in CODES]
    files = {
        "f.zip": packed.getvalue(),
        "p.txt": "".join(f"{n}.jpg {0 if n < 4 else 2}\n" for n in range(6)).encode(),
        "a.txt": b"6\nBald Male\n" + "".join(f"{n}.jpg  1 {has[n]}\n" for n in range(6)).encode(),
    }
    source = (
        'format = "faces"\npictures = "f.zip"\nfolder = "faces/"\nparts = "p.txt"\ntrain = [0, 1]\n'
        'test = [2]\nattributes = "a.txt"\nattribute = "Male"'
    )
    train, test = _read_pictures(tmp_path, files, source, 3)
    assert [len(train), len(test)] == [4, 2]
    pixels = np.concatenate([train.images, test.images])
    assert (
        pixels.shape[1:] == (2, 3, 3) and (pixels == 40 * np.arange(6)[:, None, None, None]).all()
    )
    labels = np.concatenate([train.labels, test.labels])
    assert ((labels == labels[CODES > 0][0]) == (CODES > 0)).all()


def test_what_is_missing_says_how_to_get_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path))
    reason = datasets.missing("celeba")
    assert "img_align_celeba.zip" in reason and "LIMBECK_DATA" in reason and "cuhk" in reason
    assert not datasets.missing("svhn") and not datasets.missing("adult")
    with pytest.raises(DataError, match="img_align_celeba.zip"):
        datasets.load("celeba")


def test_mosaic(tmp_path: Path) -> None:
    from PIL import Image

    def sheet(images: np.ndarray, down: int, across: int) -> bytes:
        grid = images.reshape(down, across, 2, 3, 3).transpose(0, 2, 1, 3, 4)
        content = io.BytesIO()
        Image.fromarray(grid.reshape(2 * down, 3 * across, 3)).save(
            content, "WEBP", lossless=True, exact=True
        )
        return content.getvalue()

    labels = io.BytesIO()
    np.savez(labels, y_train=CODES[:4], y_test=CODES[4:])
    files = {
        "a.webp": sheet(IMAGES[:4], 2, 2),
        "b.webp": sheet(IMAGES[4:], 1, 2),
        "l.npz": labels.getvalue(),
    }
    source = 'format = "mosaic"\ntrain = ["a.webp"]\ntest = ["b.webp"]\nlabels = "l.npz"'
    _assert_parts(_read_pictures(tmp_path, files, source, 3), IMAGES)
