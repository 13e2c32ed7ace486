"""Public data: what the registry promises is what is loaded, on every road and with every fault."""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limbeck import datasets
from limbeck.datasets import registry as _registry
from limbeck.datasets.public import read
from limbeck.errors import DataError, LimbeckError, ReleaseError
from limbeck.schema import Category, Schema, canonical

NAMES = datasets.names()
FOLDER = Path(os.environ.get("LIMBECK_DATA", ""))
needs_data = pytest.mark.skipif(
    not os.environ.get("LIMBECK_DATA"), reason="LIMBECK_DATA names no folder of data"
)
FAR = ("celeba", "cifar100", "svhn")
"""Data that are large, or only given to who asks."""
far = pytest.mark.skipif(
    not (FOLDER / "img_align_celeba.zip").exists(), reason="large data of other people are not here"
)
EVERY = [
    name
    if datasets.about(name).embedded
    else pytest.param(name, marks=[needs_data, *([far] if name in FAR else [])])
    for name in NAMES
]
load = cache(datasets.load)


# ---- the registry -------------------------------------------------------------------------------


def test_names() -> None:
    wanted = "adult adult-bins celeba census census-bins cervical cifar10 cifar100 covtype credit"
    pictures = "epileptic fashion-mnist gaussian-mixture intrusion isolet mnist mnist-mini svhn"
    assert sorted(NAMES) == [*wanted.split(), *pictures.split()]


@pytest.mark.parametrize("name", NAMES)
def test_schema_belongs_to_its_entry(name: str) -> None:
    schema, about = datasets.schema(name), datasets.about(name)
    assert schema.dataset == name
    assert schema.label is not None or _registry.entry(name).edges  # bins: inputs alone
    assert (about.kind == "images") == (schema.image is not None)
    assert (schema.lifetime.epsilon, schema.lifetime.delta) == (20, 1e-3)
    assert not schema.estimated
    assert not set(about.dropped) & {c.name for c in schema.columns}
    assert Schema.parse(schema.toml()) == schema


@pytest.mark.parametrize("name", NAMES)
def test_every_file_has_a_checksum(name: str) -> None:
    for source in _registry.entry(name).sources:
        for file, wanted in source.files.items():
            method, _, digest = (wanted or source.unpacked[file]).partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64}[method]


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(LimbeckError, match="'aduld'.*adult.*covtype"):
        datasets.load("aduld")


def test_code_knows_no_data_set_by_name() -> None:
    paths = sorted(Path(datasets.__file__).parent.glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert not texts & set(NAMES), path


def test_import_is_light() -> None:
    code = "import sys, limbeck.datasets; sys.exit('pooch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- what is loaded -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_parts_follow_the_schema(name: str) -> None:
    data, schema = load(name), datasets.schema(name)
    assert schema.rows is not None
    assert len(data.train) == pytest.approx(schema.rows, rel=0.03)
    for part in (data.train, data.test):
        if isinstance(part, datasets.Pictures):
            assert schema.image is not None
            assert part.images.shape == (len(part.labels), *schema.image.shape)
            assert part.images.dtype == np.uint8
            assert set(part.labels.tolist()) == set(schema.classes)
        else:
            assert list(part.columns) == [c.name for c in schema.columns]
            assert schema.label is None or set(part[schema.label.name]) == set(schema.classes)
            assert list(part.index) == list(range(len(part)))


@pytest.mark.parametrize("name", EVERY)
def test_declared_values_cover_the_rows(name: str) -> None:
    data, schema = load(name), datasets.schema(name)
    if isinstance(data.train, datasets.Pictures) or isinstance(data.test, datasets.Pictures):
        return
    rows = pd.concat([data.train, data.test])
    for column in schema.columns:
        values = rows[column.name]
        if isinstance(column, Category):
            spelt = {v: canonical(v) for v in values.dropna().unique()}
            declared = values.map(spelt).isin({canonical(v) for v in column.values})
            assert (declared | (values.isna() & column.missing)).mean() > 0.99, column.name
        else:
            assert column.missing or not values.isna().any(), column.name


@needs_data
@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if datasets.about(n).kind == "table" and _registry.entry(n).sources[0].files],
)
def test_only_declared_columns_are_left_out(name: str) -> None:
    import pyarrow.parquet

    entry = _registry.entry(name)
    stored = pyarrow.parquet.read_schema(FOLDER / next(iter(entry.sources[0].files))).names
    columns = [c.name for c in datasets.schema(name).columns]
    besides = {*entry.about.dropped, entry.split.get("column", "")}
    assert [n for n in stored if n not in besides] == columns


