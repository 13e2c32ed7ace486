"""Measure once, distill freely: its parts one by one, and sets of other sizes for free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TINY_SET, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.evaluation import soft_labels_of
from limbeck.features import RandomConvNets, Scattering, Views, output_size, ridge_weights
from limbeck.methods.measure_once.findings import NETWORKS, PROTOTYPES, VIEWS, Findings
from limbeck.methods.measure_once.optimise_set import Canvas
from limbeck.methods.measure_once.prototypes import (
    Prototypes,
    coarse_basis,
    denoised_prototypes,
    match_histogram,
    wiener_filtered,
)
from limbeck.methods.measure_once.small_set import (
    OPTIMISED_ROWS,
    class_size_factor,
    teacher_accuracy,
)
from limbeck.methods.measure_once.start_rows import rows_from_prototypes, sharpened
from limbeck.methods.measure_once.teacher import train_teacher
from limbeck.scores import feature_rows, ridge_accuracy, ridge_predictions


def test_the_ridge_predictor_is_the_scored_one() -> None:
    rng = np.random.default_rng(0)
    phi, test = rng.standard_normal((6, 9)), rng.standard_normal((4, 9))
    labels = np.array([0, 0, 1, 1, 2, 2])
    weights = ridge_weights(jnp.asarray(phi), jax.nn.one_hot(labels, 3), 1e-3)
    assert np.allclose(test @ weights, ridge_predictions(phi, labels, test), atol=1e-4)


def test_a_teacher_without_noise_separates_what_is_separable() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    phi = np.eye(3)[labels] + 0.1 * rng.standard_normal((300, 3))

    def gradient(weights: np.ndarray) -> np.ndarray:
        logits = phi @ weights
        share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return phi.T @ (share - np.eye(3)[labels])

    made = train_teacher(
        gradient, size=3, classes=3, rows=300, noise=0.0, steps=30, learning_rate=5.0
    )
    assert ((phi @ made).argmax(axis=1) == labels).mean() > 0.99
    assert np.allclose(made.sum(axis=1), 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_low_frequencies_are_an_orthonormal_basis(channels: int) -> None:
    basis = coarse_basis(image_schema(16, channels))
    assert basis.shape[0] == 256 * channels
    assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
    assert np.array_equal(coarse_basis(table_schema()), np.eye(table_schema().slots))


def test_denoising_removes_noise_and_keeps_pictures() -> None:
    schema, rng = image_schema(16), np.random.default_rng(0)
    basis = coarse_basis(schema)
    truth = rng.standard_normal((30, basis.shape[1])) @ basis.T
    noisy = truth + 0.5 * rng.standard_normal(truth.shape)
    found = wiener_filtered(noisy, np.full(30, 0.25), schema)
    assert ((found - truth) ** 2).sum() < 0.55 * ((noisy - truth) ** 2).sum()
    assert np.allclose(wiener_filtered(truth, np.full(30, 1e-12), schema), truth, atol=1e-6)


def test_prototypes_are_read_from_exact_sums() -> None:
    schema, rng = image_schema(8), np.random.default_rng(0)
    rows, means = rng.random((3, 2, 64)), rng.random((3, 64))
    sizes = np.array([[40.0, 60.0]] * 3)
    shares = np.full((3, 2, 16), 1 / 16)
    radius = 2.0
    parts = [rows - means[:, None], np.full((3, 2, 1), radius * 0.15), shares * radius * 0.25]
    sums = np.concatenate(parts, axis=2) * sizes[..., None]
    found = denoised_prototypes(schema, means, sums.reshape(6, -1), radius, 0.0)
    assert np.allclose(found.rows, rows, atol=1e-6)
    assert np.allclose(found.sizes, sizes) and np.allclose(found.histograms, shares)


def test_values_take_a_histogram_and_keep_their_order() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(500)
    shares = np.array([0.5, 0, 0, 0.5])
    moved = match_histogram(values, shares)
    assert np.array_equal(np.argsort(moved), np.argsort(values))
    assert abs((moved < 0.25).mean() - 0.5) < 0.01 and abs((moved > 0.75).mean() - 0.5) < 0.01
    assert np.array_equal(match_histogram(values, np.full(4, -1.0)), values)


@pytest.mark.parametrize("per_class", [1, 2, 4, 9])
def test_any_number_of_starts_from_the_same_prototypes(per_class: int) -> None:
    schema, rng = image_schema(8), np.random.default_rng(0)
    given = Prototypes(rng.random((3, 4, 64)), rng.random((3, 4)) * 100, np.full((3, 4, 16), 0.1))
    start = rows_from_prototypes(schema, given, per_class, rng)
    assert start.shape == (3, per_class, 64)
    assert start.min() >= 0 and start.max() <= 1
    if per_class >= 4:
        biggest = given.sizes[0].argmax()
        assert np.array_equal(start[0, 0], given.rows[0, biggest])
    if per_class == 1:
        mean = (given.rows * given.sizes[..., None]).sum(axis=1) / given.sizes.sum(axis=1)[:, None]
        assert np.allclose(start[:, 0], mean)
    assert sharpened(given).rows.shape == given.rows.shape


def test_changes_are_blurred_without_losing_any() -> None:
    schema = image_schema(16)
    dot = np.zeros((1, 1, 256), np.float32)
    dot[..., 8 * 16 + 8] = 1.0
    blurred = np.asarray(Canvas(schema, 1.0).blurred(jnp.asarray(dot)))
    assert blurred.max() < 0.2 and abs(blurred.sum() - 1) < 1e-3
    assert np.array_equal(Canvas(schema, 0.0).blurred(jnp.asarray(dot)), dot)


def test_random_networks_have_norm_one_and_see_one_row() -> None:
    phi = RandomConvNets(shape=(12, 12, 3), networks=3, width=5, key=jax.random.key(0))
    rows = jax.random.uniform(jax.random.key(1), (6, 432))
    found = phi(rows)
    assert found.shape == (6, phi.size)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.allclose(phi(rows[2:3])[0], found[2], atol=1e-5)
    assert np.isfinite(phi(jnp.zeros((1, 432)))).all()


def test_prototypes_are_as_many_as_noise_allows(tmp_path: Path) -> None:
    """Noise and noisy counts decide, so a loose budget buys more of them."""
    counts = []
    for epsilon in (0.5, float("inf")):
        made = lk.distill(
            lk.read(image_rows(200), image_schema()),
            lk.MeasureOnce(**TINY_SET),
            lk.Budget(epsilon),
            seed=1,
            non_private=True,
            ledger=lk.Ledger(tmp_path / f"{epsilon}.sqlite"),
        )
        counts.append(len(made.measurements[PROTOTYPES]) // 3)
    assert counts == [1, 2]


def test_pictures_and_classes_of_any_kind(tmp_path: Path) -> None:
    """Oblong, three channels, seven classes, one of them rare and one empty; 2,000 rows."""
    names = tuple("abcdefg")
    columns = (
        lk.Image(height=8, width=12, channels=3),
        lk.Category(name="label", values=names, label=True),
    )
    schema = lk.Schema(dataset="bands", rows=2000, columns=columns)
    rng = np.random.default_rng(0)
    labels = rng.choice(6, 2000, p=[0.6, 0.2, 0.1, 0.06, 0.03, 0.01])
    images = rng.integers(0, 60, (2000, 8, 12, 3))
    for row, label in enumerate(labels):  # A bright band where the class has it.
        images[row, :, 2 * label : 2 * label + 2, label % 3] += 190
    pictures = images.astype(np.uint8)
    made = lk.distill(
        lk.read((pictures, np.array(names)[labels]), schema),
        lk.MeasureOnce(per_class=3, views=3, network_width=4, teacher_steps=20, steps=10),
        lk.Budget(2.0, 5e-5),
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
        seed=0,
    )
    assert made.data.images.shape == (84, 8, 12, 3) and made.source.stored.shape == (21, 288)
    assert np.bincount(made.source.labels).tolist() == [12] * 7
    assert np.isfinite(made.source.slots).all() and np.ptp(made.source.slots) <= 1
    phi = Scattering(height=8, width=12, channels=3, normalisation="group")
    learned, asked = (
        feature_rows(phi, slots)
        for slots in (made.source.slots, (pictures / np.float32(255)).reshape(2000, -1))
    )
    assert ridge_accuracy(learned, made.source.labels, asked, labels) > 0.9


@pytest.mark.parametrize(
    ("shape", "settings", "views", "tiles"),
    [
        ((8, 12, 3), {}, 20, 2),
        ((8, 12, 1), {}, 0, 1),
        ((8, 12, 3), {"goal": "ridge"}, 0, 1),
        ((8, 12, 3), {"views": 0}, 0, 1),
        ((8, 12, 1), {"views": 4}, 4, 2),
        ((8, 12, 3), {"views": 4, "tiles": 1}, 4, 1),
    ],
)
def test_coloured_images_are_measured_in_views_and_stored_four_in_one(
    shape: tuple[int, int, int], settings: dict[str, Any], views: int, tiles: int
) -> None:
    image = lk.Image(height=shape[0], width=shape[1], channels=shape[2])
    label = lk.Category(name="label", values=("a", "b"), label=True)
    schema = lk.Schema(dataset="d", columns=(image, label))
    method = lk.MeasureOnce(**settings)
    asked = {one.question.name: one.question for one in method.questions(schema)}
    assert (VIEWS in asked) == (views > 0)
    assert (NETWORKS in asked) == (views == 0 and method.goal != "ridge")
    if views:
        assert asked[VIEWS].size == views * output_size(shape, method.network_width)
    assert method._tiles(schema) == tiles


def test_another_size_is_free(tmp_path: Path) -> None:
    data = lk.read(image_rows(60), image_schema())
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    lk.distill(data, lk.MeasureOnce(**TINY_SET), lk.Budget(1.0), out=tmp_path / "a", ledger=book)
    spent = book.accounts()[0].spent
    made = lk.redistill(lk.Release.load(tmp_path / "a"), {"per_class": 5}, out=tmp_path / "b")
    assert len(made.data.images) == 15 and book.accounts()[0].spent == spent
    assert lk.verify(tmp_path / "a").epsilon == lk.verify(tmp_path / "b").epsilon
    assert made.source.slots.shape == (15, 64)
    packed = lk.redistill(made, {"tiles": 2}).source  # what was measured are moments, not views
    assert packed.slots.shape == (60, 64) and packed.stored.shape == (15, 64)
    again = lk.redistill(lk.Release.load(tmp_path / "b"), {"per_class": 5})
    assert np.array_equal(again.source.slots, made.source.slots)
    for settings in ({"goal": "ridge"}, {"teacher_steps": 9}, {"networks": 3}):
        with pytest.raises(lk.LimbeckError, match="measure something else"):
            lk.redistill(made, settings)


def banded_rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    """A bright band where the class has it: easy for a teacher to know."""
    images, labels = image_rows(count)[0], np.arange(count) % 3
    images[np.arange(count), 2 * labels] = 255
    return images, labels


def test_soft_labels_are_free_and_as_soft_as_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limbeck.scores.batteries.EPOCHS", 60)
    data = lk.read(banded_rows(300), image_schema())
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    method = lk.MeasureOnce(**TINY_SET | {"teacher_steps": 30}, softness=0.0)
    hard = lk.distill(
        data, method, lk.Budget(float("inf")), non_private=True, out=tmp_path / "a", ledger=book
    )
    assert soft_labels_of(hard) is None and lk.MeasureOnce().softness > 0
    made = lk.redistill(lk.Release.load(tmp_path / "a"), {"softness": 0.3}, out=tmp_path / "b")
    soft = soft_labels_of(lk.Release.load(tmp_path / "b"))
    assert soft is not None and np.array_equal(soft, made.source.soft)
    assert np.array_equal(made.source.slots, hard.source.slots)
    own, each = soft[np.arange(len(soft)), made.source.labels], len(soft) // 3
    assert (
        np.allclose(soft.sum(axis=1), 1, atol=1e-5)
        and abs(own.mean() - 1 + 0.3 * class_size_factor(each)) < 1e-3
    )
    assert (soft.argmax(axis=1) == made.source.labels).all()
    # Networks are taught them, and learn wrong things from wrong ones; kernel regression is not.
    wrong = replace(made.source, soft=np.eye(3, dtype=np.float32)[(made.source.labels + 1) % 3])
    shown = lk.read((made.data.images, made.data.labels), made.schema)
    right, misled = (
        {s.name: s for s in lk.evaluate(r, shown, full=True, seeds=1).scores}
        for r in (made, replace(made, source=wrong))
    )
    assert right["ConvNet"].values == (1.0,) and misled["ConvNet"].values == (0.0,)
    assert "soft labels" in right["ConvNet"].note
    assert right["kernel ridge, FC-NTK"] == misled["kernel ridge, FC-NTK"]
    with pytest.raises(lk.LimbeckError, match="^Expected softness < 0.6667"):
        lk.redistill(made, {"softness": 0.7})


def test_of_many_rows_some_are_copies_of_the_others(tmp_path: Path) -> None:
    made = lk.distill(
        lk.read(image_rows(300), image_schema()),
        lk.MeasureOnce(**TINY_SET),
        lk.Budget(1.0),
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
        seed=0,
    )
    sets, phases = {}, {}
    for each in (2 * OPTIMISED_ROWS - 1, 2 * OPTIMISED_ROWS):
        seen = phases[each] = set()
        sets[each] = lk.redistill(
            made, {"per_class": each}, progress=lambda phase, done, seen=seen: seen.add(phase)
        )
    assert list(phases.values()) == [{"distilling"}, {"distilling", "copying"}]
    many = sets[2 * OPTIMISED_ROWS]
    rows = many.source.slots.reshape(3, 2, OPTIMISED_ROWS, -1)
    apart = np.abs(rows[:, 1] - rows[:, 0]).mean()
    assert 0 < apart < np.abs(rows[:, 1] - np.roll(rows[:, 0], 1, axis=1)).mean()


def test_tables_have_hard_labels_only() -> None:
    budget = lk.Budget(float("inf"))
    data = lk.read(table_rows(300), table_schema())
    made = lk.distill(data, lk.MeasureOnce(**TINY_SET), budget, non_private=True, check=False)
    assert made.source.soft is None


def test_what_a_teacher_knows_is_counted_by_the_size_of_clusters() -> None:
    rows = np.eye(4)[[[0, 1], [0, 2]]]
    prototypes = Prototypes(rows, np.array([[10.0, 20], [30, 40]]), np.zeros((2, 2, 16)))
    teacher = np.array([[1.0, 0], [1, 0], [0, 1], [0, 0]])
    findings = Findings(features=eqx.nn.Identity(), teacher=teacher)
    assert teacher_accuracy(findings, prototypes) == pytest.approx(0.7)


@pytest.mark.parametrize("seen", [True, False])
def test_sets_that_follow_views_begin_apart_and_take_more_updates(seen: bool) -> None:
    schema = image_schema()
    prototypes = Prototypes(
        np.full((3, 1, 64), 0.5), np.full((3, 1), 20.0), np.ones((3, 1, 16)) / 16
    )
    views = Views(shape=(8, 8, 1), views=2, width=4, key=jax.random.key(0)) if seen else None
    findings = Findings(
        features=eqx.nn.Identity(),
        teacher=np.ones((64, 3)),
        prototypes=prototypes,
        views=views,
        view_means=np.zeros((2, 3, 4), np.float32) if seen else None,
    )
    small = lk.MeasureOnce(steps=7, per_class=2)._small_set(schema)
    start = small.start(schema, findings, np.random.default_rng(0))
    assert start.steps == (14 if seen else 7)
    apart = np.abs(start.rows[0, 0] - start.rows[1, 0]).mean()  # of one and the same prototype
    assert (apart > 0.05) if seen else (apart == 0)
    assert start.rows.min() >= 0 and start.rows.max() <= 1


@pytest.mark.parametrize(("goal", "epsilon"), [("ridge", 1.0), ("any", 0.01)])
def test_labels_stay_hard_for_ridge_regression_and_by_a_teacher_that_knows_nothing(
    goal: str, epsilon: float, tmp_path: Path
) -> None:
    made = lk.distill(
        lk.read(banded_rows(300), image_schema()),
        lk.MeasureOnce(**TINY_SET | {"teacher_steps": 30}, goal=goal),
        lk.Budget(epsilon),
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
        seed=0,
    )
    assert soft_labels_of(made) is None


def test_what_cannot_be_is_said_before_anything_is_spent() -> None:
    method, budget = lk.MeasureOnce(**TINY_SET), lk.Budget(1.0)
    plain = lk.Schema(dataset="d", rows=10, columns=(lk.Numeric(name="x", min=0, max=1),))
    with pytest.raises(lk.LimbeckError, match="needs a label"):
        lk.plan(method, plain, budget)
    with pytest.raises(lk.LimbeckError, match="divisible by 4"):
        lk.plan(method, image_schema(9), budget)
    for wrong in (
        {"goal": "all"},
        {"per_class": 0},
        {"teacher_share": 1.5},
        {"proximity": -1.0},
        {"softness": -0.1},
    ):
        with pytest.raises(lk.LimbeckError, match=next(iter(wrong))):
            lk.MeasureOnce(**wrong)
    data = lk.read(image_rows(10), image_schema())
    with pytest.raises(lk.LimbeckError, match="fixed size"):
        lk.distill(data, method, budget, rows=7)
