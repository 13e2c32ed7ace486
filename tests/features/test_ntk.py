"""Tangent kernels against golden values of an independent library, and their laws."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.features import ConvolutionalNTK, FullyConnectedNTK

ORACLES = np.load(Path(__file__).parent.parent / "oracles" / "ntk.npz")


def _error(got: jax.Array, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(np.asarray(got) - wanted) / np.abs(wanted)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_fully_connected_kernels_have_the_golden_values(depth: int) -> None:
    kernel = FullyConnectedNTK(depth=depth)
    with jax.enable_x64(True):
        x, z = jnp.asarray(ORACLES["x"]), jnp.asarray(ORACLES["z"])
        assert _error(kernel(x, z), ORACLES[f"fc{depth}_ntk"]) < 1e-6
        assert _error(kernel(x, x), ORACLES[f"fc{depth}_ntk_xx"]) < 1e-6


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("blocks", [1, 3])
def test_convolutional_kernels_have_the_golden_values(blocks: int, channels: int) -> None:
    with jax.enable_x64(True):
        a, e = (jnp.asarray(ORACLES[f"img_{n}_c{channels}"]) for n in ("a", "e"))
        a, e = a.reshape(len(a), -1), e.reshape(len(e), -1)
        for memory in (1, 1 << 28):  # pair by pair, and all at once
            kernel = ConvolutionalNTK(
                height=8, width=8, channels=channels, blocks=blocks, memory=memory
            )
            assert _error(kernel(a, e), ORACLES[f"conv{blocks}_ntk_c{channels}"]) < 1e-6
        assert _error(kernel(a, a), ORACLES[f"conv{blocks}_ntk_aa_c{channels}"]) < 1e-6


@pytest.mark.parametrize("depth", [1, 3])
def test_derivatives_are_those_of_differences(depth: int) -> None:
    kernel = FullyConnectedNTK(depth=depth)
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, z, turn = (jnp.asarray(rng.normal(size=(4, 6))) for _ in range(3))
        slope = jax.jvp(lambda v: kernel(v, z), (x,), (turn,))[1]
        step = 1e-6
        differences = (kernel(x + step * turn, z) - kernel(x - step * turn, z)) / (2 * step)
        assert float(jnp.max(jnp.abs(slope - differences) / jnp.abs(differences))) < 1e-5


def test_derivatives_are_finite_where_rows_coincide_or_oppose() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5)), jnp.float32)
    for kernel in (FullyConnectedNTK(depth=2), FullyConnectedNTK(depth=1, bias_variance=0.0)):
        for other in (x, -x, 3.0 * x, jnp.zeros_like(x)):
            slope = jax.grad(lambda v, k=kernel, o=other: k(v, o).sum())(x)
            assert bool(jnp.isfinite(slope).all())


def test_kernels_are_symmetric_and_positive() -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        x = jnp.asarray(rng.random((12, 64)))
        for kernel in (FullyConnectedNTK(depth=2), ConvolutionalNTK(height=8, width=8, blocks=2)):
            gram = np.asarray(kernel(x, x))
            assert np.allclose(gram, gram.T, rtol=1e-10)
            assert np.linalg.eigvalsh(gram).min() > 0


def test_a_wide_network_has_nearly_this_kernel() -> None:
    """The closed form is the limit of a random network of 100,000 units."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 10))
    width, dim = 100_000, 10
    first, bias = rng.normal(size=(width, dim)), 0.1 * rng.normal(size=width)
    pre = np.sqrt(2 / dim) * x @ first.T + bias
    out = np.sqrt(2) * rng.normal(size=width)
    passed = (pre > 0).astype(float)
    hidden = 2 / width * np.maximum(pre, 0) @ np.maximum(pre, 0).T + 0.01
    through = (passed * out**2) @ passed.T / width * (2 / dim * x @ x.T + 0.01)
    exact = np.asarray(FullyConnectedNTK()(jnp.asarray(x), jnp.asarray(x)))
    assert np.abs(hidden + through - exact).max() < 0.02 * exact.max()


def test_odd_pools_drop_the_last_row() -> None:
    rows = jnp.asarray(np.random.default_rng(0).random((2, 49)), jnp.float32)
    assert ConvolutionalNTK(height=7, width=7, blocks=2)(rows, rows).shape == (2, 2)


def test_bad_settings_are_named() -> None:
    with pytest.raises(lk.LimbeckError, match="halved"):
        ConvolutionalNTK(height=4, width=4, blocks=3)
    with pytest.raises(lk.LimbeckError, match="depth"):
        FullyConnectedNTK(depth=0)
    with pytest.raises(lk.LimbeckError, match="pixels"):
        ConvolutionalNTK(height=8, width=8)(jnp.ones((1, 63)), jnp.ones((1, 63)))
