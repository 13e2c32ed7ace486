"""DP-NTK: what differs from the other mean embeddings."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TINY_TANGENT, image_rows, image_schema, table_schema

import limbeck as lk
from limbeck.methods.mean_embedding.heterogeneous import slot_parts
from limbeck.run import Recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("dp-ntk*.toml"))


def test_a_generator_learns_two_classes_apart() -> None:
    """One class bright above, one below; the third has no rows at all."""
    images, labels = image_rows(60)
    images[:] = 20
    for image, label in zip(images, labels, strict=True):
        half = slice(0, 4) if label else slice(4, 8)
        image[half] = 230
    method = lk.DPNTK(widths=(20,), steps=60, batch=24, hidden=(12,), code=2, learning_rate=0.05)
    data = lk.read((images, labels), image_schema())
    release = lk.distill(data, method, lk.Budget(float("inf")), seed=0, non_private=True, rows=60)
    made, kinds = release.data.images[..., 0].astype(float), np.asarray(release.data.labels)
    above, below = made[:, :4].mean(axis=(1, 2)), made[:, 4:].mean(axis=(1, 2))
    right = (above > below) == (kinds.astype(int) == 1)
    assert right.mean() > 0.9


def test_pictures_without_labels_are_one_class() -> None:
    schema = lk.Schema(dataset="faces", rows=60, columns=(lk.Image(height=8, width=8, channels=3),))
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3)).astype(np.uint8)
    settings = TINY_TANGENT | {"widths": (5, 4)}
    release = lk.distill(
        lk.read((images, None), schema), lk.DPNTK(**settings), lk.Budget(1.0), seed=0
    )
    assert release.data.images.shape == (60, 8, 8, 3)


def test_numbers_and_categories_may_be_apart() -> None:
    """As in the paper: the network sees numbers; indicators stand beside its gradients, each part of norm 1."""
    schema = table_schema()
    method = lk.DPNTK(widths=(5,), embedding="heterogeneous")
    phi, parts = method.feature_map(schema, 0), slot_parts(schema)
    rows = np.zeros((2, schema.slots), np.float32)
    rows[:, parts["numbers"]] = [[0.2], [0.9]]
    for column, at in schema.blocks():
        if isinstance(column, lk.Category):
            rows[:, at.start] = 1.0
    *network, (ones, codes) = phi(jnp.asarray(rows))
    square = sum((a**2).sum(axis=1) * (b**2).sum(axis=1) for a, b in network)
    assert np.allclose(square, 1, atol=1e-5) and np.allclose((codes**2).sum(axis=1), 1, atol=1e-6)
    question = method.embedding_of(schema)
    assert question.bound == pytest.approx(2**0.5) and question.blocks == phi.blocks
    bare = lk.Schema(dataset="d", columns=(lk.Category(name="c", values=("a", "b")),))
    assert method.embedding_of(bare).blocks == ((1, 2),) and method.embedding_of(bare).bound == 1.0
    assert method.embedding_of(image_schema()).bound == 1.0  # pixels are numbers


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(lk.LimbeckError, match="network to be one of dense, strip"):
        lk.DPNTK(network="deep")
    with pytest.raises(lk.LimbeckError, match="widths"):
        lk.DPNTK(widths=(5, 0))
    with pytest.raises(lk.LimbeckError, match="debias"):
        lk.DPNTK(debias=2.0)
    with pytest.raises(lk.LimbeckError, match="for tables"):
        lk.DPNTK(network="strip").questions(image_schema())
    wide = lk.DPNTK(network="strip", side=100)
    with pytest.raises(lk.LimbeckError, match="side"):
        wide.questions(table_schema())


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipes_are_methods_for_their_data(path: Path) -> None:
    for variant in tomllib.loads(path.read_text())["variants"]:
        method = Recipe.load(f"{path}#{variant}").method
        assert isinstance(method, lk.DPNTK)
        if variant in lk.datasets.names():
            asked = method.questions(lk.datasets.schema(variant))
            assert asked[1].question.measured()[0].coordinates > 1000
