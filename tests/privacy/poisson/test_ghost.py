"""Gradients of rows known by norms and sums alone, against gradients made one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ghosts import (
    CLASSES,
    SLOTS,
    drawn_basis,
    drawn_rows,
    drawn_support,
    made_rows,
    network_source,
    scattering_source,
    tangent_source,
)

from limbeck.features import (
    FullyConnectedNTK,
    Scattering,
    Support,
    centred,
    pull_back,
    row_loss,
)
from limbeck.privacy import (
    FeatureGradients,
    FeatureSpaceGradients,
    PlainGradients,
    PulledGradients,
    RowSums,
    TangentGradients,
)
from limbeck.privacy.poisson import ghost_features
from limbeck.privacy.poisson.ghost_features import _pull_many
from limbeck.privacy.poisson.ghost_norms import _pays


def _weights() -> np.ndarray:
    return np.array([1.0, 0.5, 2.0, 3.0])


def _one_by_one(
    kernel: Any, source: Any, rows: np.ndarray, labels: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The plain statement in float64: vmap(grad) of the loss."""
    support = source.support

    def loss(free: jax.Array, row: jax.Array, label: jax.Array) -> jax.Array:
        placed = support.place_traced(free)
        targets = jnp.asarray(support.targets, free.dtype)
        wanted = centred(label, CLASSES).astype(free.dtype)
        weight = jnp.asarray(source.class_weights)[label]
        return weight * row_loss(kernel, placed, targets, source.view(row), wanted, source.ridge)

    with jax.enable_x64(True):
        each = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
        return np.asarray(each(jnp.asarray(free, jnp.float64), rows.astype(np.float64), labels))


