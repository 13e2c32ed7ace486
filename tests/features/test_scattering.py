"""Scattering: kymatio's numbers and derivatives, one row at a time, and a norm that holds."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from limbeck.errors import LimbeckError
from limbeck.features import Scattering
from limbeck.features import scattering as own

ORACLES = Path(__file__).parent.parent / "oracles"
DIGITS, ONES = range(4), 6  # pictures of `x28`
GREY = Scattering(height=8, width=8)
ALL = ("none", "position", "group")


def _pictures(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(np.float32)


def _distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / (np.linalg.norm(theirs) or 1))


def _golden(size: int) -> tuple[np.ndarray, np.ndarray]:
    """For each picture, how far values and vector-Jacobian products are from kymatio's."""
    with jax.enable_x64(True), np.load(ORACLES / "scattering2d_J2_L8.npz") as oracle:
        x, y, w, vjp = (oracle[f"{name}{size}"] for name in ("x", "y", "w", "vjp"))
        phi = Scattering(height=size, width=size)
        ours, pull = jax.vjp(jax.jit(lambda x: phi.scatter(x)), jnp.asarray(x))
        (back,) = pull(jnp.asarray(w, float))
        assert ours.dtype == back.dtype == jnp.float64
        far = [[*map(_distance, *pair)] for pair in ((ours, y), (back, vjp))]
        return np.array(far[0]), np.array(far[1])


@pytest.mark.parametrize("size", [28, 32])
def test_values_and_derivatives_are_kymatio_s(size: int) -> None:
    """Where a coefficient is 0 but for rounding, so is the direction of its derivative: see below."""
    values, derivatives = _golden(size)
    flat = [*DIGITS, ONES] if size == 28 else []
    assert (values <= 1e-6).all()
    assert (np.delete(derivatives, flat) <= 1e-5).all()


def test_derivatives_are_kymatio_s_on_flat_ground(monkeypatch: pytest.MonkeyPatch) -> None:
    """kymatio rounds its filters to float32, which decides the phase of coefficients near 0.

    With those filters, digits on their black ground agree as well. Nothing but rounding is left of
    the picture of ones: there the derivative has no value to agree on.
    """
    with np.load(ORACLES / "scattering2d_filters.npz") as oracle:
        psi = np.fft.ifft2(oracle["psi28"].astype(float)).reshape(2, 8, 36, 36)
    for scale in (0, 1):
        np.testing.assert_allclose(own._morlets(36, 36, scale), psi[scale], atol=1e-7)
    monkeypatch.setattr(own, "_bank", own._bank.__wrapped__)
    monkeypatch.setattr(own, "_morlets", lambda h, w, scale: psi[scale])
    values, derivatives = _golden(28)
    assert (values <= 1e-6).all()
    assert (np.delete(derivatives, ONES) <= 1e-5).all()


def test_float32_is_close_to_kymatio() -> None:
    with np.load(ORACLES / "scattering2d_J2_L8.npz") as oracle:
        y = Scattering(height=28, width=28).scatter(jnp.asarray(oracle["x28"], jnp.float32))
        assert y.dtype == jnp.float32
        assert _distance(np.asarray(y), oracle["y28"]) < 1e-6


def _by_definition(picture: np.ndarray) -> np.ndarray:
    """Scattering of one picture with FFTs, as the definition reads, in float64."""
    x = np.pad(picture.astype(np.float64), own.BORDER, mode="reflect")
    h, w = x.shape
    fine, coarse = own._morlets(h, w, 0), own._morlets(h, w, 1)
    low = {step: (own._lowpass(h, step), own._lowpass(w, step)) for step in (1, 2)}

    def modulus(x: np.ndarray, psi: np.ndarray, step: int) -> np.ndarray:
        return abs(np.fft.ifft2(np.fft.fft2(x) * np.fft.fft2(psi)))[::step, ::step]

    def average(x: np.ndarray, step: int) -> np.ndarray:
        return low[step][0] @ x @ low[step][1].T

    first = [modulus(x, psi, 1) for psi in fine]
    return np.stack(
        [average(x, 1)]
        + [average(u, 1) for u in first]
        + [average(modulus(x, psi, 2), 2) for psi in coarse]
        + [average(modulus(u, psi, 2), 2) for u in first for psi in coarse]
    )


