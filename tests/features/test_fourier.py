"""Fourier features: norm one, their kernel, one row at a time, for anything a row may contain."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from helpers import image_rows, image_schema, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck as lk
from limbeck.features import Fourier


@pytest.mark.parametrize("scales", [(1.0,), (0.5, 4.0)])
def test_fourier_features_have_norm_one_and_their_kernel(scales: tuple[float, ...]) -> None:
    phi = Fourier(slots=6, size=40_000, length_scales=scales, key=jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    features = np.asarray(phi(x), np.float64)
    assert np.allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-5)
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    kernel = np.mean([np.exp(-squared / (2 * s * s)) for s in scales], axis=0)
    assert np.abs(features @ features.T - kernel).max() < 0.03


def test_a_feature_sees_one_row_at_a_time() -> None:
    phi = Fourier(slots=6, size=32, length_scales=(1.0,), key=jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    alone = np.concatenate([np.asarray(phi(x[i : i + 1])) for i in range(50)])
    assert np.allclose(np.asarray(phi(x)), alone, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2),
    st.text(max_size=5),
)
def test_norm_bounds_hold_for_anything_a_row_may_contain(numbers: list[float], town: str) -> None:
    schema = table_schema()
    rows = table_rows(1)
    rows.loc[0, "age"], rows.loc[0, "income"] = numbers
    rows["town"] = [town]
    slots = schema.expand(lk.read(rows, schema)._encoded().cells)
    assert slots.min() >= 0 and slots.max() <= 1
    phi = Fourier(slots=schema.slots, size=64, length_scales=(0.01, 100.0), key=jax.random.key(0))
    norms = np.linalg.norm(np.asarray(phi(slots), np.float64), axis=1)
    assert (norms <= phi.norm_bound * (1 + 1e-5)).all()


def test_pixels_of_any_kind_expand_to_the_unit_range() -> None:
    image = image_schema().image
    wild = np.array([[np.nan, np.inf, -np.inf, 1e30] + [3.0] * 60])
    slots = image.expand(wild)
    assert slots.min() >= 0 and slots.max() <= 1
    pixels, _ = image_rows(5)
    assert np.array_equal(image.decode(image.expand(image.encode(pixels))), pixels)
