"""Tangent features as outer products: what automatic differentiation says, in a few short factors."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.features import DenseTangent, StripTangent, mean_blocks, mismatch, split_blocks
from limbeck.features.tangent import AbstractTangent

SLOTS, ROWS = 9, 6
ONE, TWO, THREE = jax.random.split(jax.random.key(0), 3)

MAPS = {
    "one layer": DenseTangent(slots=SLOTS, widths=(6,), outputs=1, key=ONE),
    "two layers": DenseTangent(slots=SLOTS, widths=(7, 4), outputs=1, key=ONE),
    "strip": StripTangent(slots=SLOTS, widths=(5,), side=3, outputs=1, key=ONE),
    "strip and dense": StripTangent(slots=SLOTS, widths=(5, 4), side=1, outputs=1, key=ONE),
}
each_map = pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS.keys())


def _rows(count: int = ROWS) -> jax.Array:
    return jax.random.uniform(TWO, (count, SLOTS))


def _by_autodiff(phi: AbstractTangent, rows: jax.Array) -> jax.Array:
    """Gradients of the summed outputs, divided by their norms: layer by layer, bias beside weight."""

    def one(row: jax.Array) -> jax.Array:
        found = eqx.filter_grad(lambda net: net.outputs(row).sum())(phi)
        layers = [found.kernels] if isinstance(found, StripTangent) else list(found.layers)
        layers += [found.dense] if getattr(found, "dense", None) is not None else []
        beside = [
            jnp.concatenate([m.weight, m.bias[:, None]], axis=1) for m in [*layers, found.head]
        ]
        if isinstance(found, StripTangent):  # the kernels are one block: all weights, all biases
            beside[0] = jnp.concatenate([layers[0].weight.ravel(), layers[0].bias])
        return jnp.concatenate([part.ravel() for part in beside])

    gradients = jax.vmap(one)(rows)
    return gradients / jnp.linalg.norm(gradients, axis=1, keepdims=True)


@eqx.filter_jit
def _both(phi: AbstractTangent, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    return phi.flat(rows), _by_autodiff(phi, rows)


@eqx.filter_jit
def _flat(phi: AbstractTangent, rows: jax.Array) -> jax.Array:
    return phi.flat(rows)


@each_map
def test_the_closed_form_is_the_gradient(phi: AbstractTangent) -> None:
    made, wanted = _both(phi, _rows())
    assert made.shape == (ROWS, phi.size)
    assert np.abs(made - wanted).max() < 1e-6
    assert np.allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-6)


@each_map
def test_so_are_mean_embeddings_and_their_gradients(phi: AbstractTangent) -> None:
    target = jax.random.normal(THREE, (phi.size,)) / phi.size**0.5

    def by_autodiff(rows: jax.Array) -> jax.Array:
        mean = _by_autodiff(phi, rows).mean(axis=0)
        return ((mean - target) ** 2).sum()

    def closed(rows: jax.Array) -> jax.Array:
        means = mean_blocks(phi(rows))
        wanted = split_blocks(target, phi.blocks)
        return sum(((m - w) ** 2).sum() for m, w in zip(means, wanted, strict=True))

    rows = _rows()
    value, gradient = jax.jit(jax.value_and_grad(by_autodiff))(rows)
    again, same = jax.jit(jax.value_and_grad(closed))(rows)
    assert abs(value - again) < 1e-5 * value
    assert np.abs(gradient - same).max() < 1e-5 * np.abs(gradient).max()


@pytest.mark.parametrize("count", [2, 40], ids=["pairs", "means"])
def test_mismatch_is_the_unbiased_squared_distance(count: int) -> None:
    """By Gram matrices (few rows) and by means (many): the same number, and the same gradient."""
    phi, rows = MAPS["two layers"], _rows(count)
    target = jax.random.normal(THREE, (phi.size,)) / phi.size**0.5

    def plain(rows: jax.Array) -> jax.Array:
        features = phi.flat(rows)
        kernel = features @ features.T
        pairs = (kernel.sum() - jnp.trace(kernel)) / (count * (count - 1))
        return pairs - 2 * features.mean(axis=0) @ target

    def by_factors(rows: jax.Array) -> jax.Array:
        return mismatch(phi(rows), split_blocks(target, phi.blocks))

    wanted, gradient = jax.jit(jax.value_and_grad(plain))(rows)
    made, same = jax.jit(jax.value_and_grad(by_factors))(rows)
    assert abs(made - wanted) < 1e-5
    assert np.abs(gradient - same).max() < 1e-5 * np.abs(gradient).max() + 1e-7


def test_equal_outputs_are_held_once_and_the_kernel_is_the_same() -> None:
    phi = DenseTangent(slots=SLOTS, widths=(6,), outputs=10, key=ONE)
    made, wanted = _both(phi, _rows())
    assert wanted.shape[1] - made.shape[1] == 9 * 7
    # In float64: on some processors a product in float32 rounds by more than what is asked here.
    here, there = np.asarray(made, np.float64), np.asarray(wanted, np.float64)
    assert np.abs(here @ here.T - there @ there.T).max() < 1e-6


@each_map
def test_a_row_knows_nothing_of_its_neighbours(phi: AbstractTangent) -> None:
    rows = _rows()
    others = jnp.concatenate([rows[:1], 1 - rows[1:]])
    assert np.array_equal(_flat(phi, rows)[0], _flat(phi, others)[0])


@each_map
def test_strange_rows_keep_the_bound(phi: AbstractTangent) -> None:
    rows = jnp.stack([jnp.zeros(SLOTS), jnp.ones(SLOTS), jnp.eye(SLOTS)[0]])
    made = _flat(phi, rows)
    assert np.isfinite(made).all()
    assert np.linalg.norm(made, axis=1).max() <= 1 + 1e-6


def test_impossible_strips_are_refused() -> None:
    with pytest.raises(lk.LimbeckError, match="at most two widths"):
        StripTangent(slots=SLOTS, widths=(2, 2, 2), side=1, outputs=1, key=ONE)
    with pytest.raises(lk.LimbeckError, match="at most 9 slots"):
        StripTangent(slots=SLOTS, widths=(2,), side=10, outputs=1, key=ONE)
