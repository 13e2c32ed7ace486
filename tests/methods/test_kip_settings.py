"""Settings of KIP and DP-KIP: what is refused, what is automatic, networks from files, and recipes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import FEW, image_rows, image_schema, table_schema
from test_kip import NEVER, distilled

import limbeck as lk
from limbeck.methods import KERNELS, EmpiricalTangentKernel
from limbeck.methods.kip.private_start import PrivateStart
from limbeck.nets import LeNet, network_arrays
from limbeck.run import Recipe, make_method

# ---- what they refuse ---------------------------------------------------------------------------


RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*kip*.toml"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge > 0"),
        ({"clip": 0.0}, "clip > 0"),
        ({"per_class": 0}, "per_class > 0"),
        ({"per_class": "all"}, "per_class to be a number or 'auto'"),
        ({"corrupted": 1.0}, "corrupted < 1"),
        ({"batch_rate": 1.5}, "batch_rate"),
        ({"batch": 0}, "batch > 0"),
        ({"batch": "all"}, "batch to be a number or 'auto'"),
        ({"batch_rate": 0.0}, "0 < batch_rate"),
        ({"kernel": "rbf"}, "kernel to be one of fc-ntk, .* got 'rbf'"),
        ({"kernel": 3}, "kernel to be one of fc-ntk, .* got 3"),
        ({"kernel": {"name": "rbf"}}, "kernel to be one of"),
        ({"optimiser": "lion"}, "optimiser to be one of"),
        ({"start": "rows"}, "start to be one of auto, noise, means"),
        ({"start_share": 1.0}, "start_share"),
        ({"start_share": "all"}, "start_share to be a number or .auto."),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"epochs": "many"}, "epochs to be a number or .auto."),
        (
            {"kernel": {"name": "scattering", "normalisation": "batch"}},
            "normalisation to be one of",
        ),
        ({"mechanism": "features"}, "no finite features"),
        (
            {"kernel": {"name": "scattering", "depth": 2}},
            "kernel scattering has no setting 'depth'. It has: normalisation, unit_norm",
        ),
        ({"kernel": {"network": "weights.npz"}}, "kernel fc-ntk has no setting 'network'"),
        ({"kernel": {"depth": 0}}, "depth > 0"),
        ({"depth": 2}, "dp-kip has no setting 'depth'"),
        (
            {"kernel": {"name": "perceptual", "network": "/nowhere.npz"}},
            "Cannot read the network",
        ),
        ({"spread": (0.0,)}, "spread"),
        ({"start_spread": -1.0}, "0 < start_spread"),
        ({"start_spread": 0.0}, "0 < start_spread"),
        ({"start_spread": 1e300}, "start_spread <= 1000"),
        ({"clip": 1e-40}, "clip >= 1e-12"),
        ({"clip": math.nan}, "clip > 0"),
        ({"ridge": math.inf}, "ridge > 0"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.DPKIP.from_settings(settings)


def test_a_kernel_is_named_or_described_by_a_table_and_comes_back_as_one() -> None:
    for name, kind in KERNELS.items():
        method = lk.DPKIP.from_settings({"kernel": name})
        assert method.kernel == kind()
        assert method.settings()["kernel"]["name"] == name
        assert lk.DPKIP.from_settings(method.settings()) == method
    table = {"name": "scattering", "normalisation": "position"}
    method = lk.DPKIP.from_settings({"kernel": table})
    assert method.settings()["kernel"] == {**table, "unit_norm": False}
    with pytest.raises(lk.LimbeckError, match="kernel to be an object"):
        lk.DPKIP(kernel="scattering")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"kernel.depth": 2}, {"name": "fc-ntk", "depth": 2}),
        ({"kernel": {"name": "fc-ntk", "depth": 3}, "kernel.depth": 2}, {"depth": 2}),
        ({"kernel.unit_norm": True, "kernel": "scattering"}, {"unit_norm": True}),
        ({"kernel": "conv-ntk", "kernel.blocks": 2}, {"name": "conv-ntk", "blocks": 2}),
    ],
    ids=str,
)
def test_single_settings_of_a_kernel_are_named_with_a_dot(
    settings: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert wanted.items() <= make_method("dp-kip", settings).settings()["kernel"].items()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel.depth": "two"}, "dp-kip: kernel: expected depth to be a whole number; got 'two'"),
        ({"kernel": "scattering", "kernel.unit_norm": 1}, "unit_norm to be true or false"),
        ({"ridge.size": 2}, "expected ridge to be a number"),
        ({"start_spread": "wide"}, 'start_spread to be a number or "auto"; got .wide.'),
        ({"centre": 0.5}, 'centre to be a list of numbers or "auto"; got 0.5'),
    ],
    ids=str,
)
def test_settings_of_another_kind_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        make_method("dp-kip", settings)


def test_automatic_settings_are_those_of_the_kind_of_data() -> None:
    method = make_method("dp-kip", {"start_spread": "auto", "centre": "auto", "batch_rate": "auto"})
    assert method == lk.DPKIP()
    assert (
        lk.DPKIP(batch=10).rate(image_schema())
        == 0.1
        == lk.DPKIP(batch_rate=0.1).rate(image_schema())
    )
    assert lk.KIP().view(image_schema()).centre[0] == 0
    assert lk.KIP().view(table_schema()).centre[0] == 0.5
    assert lk.KIP(centre=(0.0,)).view(table_schema()).centre[0] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge > 0"),
        ({"steps": 0}, "steps > 0"),
        ({"batch": 0}, "batch > 0"),
        ({"epochs": -1.0}, "epochs > 0"),
        ({"start": "zeros"}, "start to be one of"),
        ({"targets": "soft"}, "targets to be one of"),
        ({"augment": -1}, "augment >= 0"),
    ],
    ids=str,
)
def test_bad_settings_of_kip_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.KIP(**settings)


def _oblong(height: int, width: int, channels: int = 1) -> lk.Schema:
    image = lk.Image(height=height, width=width, channels=channels)
    return replace(image_schema(), columns=(image, image_schema().columns[1]))


@pytest.mark.parametrize("shape", [(8, 12), (4, 20), (7, 7), (5, 14), (1, 1), (16, 12, 3)], ids=str)
@pytest.mark.parametrize("kernel", ["fc-ntk", "conv-ntk", "e-ntk", "scattering", "perceptual"])
def test_oblong_and_odd_images_are_taken_or_refused_by_the_plan(
    kernel: str, shape: tuple[int, ...]
) -> None:
    """Whatever the plan accepts, the kernel can be applied to: no run fails halfway."""
    schema = _oblong(*shape)
    halvings = {"kernel.blocks": 2} if kernel == "conv-ntk" else {}
    method = make_method("dp-kip", FEW | {"kernel": kernel} | halvings)
    assert isinstance(method, lk.DPKIP)
    try:
        method.questions(schema)  # all of a plan but its calibration
    except lk.LimbeckError as error:
        assert any(str(side) in str(error) for side in shape)
        return
    rows = jax.ShapeDtypeStruct((2, schema.slots), jnp.float32)
    assert jax.eval_shape(method.kernel.function(schema, 0), rows, rows).shape == (2, 2)


@pytest.mark.parametrize(
    ("settings", "schema", "message"),
    [
        ({"kernel": "scattering"}, _oblong(8, 10), "divisible by 4"),
        ({"per_class": 50}, image_schema(), "more than the 100"),
        ({"batch": 101}, image_schema(), "batch of 101 is more"),
        ({"corrupted": 0.999}, image_schema(), "leaves none of 64 numbers"),
        ({"epochs": 1e9}, image_schema(), "choose fewer"),
        ({"kernel": "scattering"}, image_schema(size=10), "divisible by 4"),
        ({"kernel": "conv-ntk"}, image_schema(size=7), "cannot be halved"),
        ({"kernel": "e-ntk"}, image_schema(), "12 x 12"),
        ({"kernel": "scattering"}, table_schema(), "for images"),
        ({"centre": (0.1, 0.2)}, image_schema(channels=3), "per channel"),
        ({}, replace(image_schema(), rows=None), "declare an approximate number"),
        ({}, table_schema(columns=table_schema().columns[:-1]), "declares no label"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_the_schema_are_refused_by_the_plan(
    settings: dict[str, Any], schema: lk.Schema, message: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.plan(lk.DPKIP.from_settings({**FEW, **settings}), schema, lk.Budget(1.0))


@pytest.mark.parametrize(
    ("schema", "start", "rows"),
    [
        (image_schema(), "prototypes", 10),
        (replace(table_schema(), rows=700), "moments", 100),  # 100 x 3 classes x root of 5 columns
        (replace(table_schema(), rows=650), "means", 10),
        (replace(table_schema(), rows=None), "means", 10),
    ],
)
def test_start_and_number_of_learned_rows_follow_from_the_schema(
    schema: lk.Schema, start: str, rows: int
) -> None:
    made = PrivateStart.of("auto", schema, per_class="auto", share=0.5)
    assert (made.kind, made.per_class) == (start, rows)
    assert lk.DPKIP().rows_of_class(schema) == rows and lk.KIP().rows_of_class(schema) == 10
    assert lk.DPKIP(per_class=7).rows_of_class(schema) == 7
    assert lk.DPKIP(start="means").rows_of_class(schema) == 10


@pytest.mark.parametrize("kernel", ["fc-ntk", "scattering"])
def test_more_rows_to_learn_than_declared_are_refused_by_kip(kernel: str) -> None:
    with pytest.raises(lk.LimbeckError, match="more than the 100"):
        lk.plan(lk.KIP(per_class=34, kernel=KERNELS[kernel]()), image_schema(), NEVER)


def test_kip_is_refused_at_any_finite_epsilon() -> None:
    with pytest.raises(lk.LimbeckError, match="non_private"):
        lk.plan(lk.KIP(), image_schema(), lk.Budget(100.0))
    with pytest.raises(lk.LimbeckError, match="non_private"):
        lk.distill(lk.read(image_rows(9), image_schema()), lk.KIP(per_class=1), NEVER)


def test_kip_survives_absent_classes_and_strange_rows(tmp_path: Path) -> None:
    images, labels = image_rows(30)
    strange = images.astype(np.float64)
    strange[0] = np.nan
    for rows in ((strange, np.zeros_like(labels)), (images[:0], labels[:0])):
        method = lk.KIP(per_class=2, steps=2, batch=9, augment=1)
        release = distilled(method, rows=rows, check=False)
        assert np.isfinite(release.source.slots).all()


# ---- networks from files, and recipes -----------------------------------------------------------


def test_a_network_from_a_file_is_recorded(tmp_path: Path) -> None:
    network = LeNet(shape=(12, 12, 1), classes=3, key=jax.random.key(5))
    file = tmp_path / "weights.npz"
    np.savez(file, **network_arrays(network))
    method = lk.KIP(kernel=EmpiricalTangentKernel(network=str(file)))
    settings = method.settings()
    assert len(settings["kernel"]["network_digest"]) == 64
    assert lk.KIP.from_settings(settings) == method
    features = method.kernel.features(image_schema(size=12), seed=1)
    kept, wanted = network_arrays(features.network), network_arrays(network)
    assert all(np.array_equal(kept[name], wanted[name]) for name in wanted)
    assert "is public" in method.assumptions()[0] and not lk.KIP().assumptions()
    np.savez(file, other=np.zeros(3))
    with pytest.raises(lk.LimbeckError, match="not the network"):
        lk.KIP.from_settings(settings)


@pytest.mark.parametrize("content", [b"", b"PK nothing", np.zeros(3)], ids=["empty", "cut", "npy"])
def test_a_network_file_that_is_none_is_refused(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "weights.npz"
    with file.open("wb") as stream:
        np.save(stream, content) if isinstance(content, np.ndarray) else stream.write(content)
    method = lk.DPKIP(**FEW, kernel=EmpiricalTangentKernel(network=str(file)))
    with pytest.raises(lk.LimbeckError, match="not a file of arrays"):
        lk.plan(method, image_schema(size=12), lk.Budget(1.0))


def test_dp_kip_runs_with_the_tangent_features_of_a_network() -> None:
    rows = image_rows(60, size=12)
    method = lk.DPKIP(**FEW, kernel=EmpiricalTangentKernel(), ridge=1e-3)
    release = lk.distill(lk.read(rows, image_schema(size=12)), method, lk.Budget(1.0), seed=0)
    assert np.isfinite(release.source.slots).all()


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.name)
def test_recipes_are_methods(path: Path) -> None:
    import tomllib

    variants = tomllib.loads(path.read_text())["variants"]
    assert len(variants) == {"kip-presets.toml": 3, "dp-kip-tables.toml": 8}.get(path.name, 15)
    for name in variants:
        recipe = Recipe.load(f"{path}#{name}")
        assert recipe.settings_source.endswith(f"({name})")
        assert bool(recipe.unpaid) == (recipe.method.centre != "auto")
        if isinstance(recipe.method, lk.DPKIP):
            assert recipe.method.scaling == "published" and recipe.method.adam_epsilon == 1e-8
            assert recipe.method.start_spread == 1.0 and recipe.method.start == "noise"
            assert not recipe.method.decay and recipe.method.domain == "free"


def test_a_recipe_of_variants_needs_one_to_be_named() -> None:
    path = next(p for p in RECIPES if "tables" in p.name)
    for wrong in (str(path), f"{path}#nowhere"):
        with pytest.raises(lk.LimbeckError, match="isolet"):
            Recipe.load(wrong)
