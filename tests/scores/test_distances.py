"""Marginals, likelihood, Frechet and nearest-record distances, and the control subset."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import table_rows, table_schema
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

import limbeck as lk
from limbeck.scores import (  # fmt: skip
    cnn_accuracy,
    discretise,
    frechet_distance,
    marginal_distance,
    matching_subset,
    mean_marginal_distance,
    mixture_nll,
    nearest_distances,
)

RNG = np.random.default_rng(0)


def test_cells_are_cut_by_the_schema_and_gaps_have_a_code() -> None:
    data = lk.read(table_rows(300), table_schema())
    rows = data._encoded()
    codes, sizes = discretise(data.schema, rows.cells, rows.labels, bins=10)
    assert sizes == (11, 11, 4, 3, 11, 4)
    assert (codes >= 0).all() and (codes < sizes).all()
    assert (codes[:, 0] == 10).sum() == table_rows(300)["age"].isna().sum() > 0
    assert mean_marginal_distance(codes, codes, sizes, ways=2) == 0
    other = lk.read(table_rows(300, seed=1), table_schema())._encoded()
    far, _ = discretise(data.schema, other.cells, other.labels, bins=10)
    distances = [mean_marginal_distance(codes, far, sizes, ways=w) for w in (1, 2, 3)]
    assert 0 < distances[0] < distances[1] < distances[2] < 1


def test_many_empty_cells_change_nothing() -> None:
    a, b = RNG.integers(0, 3, (50, 2)), RNG.integers(0, 3, (40, 2))
    dense, sparse = (marginal_distance(a, b, sizes, (0, 1)) for sizes in ((3, 3), (900, 900)))
    assert dense == pytest.approx(sparse)


def test_the_likelihood_is_scipys() -> None:
    points, means = RNG.random((30, 2)), RNG.random((4, 2))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    density = sum(
        w / 10 * multivariate_normal(m, 0.04).pdf(points)
        for w, m in zip(weights, means, strict=True)
    )
    got = mixture_nll(points, means, deviation=0.2, weights=weights)
    assert got == pytest.approx(-np.log(density).sum())
    classes = np.zeros(30, int)
    own = mixture_nll(
        points, means, deviation=0.2, labels=classes, mean_labels=np.array([0, 0, 1, 1])
    )
    assert own > mixture_nll(points, means, deviation=0.2)


@pytest.mark.parametrize(("many", "few"), [(40, 30), (40, 3), (4, 5)])
def test_the_frechet_distance_is_the_formula(many: int, few: int) -> None:
    a, b = RNG.random((many, 6)), RNG.random((few, 6)) * 2
    first, second = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    cross = sqrtm(first @ second).real if min(many, few) > 6 else None
    got = frechet_distance(a, b)
    assert got == pytest.approx(frechet_distance(b, a))
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-9)
    if cross is not None:
        means = ((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum()
        assert got == pytest.approx(means + np.trace(first + second - 2 * cross))


def test_both_sides_are_scaled_alike() -> None:
    grey = RNG.integers(0, 256, (20, 4, 4, 1)).astype(np.uint8)
    assert frechet_distance(grey, grey / np.float32(255)) == pytest.approx(0, abs=1e-6)
    doubled = frechet_distance(grey, grey, features=lambda rows: 2 * rows)
    assert doubled == pytest.approx(0, abs=1e-5)


def test_nearest_rows_are_found_across_chunks() -> None:
    real = RNG.random((2500, 3)).astype(np.float32)
    made = np.concatenate([real[[5, 2400]] + np.float32(0.001), RNG.random((3, 3), np.float32)])
    wanted = np.sqrt(((made[:, None] - real) ** 2).sum(axis=2)).min(axis=1)
    np.testing.assert_allclose(nearest_distances(made, real), wanted, atol=1e-3)


def test_the_control_has_the_releases_classes_and_no_row_twice() -> None:
    released, real = np.array([2, 0, 2, 2]), np.arange(60) % 3
    at = matching_subset(released, real, seed=1)
    assert len(set(at)) == 4 and sorted(real[at]) == sorted(released)
    assert set(at) != set(matching_subset(released, real, seed=2))
    with pytest.raises(lk.LimbeckError, match="at least 3"):
        matching_subset(released, np.array([0, 2, 2]), seed=0)


def test_the_cnn_of_paper_003_learns_a_little() -> None:
    labels = np.arange(60) % 2
    images = np.random.default_rng(0).random((60, 8, 8, 1)).astype(np.float32) * 0.3
    images[labels == 1, :4] += 0.6
    settings = {"seed": 0, "epochs": 40, "learning_rate": 0.05, "batch": 20, "widths": (4, 8, 16)}
    assert cnn_accuracy(images[:40], labels[:40], images[40:], labels[40:], **settings) > 0.9
