"""Hermite features: Mehler's kernel, norms within 1, any order; sums and products of columns."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.features import (
    Axes,
    Hermite,
    HermiteSum,
    Places,
    draw_product,
    product_factors,
    sum_size,
)
from limbeck.features.hermite import best_stretch, mehler_rho, truncation_error

X = np.linspace(-0.5, 0.5, 21)


def gaussian(length: float, x: np.ndarray = X) -> np.ndarray:
    return np.exp(-((x[:, None] - x) ** 2) / (2 * length**2))


def features(x: np.ndarray = X, **settings: float | str) -> np.ndarray:
    return np.asarray(Hermite(**settings)(jnp.asarray(x, jnp.float32)), np.float64)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [0.1, 0.5, 2.0])
def test_orders_converge_to_the_gaussian_kernel(length: float) -> None:
    """Mehler's formula: the more orders the nearer, and near in the end."""
    errors = []
    for order in (2, 8, 40):
        phi = features(order=order, length=length)
        errors.append(float(np.abs(phi @ phi.T - gaussian(length)).max()))
    assert errors[0] > errors[1] - 1e-6 and errors[1] > errors[2] - 1e-6
    assert errors[2] < 5e-6


@pytest.mark.parametrize("stretch", ["auto", 1.0, 30.0])
def test_norms_stay_within_one(stretch: float | str) -> None:
    for order in (0, 1, 5, 60):
        phi = features(np.linspace(-3, 3, 61), order=order, length=0.2, stretch=stretch)
        assert np.isfinite(phi).all()
        assert (phi**2).sum(axis=1).max() <= 1 + 1e-5


def test_high_orders_agree_with_long_arithmetic() -> None:
    """Far out, where the first feature is nothing in float32, later ones are right all the same."""
    order, length, stretch = 400, 0.1, 60.0
    x, rho = stretch * X, mehler_rho(length * stretch)
    now, before = (
        np.longdouble((1 - rho**2) ** 0.25) * np.exp(-rho * np.longdouble(x) ** 2 / (1 + rho)),
        0.0,
    )
    wanted = [now]
    for k in range(order):
        now, before = (
            math.sqrt(2 * rho / (k + 1)) * x * now - rho * math.sqrt(k / (k + 1)) * before,
            now,
        )
        wanted.append(now)
    found = features(order=order, length=length, stretch=stretch)
    assert np.abs(found - np.stack(wanted, axis=1).astype(np.float64)).max() < 2e-5


def test_gradients_are_finite() -> None:
    phi = Hermite(order=100, length=0.07, stretch=40.0)
    slope = jax.grad(lambda x: phi(x).sum())(jnp.linspace(-0.5, 0.5, 11))
    assert np.isfinite(np.asarray(slope)).all()


def test_the_best_stretch_is_better_than_none() -> None:
    stretch = best_stretch(10, 0.1)
    assert truncation_error(10, 0.1, stretch) < 0.05 < 0.5 < truncation_error(10, 0.1, 1.0)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(lk.LimbeckError, match="length > 0"):
        Hermite(order=3, length=0.0)
    with pytest.raises(lk.LimbeckError, match="order >= 0"):
        Hermite(order=-1, length=1.0)


# ---- kernels of rows ------------------------------------------------------------------------------


def rows_of(schema: lk.Schema, count: int = 30) -> np.ndarray:
    held = lk.read(table_rows(count), schema)._encoded()
    return schema.expand(held.cells)


def declared(places: Places) -> Axes:
    return Axes(centre=jnp.full(places.columns, 0.5), unit=jnp.ones(places.columns))


def test_a_sum_kernel_is_the_mean_of_its_columns_kernels() -> None:
    schema = table_schema()
    places, rows = Places(schema), rows_of(schema)
    basis = Hermite(order=30, length=0.3)
    phi = HermiteSum(basis=basis, places=places, axes=declared(places))
    found = np.asarray(phi(jnp.asarray(rows)), np.float64)
    assert found.shape[1] == phi.size == sum_size(places, 30)
    kernels = []
    for column, at in schema.blocks():
        block = rows[:, at].astype(np.float64)
        if isinstance(column, lk.Category):
            kernels.append(block @ block.T)
            continue
        there = 1 - block[:, 1:].sum(axis=1)
        both = np.outer(there, there) * gaussian(0.3, block[:, 0])
        kernels.append(both + np.outer(1 - there, 1 - there))
    assert np.allclose(found @ found.T, np.mean(kernels, axis=0), atol=1e-5)


def test_a_product_kernel_is_the_product_of_its_columns_kernels() -> None:
    schema = table_schema()
    places, rows = Places(schema), rows_of(schema)
    basis = Hermite(order=12, length=0.4)
    product = draw_product(basis, places, declared(places), 3, key=jax.random.key(1))
    left, right = (np.asarray(f, np.float64) for f in product(jnp.asarray(rows)))
    sizes = product_factors(places, 12, 3)
    assert (left.shape[1], right.shape[1]) == sizes == (product.left, product.right)
    assert math.prod(sizes) == 14**3  # twelve orders, the zeroth, and a gap
    wanted = np.ones((len(rows), len(rows)))
    for number in np.asarray(product.chosen):
        column, at = schema.blocks()[number]
        block = rows[:, at].astype(np.float64)
        if isinstance(column, lk.Category):
            wanted *= block @ block.T
            continue
        there = 1 - block[:, 1:].sum(axis=1)
        wanted *= np.outer(there, there) * gaussian(0.4, block[:, 0]) + np.outer(
            1 - there, 1 - there
        )
    assert np.allclose((left @ left.T) * (right @ right.T), wanted, atol=1e-4)


def test_large_categories_get_unit_vectors_and_norms_hold() -> None:
    many = lk.Category(name="many", values=tuple(range(40)))
    schema = lk.Schema(dataset="d", columns=(many, lk.Category(name="few", values=("a", "b"))))
    places = Places(schema)
    product = draw_product(
        Hermite(order=3, length=0.3), places, declared(places), 2, key=jax.random.key(0)
    )
    rows = np.zeros((40, 42), np.float32)
    rows[np.arange(40), np.arange(40)] = rows[:, 40] = 1.0
    left, right = (np.asarray(f) for f in product(jnp.asarray(rows)))
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    assert (norms > 0.99).all() and (norms <= 1).all()


def test_pixels_are_columns() -> None:
    places = Places(image_schema())
    assert places.columns == 64 and not places.codes
    assert product_factors(places, 20, 2) == (21, 21)


def test_the_largest_published_product_has_small_factors() -> None:
    columns = tuple(lk.Numeric(name=f"x{i}", min=0, max=1) for i in range(617))
    places = Places(lk.Schema(dataset="d", columns=columns))
    assert product_factors(places, 13, 5) == (196, 2744)


# ---- the example ----------------------------------------------------------------------------------


def test_the_example_draws_figure_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import sys

    path = Path(__file__).parents[2] / "examples" / "hermite_features.py"
    spec = importlib.util.spec_from_file_location("hermite_example", path)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "COUNTS", (2, 6, 20, 50))
    monkeypatch.setattr(example, "REPEATS", 2)
    monkeypatch.setattr(sys, "argv", ["example", str(tmp_path / "figure.png")])
    found = example.errors()
    example.plot(tmp_path / "figure.png", found)
    assert (tmp_path / "figure.png").stat().st_size > 1000
    hermite, stretched, fourier = found.values()
    assert hermite[-1] < 1e-3 and stretched[-1] < 1e-5 < 1e-2 < fourier[-1]
