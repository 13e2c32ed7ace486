"""Files of data sets: read, checked and fetched as their entry says."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limbeck import datasets
from limbeck.datasets import registry as _registry
from limbeck.datasets.public import read
from limbeck.errors import DataError
from limbeck.schema import Schema

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


def idx_bytes(array: np.ndarray) -> bytes:
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