def test_adult_keeps_its_own_split() -> None:
    data = load("adult")
    train, test = data.train, data.test
    assert isinstance(train, pd.DataFrame) and isinstance(test, pd.DataFrame)
    assert (len(train), len(test)) == (32561, 16281)
    assert train.shape[1] == 15
    assert train.loc[0, ["age", "workclass", "income"]].tolist() == [39, "State-gov", "<=50K"]
    assert train["workclass"].isna().sum() == 1836  # the number of `?` that is always cited
    assert "?" not in set(train["workclass"])


def test_mnist_mini_is_balanced_and_small() -> None:
    data = load("mnist-mini")
    for part, each in ((data.train, 2500), (data.test, 500)):
        assert isinstance(part, datasets.Pictures)
        values, counts = np.unique(part.labels, return_counts=True)
        assert values.tolist() == list(range(10)) and set(counts) == {each}
    sizes = [f.stat().st_size for f in _registry.EMBEDDED.iterdir()]
    assert sum(sizes) < 6e6


@needs_data
def test_mnist_mini_is_a_seeded_subset() -> None:
    whole, mini = load("mnist"), load("mnist-mini")
    for full, part, each in ((whole.train, mini.train, 2500), (whole.test, mini.test, 500)):
        assert isinstance(full, datasets.Pictures) and isinstance(part, datasets.Pictures)
        rng = np.random.RandomState(0)
        picks = [rng.permutation(np.flatnonzero(full.labels == c))[:each] for c in range(10)]
        rows = np.sort(np.concatenate(picks))
        assert np.array_equal(full.images[rows], part.images)
        assert np.array_equal(full.labels[rows], part.labels)


@needs_data
def test_stored_integers_are_scaled_back() -> None:
    for name, column, bound in (("credit", "V1", 60), ("isolet", "f1", 1)):
        train = load(name).train
        assert isinstance(train, pd.DataFrame)
        assert 0.5 < train[column].abs().max() <= bound


@needs_data
def test_idx_files_rebuilt_from_our_copy_have_the_published_checksums() -> None:
    source = _registry.entry("mnist").sources[1]
    data = load("mnist")
    for key, part in (("train", data.train), ("test", data.test)):
        assert isinstance(part, datasets.Pictures)
        for file, array in zip(
            source.options[key], (part.images[..., 0], part.labels.astype(np.uint8)), strict=True
        ):
            assert "md5:" + hashlib.md5(_idx(array)).hexdigest() == source.unpacked[file]


# ---- files on disk ------------------------------------------------------------------------------

TABLE = """
[toy]
title = "A toy"
kind = "table"
licence = "none"
home = "https://example.org/toy"
citation = "A. Nobody, 1999"
obtain = "Write it yourself."
null = "?"
split = {{ fraction = 0.75, group = "who", seed = 0 }}
label = {{ groups = {{ good = ["a", "b"] }}, rest = "bad" }}
[[toy.source]]
format = "csv"
header = true
base = "{base}"
strip = {{ kind = "." }}
files = {{ "toy.csv.gz" = "{packed}" }}
unpacked = {{ "toy.csv.gz" = "{unpacked}" }}
"""
TABLE_SCHEMA = Schema.parse(
    """
dataset = "toy"
rows = 8
confirmed = true
column = [
    { name = "place", kind = "category", values = ["NA", "x"], missing = true },
    { name = "age", kind = "integer", min = 0, max = 9 },
    { name = "kind", kind = "label", values = ["good", "bad"] },
]
"""
)
ROWS = "who,age,place,kind\n" + "".join(
    f"p{i // 2},{i},{'NA' if i % 2 else '?'},{'abcd'[i % 4]}.\n" for i in range(8)
)
PACKED = gzip.compress(ROWS.encode(), mtime=0)