@pytest.mark.parametrize("shape", [(12, 20), (20, 12), (4, 8)])
def test_pictures_need_not_be_square(shape: tuple[int, int]) -> None:
    x = _pictures(3, *shape)
    y = np.asarray(Scattering(height=shape[0], width=shape[1]).scatter(jnp.asarray(x)))
    assert y.shape == (3, 81, shape[0] // 4, shape[1] // 4)
    for one, picture in zip(y, x, strict=True):
        assert _distance(one, _by_definition(picture)) < 1e-5


def test_colours_are_scattered_one_by_one() -> None:
    x = _pictures(2, 8, 12, 3)
    phi = Scattering(height=8, width=12, channels=3, unit_norm=False)
    grey = Scattering(height=8, width=12, unit_norm=False)
    y = eqx.filter_jit(phi)(jnp.asarray(x.reshape(2, -1)))
    assert y.shape == (2, phi.size) and phi.size == 3 * 81 * 2 * 3
    apart = [eqx.filter_jit(grey)(jnp.asarray(x[..., c].reshape(2, -1))) for c in range(3)]
    np.testing.assert_allclose(y, np.concatenate(apart, axis=1), rtol=1e-5, atol=1e-6)


def _normalised(y: np.ndarray, kind: str) -> np.ndarray:
    """Group norms in plain NumPy: y (images, 81, height, width)."""
    out = np.array(y, np.float64)
    for image in out:
        for start in range(0, 81, 3):
            group = image[start : start + 3]
            if kind == "group":
                group[:] = (group - group.mean()) / np.sqrt(group.var() + 1e-5)
            else:
                for place in np.ndindex(group.shape[1:]):
                    values = group[:, *place]
                    group[:, *place] = (values - values.mean()) / np.sqrt(values.var() + 1e-5)
    return out


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["position", "group"])
def test_group_norms(kind: str, channels: int) -> None:
    x = _pictures(2, 8, 12, channels)
    phi = Scattering(height=8, width=12, channels=channels, normalisation=kind, unit_norm=False)
    flat = jnp.asarray(np.moveaxis(x, 3, 1).reshape(-1, 8, 12))
    wanted = _normalised(np.asarray(phi.scatter(flat)), kind).reshape(2, -1)
    got = phi(jnp.asarray(x.reshape(2, -1)))
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_a_row_has_the_same_features_alone_and_in_company(kind: str) -> None:
    phi = Scattering(height=8, width=8, channels=3, normalisation=kind)
    rows = jnp.asarray(_pictures(9, 192))
    call = eqx.filter_jit(phi)
    together = call(rows)
    for i in (0, 4, 8):
        np.testing.assert_allclose(call(rows[i : i + 1])[0], together[i], rtol=1e-4, atol=1e-6)
    other = jnp.asarray(_pictures(9, 192, seed=1)).at[4].set(rows[4])
    np.testing.assert_array_equal(call(other)[4], together[4])
    assert phi(rows[:0]).shape == (0, phi.size)


ROWS = arrays.arrays(np.float32, (3, 64), elements=st.floats(0, 1, width=32, allow_subnormal=False))
PHIS = [
    Scattering(height=8, width=8, normalisation=kind, unit_norm=unit)  # type: ignore[arg-type]
    for kind in ALL
    for unit in (True, False)
]
CALLS = [eqx.filter_jit(phi) for phi in PHIS]


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_the_norm_bound_holds(rows: np.ndarray) -> None:
    for phi, call in zip(PHIS, CALLS, strict=True):
        norms = np.linalg.norm(np.asarray(call(rows), np.float64), axis=1)
        assert (norms <= phi.norm_bound * (1 + 1e-5)).all()
        assert phi.norm_bound == 1 or not phi.unit_norm


def test_norms_are_one_and_zero_stays_zero() -> None:
    rows = jnp.asarray(_pictures(4, 64)).at[2].set(0)
    norms = np.linalg.norm(GREY(rows), axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0, 1], rtol=1e-5)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("unit_norm", [True, False])
def test_gradients_are_finite_where_moduli_vanish(kind: str, unit_norm: bool) -> None:
    phi = Scattering(height=8, width=8, normalisation=kind, unit_norm=unit_norm)  # type: ignore[arg-type]
    rows = jnp.asarray([[0.0] * 64, [1.0] * 64, [0.3] * 64, [1e-30] * 64])
    weights = jnp.asarray(_pictures(4, phi.size))
    gradient = jax.jit(jax.grad(lambda r: (phi(r) * weights).sum()))(rows)
    assert np.isfinite(gradient).all()


@jax.jit
def _both_ways(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    y, pull = jax.vjp(GREY.scatter, x)
    return y, pull(w)[0]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_chunks_change_nothing(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and derivatives, whether all at once or three at a time with a rest."""
    x, w = jnp.asarray(_pictures(count, 8, 8)), jnp.asarray(_pictures(count, 81, 2, 2))
    _both_ways.clear_cache()
    whole = _both_ways(x, w)
    monkeypatch.setattr(own, "CHUNK_PIXELS", 3 * 16 * 16)
    assert GREY.chunk == 3
    _both_ways.clear_cache()
    parts = _both_ways(x, w)
    assert parts[0].shape == w.shape
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-3, atol=1e-4)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(LimbeckError, match="divisible by 4, got 30 x 28"):
        Scattering(height=30, width=28)
    with pytest.raises(LimbeckError, match="normalisation"):
        Scattering(height=28, width=28, normalisation="layer")  # type: ignore[arg-type]
