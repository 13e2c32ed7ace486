"""Public data: what the registry promises is what is loaded, on every road and with every fault."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_source_files import idx_bytes

from limbeck import datasets
from limbeck.datasets import registry as _registry
from limbeck.errors import LimbeckError
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
            assert "md5:" + hashlib.md5(idx_bytes(array)).hexdigest() == source.unpacked[file]