def _toy(base: str = "", packed: str = "", content: bytes = ROWS.encode()) -> _registry.Entry:
    unpacked = "md5:" + hashlib.md5(content).hexdigest()
    return _registry.parse(TABLE.format(base=base, packed=packed, unpacked=unpacked))["toy"]


def _idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.asarray(array.shape, ">i4").tobytes()
    return head + array.tobytes()


def test_table_rules(tmp_path: Path) -> None:
    (tmp_path / "toy.csv.gz").write_bytes(PACKED)
    data = read(_toy(), TABLE_SCHEMA, folder=tmp_path)
    train, test = data.train, data.test
    assert isinstance(train, pd.DataFrame) and isinstance(test, pd.DataFrame)
    assert list(train.columns) == ["place", "age", "kind"]
    assert (len(train), len(test)) == (6, 2)
    assert test["age"].iloc[0] // 2 == test["age"].iloc[1] // 2  # one person, one part
    rows = pd.concat([train, test]).sort_values("age")
    assert rows["kind"].tolist() == ["good", "good", "bad", "bad"] * 2
    assert rows["place"].fillna("null").tolist() == ["null", "NA"] * 4


def test_wrong_checksum_on_disk_names_file_and_sums(tmp_path: Path) -> None:
    path = tmp_path / "toy.csv.gz"
    path.write_bytes(PACKED)
    got = hashlib.sha256(PACKED).hexdigest()
    with pytest.raises(DataError) as error:
        read(_toy(packed="sha256:" + "0" * 64), TABLE_SCHEMA, folder=tmp_path)
    assert all(text in str(error.value) for text in (str(path), "0" * 64, got))
    path.write_bytes(gzip.compress(b"other", mtime=0))
    with pytest.raises(DataError, match="content of"):
        read(_toy(), TABLE_SCHEMA, folder=tmp_path)
    path.write_bytes(b"not gzip")
    with pytest.raises(DataError, match="Cannot unpack"):
        read(_toy(), TABLE_SCHEMA, folder=tmp_path)


def test_absent_file_says_what_to_do(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(DataError, match=r"toy\.csv\.gz.*LIMBECK_DATA.*example\.org/toy"):
            read(_toy(), TABLE_SCHEMA, folder=folder)
    with pytest.raises(DataError, match="not a folder"):
        read(_toy(), TABLE_SCHEMA, folder=tmp_path / "nowhere")


def test_absent_public_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"creditcard\.parquet or creditcard\.csv"):
        datasets.load("credit")


