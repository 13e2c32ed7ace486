"""KIP and DP-KIP: what they learn, what they refuse, and the papers' settings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import FEW, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.features import FullyConnectedNTK, Scattering, centred
from limbeck.methods import KERNELS, EmpiricalTangentKernel
from limbeck.methods.kip.kernel import InnerProducts
from limbeck.methods.kip.kip import Learned, _batch_loss, _moment_loss, moments_of
from limbeck.methods.source import Distilled
from limbeck.nets import LeNet, network_arrays
from limbeck.privacy import Measurement
from limbeck.run import Recipe, make_method
from limbeck.scores import ridge_accuracy

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*kip*.toml"))
NEVER = lk.Budget(math.inf)


def _shapes(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of 8 x 8 pictures that anyone can tell apart: a bar across, along, a blot."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    images = rng.integers(0, 60, (count, 8, 8, 1))
    for i, label in enumerate(labels):
        at = rng.integers(1, 5)
        where = [(slice(at, at + 2), slice(None)), (slice(None), slice(at, at + 2))]
        where.append((slice(at, at + 3), slice(at, at + 3)))
        images[i][where[label]] += 150
    return images.astype(np.uint8), labels


def _run(method: Any, rows: Any = None, budget: lk.Budget = NEVER) -> lk.Release:
    data = lk.read(rows if rows is not None else _shapes(300), image_schema())
    return lk.distill(data, method, budget, seed=3, non_private=not budget.private)


def _accuracy(release: lk.Release, **kernel: Any) -> float:
    images, labels = _shapes(300, seed=1)
    ridge = release.certificate["method"]["settings"]["ridge"]
    source = release.source
    targets = source.labels if source.targets is None else source.targets
    return ridge_accuracy(source.slots, targets, images, labels, ridge=ridge, classes=3, **kernel)


# ---- what they learn ----------------------------------------------------------------------------


@pytest.mark.parametrize("targets", ["fixed", "learned", "solved"])
def test_kip_learns_from_noise(targets: str) -> None:
    settings: dict[str, Any] = {"steps": 60, "batch": 60, "learning_rate": 0.08, "ridge": 1e-4}
    method = lk.KIP(per_class=2, start="noise", targets=targets, **settings)
    release = _run(method)
    assert _accuracy(release, kernel=FullyConnectedNTK()) > 0.85
    assert (release.source.targets is None) == (targets == "fixed")
    assert release.certificate["guarantee"]["epsilon"] == "infinity"
    assert not release.certificate["releasable"]


def test_kip_learns_through_moments_what_it_learns_from_all_rows() -> None:
    """Where features are finite, the loss over all rows depends on their moments alone."""
    features = Scattering(height=8, width=8)
    images, labels = _shapes(40)
    rows = (images / np.float32(255)).reshape(40, 64).astype(np.float32)
    kernel = InnerProducts(features)
    with jax.enable_x64(True):
        start = jax.random.normal(jax.random.key(0), (6, 64), jnp.float64)
        learned = Learned(start, jnp.asarray(centred(np.arange(6) % 3, 3), jnp.float64))
        moments = moments_of(features, rows, labels, 3)
        wanted = np.eye(3)[labels] - 1 / 3
        one = jax.jit(jax.value_and_grad(_batch_loss(kernel, 1e-3)))(learned, (rows, wanted))
        two = jax.jit(jax.value_and_grad(_moment_loss(kernel, 1e-3)))(learned, moments)
    assert float(one[0]) == pytest.approx(float(two[0]), rel=1e-4)
    assert np.allclose(one[1].rows, two[1].rows, rtol=1e-2, atol=1e-6)


def test_dp_kip_without_noise_learns_and_with_noise_learns_less() -> None:
    method = lk.DPKIP(per_class=2, epochs=15, batch=20, ridge=1e-4, learning_rate=0.02)
    exact = _run(method)
    assert _accuracy(exact, kernel=FullyConnectedNTK()) > 0.8
    noisy = _run(method, budget=lk.Budget(1.0))
    assert noisy.certificate["guarantee"]["epsilon"] == 1.0
    assert not np.allclose(noisy.source.slots, exact.source.slots)


def test_the_free_scaling_is_the_published_one_in_other_words() -> None:
    """Dividing by the clip and enlarging Adam's epsilon by it change nothing."""
    clip, few = 1e-3, {**FEW, "epochs": 1.0}
    free = lk.DPKIP(**few, scaling="free", adam_epsilon=1e-8 / clip)
    published = lk.DPKIP(**few, scaling="published", adam_epsilon=1e-8)
    one, two = (_run(m, budget=lk.Budget(1.0)) for m in (free, published))
    assert np.allclose(one.source.slots, two.source.slots, atol=1e-4)


