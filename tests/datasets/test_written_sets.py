"""What `limbeck dataset` writes: rows, pictures and schema, or nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_datasets import load

from limbeck import datasets
from limbeck.errors import ReleaseError
from limbeck.schema import Schema

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