# ---- downloads ----------------------------------------------------------------------------------


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: the test's output is the test's."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder that is served, and its address."""
    for key in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(key, "*")
    served = tmp_path / "served"
    (served / "toy").mkdir(parents=True)
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(served)))
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield served / "toy", f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def test_download_is_kept(
    server: tuple[Path, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, address = server
    (folder / "toy.csv.gz").write_bytes(PACKED)
    get = partial(read, _toy(base=f"{address}/toy"), TABLE_SCHEMA, cache=tmp_path / "cache")
    assert len(get().train) == 6
    (folder / "toy.csv.gz").unlink()
    assert len(get().train) == 6
    assert capfd.readouterr() == ("", "")


def test_mirror_replaces_the_address(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = server
    (folder / "toy.csv.gz").write_bytes(PACKED)
    entry = _toy(base="http://home.invalid/x")
    data = read(entry, TABLE_SCHEMA, mirror=f"{address}/", cache=tmp_path / "cache")
    assert len(data.train) == 6


def test_bad_download_is_refused_and_forgotten(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = server
    right = "sha256:" + hashlib.sha256(PACKED).hexdigest()
    entry = _toy(base=f"{address}/toy", packed=right)
    (folder / "toy.csv.gz").write_bytes(b"something else")
    with pytest.raises(DataError, match=f"{address}/toy/toy.csv.gz: expected {right[:6]}"):
        read(entry, TABLE_SCHEMA, cache=tmp_path / "cache")
    (folder / "toy.csv.gz").write_bytes(PACKED)
    assert len(read(entry, TABLE_SCHEMA, cache=tmp_path / "cache").train) == 6


def test_not_found(server: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Cannot download.*404.*LIMBECK_DATA"):
        read(_toy(base=f"{server[1]}/toy"), TABLE_SCHEMA, cache=tmp_path / "cache")


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(key, "*")
    with pytest.raises(DataError, match="Cannot download http://127.0.0.1:9/toy/toy.csv.gz"):
        read(_toy(base="http://127.0.0.1:9/toy"), TABLE_SCHEMA, cache=tmp_path / "cache")


def test_environment_names_mirror_and_cache(
    server: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIMBECK_DATA", raising=False)
    monkeypatch.setenv("LIMBECK_MIRROR", server[1])
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=f"{server[1]}/covtype/covtype.data.gz"):
        datasets.load("covtype")


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
        "a.gz": gzip.compress(_idx(grey[:4])),
        "b.gz": gzip.compress(_idx(CODES[:4])),
        "c.gz": gzip.compress(_idx(grey[4:])),
        "d.gz": gzip.compress(_idx(CODES[4:])),
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


# ---- writing ------------------------------------------------------------------------------------


def test_write_table(tmp_path: Path) -> None:
    out = tmp_path / "new" / "adult"
    paths = datasets.write("adult", out)
    assert {p.name for p in paths} == {"train.csv", "test.csv", "schema.toml", "LICENCE.txt"}
    assert all(p.parent == out and p.is_file() for p in paths)
    assert [p.name for p in out.parent.iterdir()] == ["adult"]
    assert Schema.load(out / "schema.toml") == datasets.schema("adult")
    data = load("adult")
    for part, name in ((data.train, "train.csv"), (data.test, "test.csv")):
        assert isinstance(part, pd.DataFrame)
        pd.testing.assert_frame_equal(pd.read_csv(out / name), part)
    licence = (out / "LICENCE.txt").read_text()
    assert "CC BY 4.0" in licence and "archive.ics.uci.edu" in licence and "Kohavi" in licence


def test_write_pictures(tmp_path: Path) -> None:
    paths = datasets.write("mnist-mini", tmp_path)  # an empty folder is as good as none
    assert {p.name for p in paths} == {"train.npz", "test.npz", "schema.toml", "LICENCE.txt"}
    assert Schema.load(tmp_path / "schema.toml") == datasets.schema("mnist-mini")
    data = load("mnist-mini")
    for part, name in ((data.train, "train.npz"), (data.test, "test.npz")):
        assert isinstance(part, datasets.Pictures)
        with np.load(tmp_path / name) as stored:
            assert np.array_equal(stored["images"], part.images)
            assert np.array_equal(stored["labels"], part.labels)
    assert "LeCun" in (tmp_path / "LICENCE.txt").read_text()


def test_write_spares_what_is_there(tmp_path: Path) -> None:
    mine, old = tmp_path / "mine.txt", tmp_path / "train.csv"
    mine.write_text("keep")
    old.write_text("old")
    with pytest.raises(ReleaseError, match="not empty"):
        datasets.write("adult", tmp_path)
    assert old.read_text() == "old"
    datasets.write("adult", tmp_path, force=True)
    assert mine.read_text() == "keep"
    assert old.read_text().startswith("age,workclass")
    with pytest.raises(ReleaseError, match="not a folder"):
        datasets.write("adult", mine)
    with pytest.raises(ReleaseError, match="Cannot write"):
        datasets.write("adult", mine / "below")


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(ReleaseError, match="disk full"):
        datasets.write("adult", tmp_path / "adult")
    assert not list(tmp_path.iterdir())