def test_the_start_is_noise_and_sees_no_rows() -> None:
    """P1, P2: with a learning rate of next to nothing the release is the start."""
    method = lk.DPKIP(**FEW, learning_rate=1e-12, start_spread=0.5)
    one = _run(method, budget=lk.Budget(1.0))
    two = _run(method, rows=image_rows(40, seed=8), budget=lk.Budget(1.0))
    assert np.allclose(one.source.slots, two.source.slots, atol=1e-6)
    assert np.std(one.source.slots) == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize(
    ("start", "per_class", "asked"),
    [
        ("means", 3, ["class counts", "mean", "class means"]),
        ("prototypes", 1, ["class counts", "mean", "class means"]),
        ("prototypes", 3, ["class counts", "mean", "class means", "clusters/0", "prototypes"]),
    ],
)
def test_a_private_start_is_paid_for_and_no_two_rows_of_it_are_alike(
    start: str, per_class: int, asked: list[str]
) -> None:
    """With a learning rate of next to nothing the release is the start; the steps pay for the rest."""
    settings = {**FEW, "start": start, "per_class": per_class, "start_share": 0.9}
    method = lk.DPKIP(**settings, learning_rate=1e-12)
    phases: list[str] = []
    data = lk.read(_shapes(1000), image_schema())
    release = lk.distill(
        data, method, lk.Budget(1.0), seed=3, progress=lambda phase, done: phases.append(phase)
    )
    charges = {c["name"]: c for c in release.certificate["charges"]}
    assert set(asked) < set(charges) and "gradient" in charges
    assert all(c["noise_multiplier"] > 0 for c in charges.values())
    assert release.certificate["guarantee"]["epsilon"] == pytest.approx(1.0, rel=1e-2)
    assert set(release.measurements) == set(charges) - {"gradient", "column states"}
    rows = release.source.slots
    assert len(np.unique(rows.round(6), axis=0)) == len(rows) == 3 * per_class
    assert _accuracy(release, kernel=FullyConnectedNTK()) > 0.5  # chance is a third
    told = next(phase for phase in phases if "condition number" in phase)
    assert 1 <= float(told.split()[-1].rstrip(")")) < 1e8


def test_a_private_start_leaves_corrupted_numbers_to_noise() -> None:
    settings = {**FEW, "start": "means", "corrupted": 0.25, "learning_rate": 1e-12}
    one, two = (
        _run(lk.DPKIP(**settings), rows=rows, budget=lk.Budget(1.0)).source.slots
        for rows in (_shapes(300), image_rows(300, seed=8))
    )
    same = np.isclose(one, two, atol=1e-6).all(axis=0)
    assert same.sum() == round(0.25 * same.size)


@pytest.mark.parametrize("per_row", [False, True])
def test_corrupted_numbers_stay_as_drawn(per_row: bool) -> None:
    settings = {**FEW, "corrupted": 0.25, "corrupted_per_row": per_row}
    still = _run(lk.DPKIP(**settings, learning_rate=1e-12), budget=lk.Budget(1.0))
    moved = _run(lk.DPKIP(**settings, learning_rate=1.0), budget=lk.Budget(1.0))
    same = np.isclose(still.source.slots, moved.source.slots, atol=1e-6)
    assert same.mean() == pytest.approx(0.25, abs=0.02)
    assert per_row != (same == same[0]).all()


