"""KIP and DP-KIP: what they learn, what they refuse, and the papers' settings."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import FEW, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.features import FullyConnectedNTK, Scattering, centred
from limbeck.methods.kip.kernel import InnerProducts
from limbeck.methods.kip.kip import Learned, _batch_loss, _moment_loss, moments_of
from limbeck.methods.source import Distilled
from limbeck.privacy import Measurement
from limbeck.scores import ridge_accuracy

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


def distilled(method: Any, rows: Any = None, budget: lk.Budget = NEVER, **told: Any) -> lk.Release:
    data = lk.read(rows if rows is not None else _shapes(300), image_schema())
    return lk.distill(data, method, budget, seed=3, non_private=not budget.private, **told)


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
    release = distilled(method)
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
    exact = distilled(method)
    assert _accuracy(exact, kernel=FullyConnectedNTK()) > 0.8
    noisy = distilled(method, budget=lk.Budget(1.0))
    assert noisy.certificate["guarantee"]["epsilon"] == 1.0
    assert not np.allclose(noisy.source.slots, exact.source.slots)


def test_the_free_scaling_is_the_published_one_in_other_words() -> None:
    """Dividing by the clip and enlarging Adam's epsilon by it change nothing."""
    clip, few = 1e-3, {**FEW, "epochs": 1.0}
    free = lk.DPKIP(**few, scaling="free", adam_epsilon=1e-8 / clip)
    published = lk.DPKIP(**few, scaling="published", adam_epsilon=1e-8)
    one, two = (distilled(m, budget=lk.Budget(1.0)) for m in (free, published))
    assert np.allclose(one.source.slots, two.source.slots, atol=1e-4)


def test_the_start_is_noise_and_sees_no_rows() -> None:
    """P1, P2: with a learning rate of next to nothing the release is the start."""
    method = lk.DPKIP(**FEW, learning_rate=1e-12, start_spread=0.5)
    one = distilled(method, budget=lk.Budget(1.0))
    two = distilled(method, rows=image_rows(40, seed=8), budget=lk.Budget(1.0))
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
        distilled(lk.DPKIP(**settings), rows=rows, budget=lk.Budget(1.0)).source.slots
        for rows in (_shapes(300), image_rows(300, seed=8))
    )
    same = np.isclose(one, two, atol=1e-6).all(axis=0)
    assert same.sum() == round(0.25 * same.size)


@pytest.mark.parametrize("per_row", [False, True])
def test_corrupted_numbers_stay_as_drawn(per_row: bool) -> None:
    settings = {**FEW, "corrupted": 0.25, "corrupted_per_row": per_row}
    still = distilled(lk.DPKIP(**settings, learning_rate=1e-12), budget=lk.Budget(1.0))
    moved = distilled(lk.DPKIP(**settings, learning_rate=1.0), budget=lk.Budget(1.0))
    same = np.isclose(still.source.slots, moved.source.slots, atol=1e-6)
    assert same.mean() == pytest.approx(0.25, abs=0.02)
    assert per_row != (same == same[0]).all()


def test_labels_are_balanced_or_drawn() -> None:
    few = {**FEW, "per_class": 6}
    balanced, drawn = (
        distilled(lk.DPKIP(**few, labels=kind), budget=lk.Budget(1.0)).source.labels
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
