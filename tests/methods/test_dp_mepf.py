"""DP-MEPF: moments of a public network's activations, paid for together, and a certificate that names the network."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_rows, image_schema, table_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.audits.small import SMALL
from limbeck.features import Activations
from limbeck.nets import ConvNet, ResNet18, network_arrays
from limbeck.privacy import Private
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "dp-mepf.toml"
TINY: dict[str, Any] = SMALL["dp-mepf"]
SHAPE = (8, 8, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network of another width and other classes than the method's own."""
    path = tmp_path / "public.npz"
    np.savez(path, **network_arrays(ConvNet(SHAPE, 7, width=6, key=jax.random.key(3))))
    return path


def test_the_certificate_names_the_network_as_public(file: Path, tmp_path: Path) -> None:
    method = lk.DPMEPF(**TINY, network=str(file))
    assert len(method.network_digest) == 64
    release = lk.distill(
        lk.read(image_rows(60), image_schema()), method, lk.Budget(1.0), seed=0,
        out=tmp_path / "out", check=False,
    )  # fmt: skip
    (named,) = release.certificate["public_files"]
    assert named["name"] == "public.npz" and named["sha256"] == method.network_digest
    assert any("public.npz" in line for line in release.certificate["assumptions"])
    assert lk.verify(tmp_path / "out").epsilon == pytest.approx(1.0)
    again = lk.redistill(lk.Release.load(tmp_path / "out"), {"square_weight": 3.0})
    assert np.array_equal(again.measurements["mean squares"], release.measurements["mean squares"])
    file.unlink()  # elsewhere it may not be at hand: the arithmetic holds, the questions stay open
    assert lk.verify(tmp_path / "out").open


def test_weights_are_those_of_the_file(file: Path) -> None:
    schema = image_schema()
    phi = lk.DPMEPF(**TINY, network=str(file)).feature_map(schema, 0)
    assert phi.network.filters[0].shape[-1] == 6 and phi.size == 6 * (4 + 4 + 1)
    assert lk.DPMEPF(**TINY).feature_map(schema, 0).size == 4 * (4 + 4 + 1)
    one, other = (lk.DPMEPF(**TINY).feature_map(schema, seed) for seed in (0, 1))
    assert not np.array_equal(one.network.filters[0], other.network.filters[0])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("kind", ["convnet", "resnet18"])
def test_moments_have_norm_one_whatever_the_picture(kind: str, power: int) -> None:
    method = lk.DPMEPF(filters=4, grid=3, architecture=kind)
    phi = method.feature_map(image_schema(), 0, power)
    assert isinstance(phi.network, ConvNet if kind == "convnet" else ResNet18)
    rows = np.random.default_rng(0).random((9, 64)).astype(np.float32)
    rows[0], rows[1] = 0.0, 1.0
    seen = phi(jnp.asarray(rows))
    assert seen.shape == (9, phi.size)
    assert np.asarray(jnp.linalg.norm(seen, axis=1)).max() <= 1 + 1e-5


def test_the_second_moment_is_the_mean_of_squares() -> None:
    phi = Activations(ConvNet(SHAPE, 3, width=4, key=jax.random.key(0)), SHAPE, 8, power=2)
    rows = jnp.asarray(np.random.default_rng(1).random((5, 64)), jnp.float32)
    layers = phi.layers(rows)
    wanted = [layer**2 / jnp.linalg.norm(layer**2, axis=1, keepdims=True) for layer in layers]
    assert np.allclose(phi(rows), jnp.concatenate(wanted, axis=1) / math.sqrt(3), atol=1e-6)


def test_both_moments_are_paid_for_and_counts_are_noisy() -> None:
    """The published program divides by exact counts of classes."""
    planned = lk.plan(lk.DPMEPF(**TINY), image_schema(), lk.Budget(1.0))
    assert [c.name for c in planned.charges if c.name != "states of columns"][-3:] == [
        "class counts", "mean embedding", "mean squares",
    ]  # fmt: skip
    assert all(c.sensitivity == 1.0 and c.noise > 0 for c in planned.charges[-3:])


def test_nothing_is_measured_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published program measures again, without noise, to choose among its generators."""
    asked: list[str] = []
    ask = Private.ask
    monkeypatch.setattr(Private, "ask", lambda self, *a: (asked.append(a[0]), ask(self, *a))[1])
    data = lk.read(image_rows(60), image_schema())
    lk.distill(data, lk.DPMEPF(**TINY), lk.Budget(1.0), seed=0, check=False)
    assert asked == ["class counts", "mean embedding", "mean squares"]


def test_the_generator_learns_what_classes_look_like() -> None:
    method = lk.DPMEPF(filters=12, steps=150, batch=40, code=3, hidden=(32,))
    learns_both_patterns(method, image_schema(), by=60)


def wrong() -> Iterator[tuple[str, dict[str, Any], Any, str]]:
    yield "table", {}, table_schema(), "for images"
    yield "share", {"square_share": 0.95}, image_schema(), "leave nothing"
    yield "architecture", {"architecture": "vgg"}, image_schema(), "architecture"
    yield "no file", {"network": "/nowhere.npz"}, image_schema(), "Cannot read the network"
    yield "shape", {"network": "FILE"}, image_schema(12), "does not hold"
    yield "kind", {"network": "FILE", "architecture": "resnet18"}, image_schema(), "does not hold"
    yield "digest", {"network": "FILE", "network_digest": "0"}, image_schema(), "is not the network"
    yield "text", {"network": "TEXT"}, image_schema(), "not a file of arrays"


@pytest.mark.parametrize(("settings", "schema", "words"), [w[1:] for w in wrong()],
                         ids=[w[0] for w in wrong()])  # fmt: skip
def test_what_is_refused(
    settings: dict[str, Any], schema: lk.Schema, words: str, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.npz").write_text("weights")
    given = {"FILE": str(file), "TEXT": str(tmp_path / "text.npz")}
    with pytest.raises(lk.LimbeckError, match=words):
        lk.plan(
            lk.DPMEPF(**TINY | {k: given.get(v, v) for k, v in settings.items()}),
            schema, lk.Budget(1.0),
        )  # fmt: skip


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        assert isinstance(method, lk.DPMEPF) and method.questions(lk.datasets.schema("mnist"))