def test_labels_are_balanced_or_drawn() -> None:
    few = {**FEW, "per_class": 6}
    balanced, drawn = (
        _run(lk.DPKIP(**few, labels=kind), budget=lk.Budget(1.0)).source.labels
        for kind in ("balanced", "uniform")
    )
    assert np.bincount(balanced).tolist() == [6, 6, 6]
    assert len(drawn) == 18 and np.bincount(drawn, minlength=3).tolist() != [6, 6, 6]


def test_labels_in_proportion_pay_for_counts_and_leave_no_class_out() -> None:
    method = lk.DPKIP(**FEW | {"per_class": 6}, labels="shares")
    counts = Measurement(np.array([900.0, 90.0, -3.0]), 1.0, "discrete gaussian")
    labels = method._labels(table_schema(), {"class counts": counts}, jax.random.key(0))
    assert np.bincount(labels).tolist() == [15, 2, 1]
    planned = lk.plan(method, table_schema(), lk.Budget(1.0))
    assert [c.name for c in planned.charges] == ["class counts", "gradient"]


def test_adams_epsilon_follows_the_noise_unless_it_is_set() -> None:
    auto = lk.DPKIP(**FEW)
    assert auto._adam_epsilon(0.01) == pytest.approx(0.03)
    assert auto._adam_epsilon(0.0) > 0
    published = lk.DPKIP(**FEW | {"clip": 1e-4}, scaling="published")
    assert published._adam_epsilon(0.0) == pytest.approx(1e-4 * auto._adam_epsilon(0.0))
    assert lk.DPKIP(**FEW, adam_epsilon=1e-8)._adam_epsilon(0.01) == 1e-8


def test_class_weights_are_private_counts() -> None:
    method = lk.DPKIP(**FEW, weigh_classes=True)
    counts = Measurement(np.array([900.0, 90.0, -3.0]), 1.0, "discrete gaussian")
    weights = method._class_weights(table_schema(), {"class counts": counts})
    assert weights[0] < 0.5 < weights[1] < weights[2] <= 20
    planned = lk.plan(method, table_schema(), lk.Budget(1.0))
    assert [c.name for c in planned.charges] == ["class counts", "gradient"]


def test_tables_come_back_in_their_columns_with_decided_categories() -> None:
    data = lk.read(table_rows(200), table_schema())
    release = lk.distill(data, lk.DPKIP(**{**FEW, "per_class": 3}), lk.Budget(1.0), seed=1)
    assert isinstance(release.data, pd.DataFrame) and len(release.data) == 9
    assert release.data["ill"].value_counts().tolist() == [3, 3, 3]
    at = next(at for c, at in release.schema.blocks() if c.name == "town")
    soft = release.source.slots[:, at]
    assert np.allclose(soft.sum(axis=1), 1) and (soft >= 0).all()
    counts = release.data["town"].value_counts(dropna=False).to_numpy()
    assert abs(np.sort(counts) - np.sort(soft.sum(axis=0))[-len(counts) :]).max() <= 3


def test_decoded_classes_keep_the_shares_of_soft_categories() -> None:
    """Each row's likeliest category would leave one value of each column."""
    schema = table_schema()
    slots = np.tile(schema.expand(lk.read(table_rows(1), schema)._encoded().cells), (10, 1))
    at = {c.name: at for c, at in schema.blocks()}
    slots[:, at["smoker"]] = [0.7, 0.3]
    slots[:, at["town"]] = [0.55, 0.35, 0.1, 0.0]
    slots[:, at["age"].start + 1] = 0.2
    source = Distilled(slots=slots.astype(np.float32), labels=np.repeat([0, 1], 5))
    cells, _ = source.draw(schema, 10, seed=0)
    age, _, town, smoker = cells[:, :4].T
    for rows in (slice(0, 5), slice(5, 10)):
        assert np.isnan(age[rows]).sum() == 1
        assert np.bincount(town[rows].astype(int)).tolist() == [3, 1, 1]
        assert smoker[rows].sum() in (1, 2)


# ---- what they refuse ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge > 0"),
        ({"clip": 0.0}, "clip > 0"),
        ({"per_class": 0}, "per_class > 0"),
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
        release = _run(method, rows=rows)
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
    assert len(variants) in (8, 15)
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