def _prepared(source: Any, free: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> RowSums:
    """The same of gradients that are made one by one."""
    if hasattr(source, "blocks"):
        made = made_rows(source, free, rows, labels)
        norms = np.linalg.norm(made, axis=1) * (1 + 1e-9)
        made[~np.isfinite(norms)] = 0.0
        norms = np.where(np.isfinite(norms), norms, np.inf)
        return RowSums(norms, norms, len(made), lambda factors: factors @ made)
    return source.prepare(free, rows, labels)


def _agree(source: Any, kernel: Any, count: int, slots: int, margin: float) -> None:
    rows, labels = drawn_rows(count, slots)
    free = source.support.pick(source.support.start)
    wanted = _one_by_one(kernel, source, rows, labels, free)
    norms, sizes, _, weighted_sum = _prepared(source, free, rows, labels)
    true = np.linalg.norm(wanted, axis=1)
    if not hasattr(source, "blocks"):  # a row that is made is clipped as it is
        assert (norms > true * (1 - 1e-8)).all()
    assert (norms < true * (1 + margin)).all() and (sizes >= true * (1 - 1e-4)).all()
    factors = np.random.default_rng(1).random(count)
    error = np.linalg.norm(weighted_sum(factors) - factors @ wanted)
    assert error < 1e-4 * np.linalg.norm(factors @ wanted)


@pytest.mark.parametrize(
    ("depth", "size", "settings"),
    [
        (3, 8, {}),
        (1, 8, {"corrupted": 0.3}),
        (1, 8, {"corrupted": 0.3, "per_row": True}),
        (2, 40, {}),
        (1, 40, {"corrupted": 0.3}),
    ],
    ids=str,
)
def test_tangent_gradients_equal_those_made_one_by_one(
    depth: int, size: int, settings: dict[str, Any]
) -> None:
    """A larger support goes by pairs of classes."""
    kernel = FullyConnectedNTK(depth=depth)
    source = TangentGradients(
        kernel=kernel,
        support=drawn_support(size, 30, **settings),
        ridge=1e-4,
        class_weights=_weights(),
        view=lambda slots: (slots - 0.3) / 0.5,
    )
    assert _pays(30, size, CLASSES) == (size > 8)
    _agree(source, kernel, 30, 30, 1e-6)


@pytest.mark.parametrize(("normalisation", "count"), [("group", 10), ("none", 150)])
def test_gradients_through_features_equal_those_made_one_by_one(
    normalisation: str, count: int
) -> None:
    """Through scattering's own derivative, and through products with that of plain features."""
    settings: dict[str, Any] = {"height": 8, "width": 8, "normalisation": normalisation}
    features = Scattering(**settings)
    kind = FeatureGradients if count > 10 else PulledGradients
    source = kind(
        features=features if count > 10 else _Plain(features),
        support=drawn_support(4, 64, corrupted=0.2),
        ridge=1e-3,
        class_weights=_weights(),
    )
    with jax.enable_x64(True):
        exact = Scattering(**settings)
    # Norms include all that a product in float32 can err by: some hundred roundings of its terms.
    _agree(source, lambda a, b: exact(a) @ exact(b).T, count, 64, 2e-4)


@pytest.mark.parametrize("few", [None, 7], ids=["all features", "few directions"])
def test_gradients_in_feature_space_equal_those_made_one_by_one(few: int | None) -> None:
    features = Scattering(height=8, width=8)
    targets = drawn_support(4, 64).targets
    source = FeatureSpaceGradients(
        features=features, targets=targets, ridge=1e-3, class_weights=_weights(),
        basis=drawn_basis(features.size, few) if few else None,
    )  # fmt: skip
    rows, labels = drawn_rows(9, 64)
    phi, seen = source.of_seen(np.asarray(drawn_support(4, 64).start)), source.row_features(rows)
    assert phi.shape[1] == (few or features.size) and seen.dtype == np.float32
    plain = replace(  # the features' own kernel, on rows that are features already
        _as_support(phi, targets, ridge=1e-3), class_weights=_weights()
    )
    wanted = _one_by_one(lambda a, b: a @ b.T, plain, seen, labels, phi.ravel())
    norms, sizes, _, weighted_sum = source.prepare(phi.ravel(), seen, labels)
    exact = np.linalg.norm(wanted, axis=1)
    # What six products err by at most, in parts of what they are added up from.
    margin = 2e-7 * sizes * np.sqrt(phi.shape[1])
    assert (norms >= exact).all() and (norms <= exact * (1 + 1e-6) + margin).all()
    factors = np.linspace(0, 1, 9)
    assert np.allclose(weighted_sum(factors), factors @ wanted, rtol=1e-6, atol=1e-12)


def _as_support(phi: np.ndarray, targets: np.ndarray, ridge: float) -> TangentGradients:
    return TangentGradients(
        kernel=FullyConnectedNTK(), support=Support(phi, targets), ridge=ridge,
        class_weights=np.ones(CLASSES),
    )  # fmt: skip


def test_plain_gradients_serve_any_kernel() -> None:
    kernel = FullyConnectedNTK()
    support = drawn_support(4, 16)
    rows, labels = drawn_rows(5, 16)
    exact = _as_support(support.start, support.targets, ridge=1e-2)
    free = support.pick(support.start)
    wanted = _one_by_one(kernel, exact, rows, labels, free)

    def loss(free: jax.Array, row: jax.Array, label: jax.Array) -> jax.Array:
        targets = jnp.asarray(support.targets, jnp.float32)
        placed = support.place_traced(free)
        return row_loss(kernel, placed, targets, row, centred(label, CLASSES), 1e-2)

    made = made_rows(PlainGradients(loss=loss, chunk=2), free, rows, labels)
    assert np.allclose(made, wanted, rtol=1e-2, atol=1e-5)
    labels[2:4] = -1  # a block without a label is left out
    blocks = list(PlainGradients(loss=loss, chunk=2).blocks(free, rows, labels))
    assert [(start, len(part)) for start, part in blocks] == [(0, 2), (4, 1)]


class _Plain(eqx.Module):
    """Features without a derivative of their own."""

    features: Any

    def __call__(self, rows: jax.Array) -> jax.Array:
        return self.features(rows)


SOURCES = [(tangent_source, 8), (tangent_source, 40), (scattering_source, 8), (network_source, 8)]


@pytest.mark.parametrize(("make", "count"), SOURCES)
@pytest.mark.parametrize("size", [1.0, 1e4, 1e12])
@pytest.mark.parametrize("bound", [1e-6, 1.0])
def test_no_clipped_gradient_is_longer_than_the_bound(
    make: Any, count: int, size: float, bound: float
) -> None:
    source, rows, labels = _adversary(make, count, size)
    assert 0 < _longest(source, rows, labels, bound) <= bound


def test_derivatives_that_are_made_again_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room to keep them from the norms to the sum."""
    monkeypatch.setattr(ghost_features, "KEPT", 0)
    assert 0 < _longest(*_adversary(scattering_source, 8, 1.0), 1e-6) <= 1e-6


def _adversary(make: Any, count: int, size: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Support equal to data, nearly no ridge, duplicates, huge pixels, flat ones."""
    rows, labels = drawn_rows(count, SLOTS)
    rows[1, :48] = rows[4, 16:] = rows[7] = 0.3  # no wavelet sees these
    rows *= size
    rows[3] = rows[2]
    rows[5] = 0.0
    rows[6] = rows[0] * (1 + 1e-6)
    return make(replace(drawn_support(count, SLOTS), start=rows.copy())), rows, labels


def _longest(source: Any, rows: np.ndarray, labels: np.ndarray, bound: float) -> float:
    """Of all clipped gradients, each made whole."""
    free = source.support.pick(source.support.start)
    norms, _, _, weighted_sum = _prepared(source, free, rows, labels)
    longest = 0.0
    for row in np.flatnonzero(np.isfinite(norms)):
        factors = np.zeros(len(rows))
        factors[row] = bound / max(norms[row], bound)
        longest = max(longest, float(np.linalg.norm(weighted_sum(factors))))
    return longest


@pytest.mark.parametrize("make", [tangent_source, scattering_source, network_source])
def test_a_row_moves_the_clipped_sum_by_no_more_than_the_clip(make: Any) -> None:
    """Removed or added, with all other rows there: their factors must not notice."""
    rows, labels = drawn_rows(12, SLOTS)
    source = make(drawn_support(4, SLOTS))
    free = source.support.pick(source.support.start)
    clip = 1e-4

    def clipped_sum(kept: np.ndarray) -> np.ndarray:
        norms, _, _, weighted_sum = _prepared(source, free, rows[kept], labels[kept])
        return weighted_sum(clip / np.maximum(norms, clip))

    whole = clipped_sum(np.arange(12))
    for gone in (0, 5, 11):
        moved = np.linalg.norm(whole - clipped_sum(np.delete(np.arange(12), gone)))
        assert 0 < moved <= clip * (1 + 1e-9)


@pytest.mark.parametrize("make", [tangent_source, scattering_source, network_source])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_rows_that_are_not_finite_leave_no_trace(make: Any, bad: float) -> None:
    rows, labels = drawn_rows(6, SLOTS)
    source = make(drawn_support(4, SLOTS))
    free = source.support.pick(source.support.start)
    good = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    wanted = _prepared(source, free, rows, labels).weighted_sum(good)
    rows = rows.astype(np.float64)
    rows[2] = bad
    with np.errstate(over="ignore"):
        norms, _, _, weighted_sum = _prepared(source, free, rows, labels)
    assert np.isfinite(norms[[0, 1, 3, 4, 5]]).all()
    if np.isfinite(norms[2]):
        assert norms[2] > 0  # 1e300 squared overflows for most kernels, and need not for all
    else:
        assert norms[2] == np.inf
    assert np.allclose(weighted_sum(good), wanted, rtol=1e-5, atol=1e-9)


def test_parameters_that_are_not_finite_give_a_sum_of_zeros() -> None:
    rows, labels = drawn_rows(6, SLOTS)
    for make in (tangent_source, scattering_source):
        source = make(drawn_support(4, SLOTS))
        free = np.full(source.support.size, np.nan)
        norms = source.prepare(free, rows, labels).norms
        assert np.isinf(norms).all()


# ---- the pieces ------------------------------------------------------------------------------


def test_products_with_scatterings_derivative_are_compiled_right() -> None:
    """vmapped vjp's against copied rows: on CPU, XLA was seen to miscompile the vmapped jvp."""
    features = Scattering(height=28, width=28)
    row, cotangents, plain = _pulled_one_by_one(features)
    found = _pull_many(features, row, cotangents)
    assert np.allclose(found, plain, atol=1e-4 * abs(plain).max())


@pytest.mark.parametrize("normalisation", ["none", "position", "group"])
@pytest.mark.parametrize("shape", [(16, 16, 3), (28, 28, 1), (8, 12, 1)])
def test_scatterings_own_derivative_gives_the_same_products(
    shape: tuple[int, int, int], normalisation: Any
) -> None:
    height, width, channels = shape
    features = Scattering(
        height=height, width=width, channels=channels, normalisation=normalisation
    )
    row, cotangents, plain = _pulled_one_by_one(features)
    matrix = features.derivative(row)
    assert matrix.shape == (row.size, features.size)
    assert np.allclose(cotangents @ matrix.T, plain, atol=1e-4 * abs(plain).max())


def _pulled_one_by_one(features: Scattering) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A row, 32 cotangents, and what the plain derivative makes of them."""
    rng = np.random.default_rng(0)
    row = rng.standard_normal(math.prod(features.shape)).astype(np.float32)
    cotangents = rng.standard_normal((32, features.size)).astype(np.float32)
    plain = pull_back(features, np.repeat(row[None], 32, axis=0), cotangents)
    return row, cotangents, plain


@pytest.mark.parametrize("per_row", [False, True])
def test_a_support_keeps_its_corrupted_numbers(per_row: bool) -> None:
    support = drawn_support(6, 50, corrupted=0.4, per_row=per_row)
    assert support.size == 6 * 30 and support.shared != per_row
    free = np.arange(support.size, dtype=np.float32)
    placed = support.place(free)
    assert np.array_equal(placed[~support.masks], support.start[~support.masks])
    assert np.array_equal(support.pick(placed), free)
    assert np.allclose(placed, support.place_traced(jnp.asarray(free)))
