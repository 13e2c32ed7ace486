"""The Inception network: layers as written down, widths as in the file, and words for files that will not do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers import image_rows, image_schema, table_schema

import limbeck as lk
from limbeck.evaluation.internal import _inception
from limbeck.features import Inception, features_of, load_inception
from limbeck.features.inception import LAYERS, PARTS, STEM, _largest, _means
from limbeck.scores import batteries

LEAST = 75
"""Pixels per side below which nothing is left of a picture at the end."""


def kernel(layer: str) -> tuple[int, int]:
    """Height and width of a layer's kernel in the original, by its name."""
    name = layer.rpartition(".")[2]
    if name in ("branch7x7_2", "branch7x7dbl_3", "branch7x7dbl_5", "branch7x7x3_2"):
        return 1, 7
    if name in ("branch7x7_3", "branch7x7dbl_2", "branch7x7dbl_4", "branch7x7x3_3"):
        return 7, 1
    if name[-1] in "ab" and name not in STEM:
        return (1, 3) if name.endswith("a") else (3, 1)
    if name == "branch5x5_2":
        return 5, 5
    threes = ("3x3", "3x3dbl_2", "3x3dbl_3", "3x3_2", "7x7x3_4")
    wide = layer in STEM and layer.endswith("3x3") or name.removeprefix("branch") in threes
    return (3, 3) if wide else (1, 1)


def narrow() -> dict[str, np.ndarray]:
    """Weights of a network of one channel per layer, and so four or six per block."""
    rng, arrays = np.random.default_rng(0), {}
    inputs = dict.fromkeys(STEM, 1) | {STEM[0]: 3}
    into = [1, 4, 4, 4, 6, 4, 4, 4, 4, 6, 6]
    for (block, layers), channels in zip(LAYERS.items(), into, strict=True):
        for layer in layers:
            first = layer.endswith(("1x1", "_1", "_pool")) or layer == "branch3x3"
            inputs[f"{block}.{layer}"] = channels if first else 1
    for layer, channels in inputs.items():
        made = (rng.normal(0.3, 0.2, (1, channels, *kernel(layer))), *rng.random((4, 1)))
        arrays |= {f"{layer}.{part}": array for part, array in zip(PARTS, made, strict=True)}
    return arrays


def test_a_file_gives_a_network_of_its_own_widths(tmp_path: Path) -> None:
    arrays = narrow()
    assert len(arrays) == 94 * 5  # as many layers as the original has
    np.savez(tmp_path / "weights.npz", **arrays)
    loaded = load_inception(tmp_path / "weights.npz", (8, 8, 1))
    small = Inception(loaded.weights, loaded.shape, LEAST)
    rows = np.random.default_rng(1).random((2, 64)).astype(np.float32)
    made = np.asarray(features_of(small, rows, 1))
    assert made.shape == (2, 6) and np.isfinite(made).all() and np.ptp(made, axis=0).max() > 0


def test_layers_and_pools_are_those_of_the_original() -> None:
    arrays = {name: a.astype(np.float32) for name, a in narrow().items() if STEM[0] in name}
    network = Inception({name: jax.numpy.asarray(a) for name, a in arrays.items()}, (5, 5, 3))
    x = np.random.default_rng(2).random((1, 5, 5, 3)).astype(np.float32)
    weight, scale, bias, mean, variance = (arrays[f"{STEM[0]}.{part}"] for part in PARTS)
    patch = (x[0, 2:5, 2:5] * weight[0].transpose(1, 2, 0)).sum()
    wanted = max((patch - mean[0]) / np.sqrt(variance[0] + 1e-3) * scale[0] + bias[0], 0)
    made = network._layer(STEM[0], jax.numpy.asarray(x), stride=2, margins="VALID")
    assert made.shape == (1, 2, 2, 1) and made[0, 1, 1, 0] == pytest.approx(wanted, rel=1e-4)
    corner, middle = x[0, :2, :2, 0], x[0, 1:4, 1:4, 0]
    means, largest = _means(jax.numpy.asarray(x)), _largest(jax.numpy.asarray(x))
    assert means[0, 0, 0, 0] == pytest.approx(corner.mean(), rel=1e-5)  # four numbers, not nine
    assert means[0, 2, 2, 0] == pytest.approx(middle.mean(), rel=1e-5)
    assert largest[0, 0, 0, 0] == corner.max() and _largest(
        jax.numpy.asarray(x), stride=2
    ).shape == (1, 2, 2, 3)


def test_evaluate_hands_the_network_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}
    internal = "limbeck.evaluation.internal"
    monkeypatch.setattr(f"{internal}.load_inception", lambda path, shape: (path.name, shape))
    monkeypatch.setattr(f"{internal}.battery", lambda *rows, **named: given.update(named) or ())
    rows, schema = image_rows(40), image_schema()
    method = lk.DPMERF(features=20, steps=2, batch=6, hidden=(4,))
    release = lk.distill(lk.read(rows, schema), method, lk.Budget(1.0), seed=0)
    lk.evaluate(release, rows, fid="weights.npz")
    assert given["fid"] == ("weights.npz", (8, 8, 1))
    table = replace(release, schema=table_schema())
    with pytest.raises(lk.LimbeckError, match="release is a table"):
        _inception(Path("weights.npz"), table)


def test_the_distance_is_one_more_score() -> None:
    sides = [
        batteries.EvaluatedRows.of(lk.read(image_rows(9, seed=s), image_schema())) for s in (0, 1)
    ]
    score = batteries._frechet("FID", lambda rows: rows[:, :3], *sides, chunk=4)
    assert score.values[0] > 0 and score.note == "9 released rows, 9 real ones"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "Cannot read"), (b"text", "no file of arrays"), ({}, "has no array")],
)
def test_files_that_will_not_do(tmp_path: Path, content: object, words: str) -> None:
    path = tmp_path / "weights.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, one=np.ones(1))
    with pytest.raises(lk.LimbeckError, match=words):
        load_inception(path, (8, 8, 1))
