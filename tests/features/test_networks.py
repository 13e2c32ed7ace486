"""Tangent and perceptual features of finite networks: one row at a time, as defined."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import limbeck as lk
from limbeck.features import EmpiricalNTK, Perceptual, features_of
from limbeck.nets import LeNet, ResNet18, filled_network, network_arrays


def _lenet() -> EmpiricalNTK:
    shape = (12, 12, 1)
    return EmpiricalNTK(LeNet(shape=shape, classes=3, key=jax.random.key(0)), shape)


def _perceptual() -> Perceptual:
    return Perceptual(ResNet18(shape=(10, 8, 1), classes=3, width=4, key=jax.random.key(0)))


def _rows(phi: Any, count: int) -> np.ndarray:
    height, width, channels = phi.shape if hasattr(phi, "shape") else phi.network.shape
    rng = np.random.default_rng(0)
    return rng.random((count, height * width * channels)).astype(np.float32)


@pytest.mark.parametrize("make", [_lenet, _perceptual])
def test_features_see_one_row_at_a_time_and_keep_their_bound(make: Any) -> None:
    phi = make()
    rows = _rows(phi, 5)
    together = features_of(phi, rows)
    assert together.shape == (5, phi.size)
    assert np.linalg.norm(together, axis=1).max() <= phi.norm_bound * (1 + 1e-6)
    others = np.concatenate([rows[:1], 1 - rows[1:]])  # of one shape: networks compile slowly
    assert np.array_equal(features_of(phi, others)[0], together[0])


def test_tangent_features_are_the_jacobian_of_summed_outputs() -> None:
    phi = _lenet()
    phi = EmpiricalNTK(phi.network, phi.shape, unit_norm=False)
    rows = _rows(phi, 3)
    weights, rest = eqx.partition(phi.network, eqx.is_inexact_array)

    def outputs(weights: Any, row: jax.Array) -> jax.Array:
        return eqx.combine(weights, rest)(row.reshape(1, 12, 12))

    each = jax.jit(jax.vmap(jax.jacrev(outputs), in_axes=(None, 0)))
    leaves = jax.tree.leaves(each(weights, rows))
    summed = [leaf.sum(axis=1).reshape(3, -1) for leaf in leaves]
    kernel = sum(np.asarray(leaf) @ np.asarray(leaf).T for leaf in summed)
    made = features_of(phi, rows)
    assert np.allclose(made @ made.T, kernel, rtol=1e-4)
    # Of each output: the trace, over outputs, of equation 4's matrix.
    apart = EmpiricalNTK(phi.network, phi.shape, unit_norm=False, summed=False)
    trace = sum(
        np.einsum("ico,jco->ij", *[np.asarray(leaf).reshape(3, 3, -1)] * 2) for leaf in leaves
    )
    made = features_of(apart, rows)
    assert made.shape == (3, apart.size) == (3, 3 * phi.size)
    assert np.allclose(made @ made.T, trace, rtol=1e-4)


def test_perceptual_features_may_be_those_of_every_layer() -> None:
    network = _perceptual().network
    image = jax.random.uniform(jax.random.key(1), (1, 10, 8))
    stages = network.activations(image)
    layers = network.activations(image, every_layer=True)
    assert len(stages) == 4 and len(layers) == 17
    # Stages end at every fourth layer after the stem.
    assert all(np.array_equal(a, layers[4 * n]) for n, a in enumerate(stages, 1))
    whole = Perceptual(network, grid=10, every_layer=True, unit_norm=False)
    made = whole(image.transpose(1, 2, 0).reshape(1, -1))
    assert made.shape == (1, whole.size) == (1, sum(a.size for a in layers))
    assert np.allclose(made[0], np.concatenate([np.ravel(a) for a in layers]), atol=1e-6)


def test_a_real_resnet_has_eleven_million_tangent_features() -> None:
    """benchmarks/kip.py computes some; here its arrays are not even made."""
    shape = (32, 32, 3)
    network = eqx.filter_eval_shape(ResNet18, shape=shape, classes=10, key=jax.random.key(0))
    sizes = [a.size for a in jax.tree.leaves(network) if isinstance(a, jax.ShapeDtypeStruct)]
    assert 11.0e6 < sum(sizes) < 11.4e6


def test_a_network_comes_back_from_a_file() -> None:
    shape = (8, 8, 1)
    one, two = (ResNet18(shape=shape, classes=2, width=4, key=jax.random.key(s)) for s in (0, 1))
    again = filled_network(two, network_arrays(one))
    kept, other = network_arrays(again), network_arrays(two)
    assert all(np.array_equal(kept[name], array) for name, array in network_arrays(one).items())
    assert any(not np.array_equal(kept[name], array) for name, array in other.items())
    wider = ResNet18(shape=shape, classes=3, width=4, key=jax.random.key(0))
    with pytest.raises(lk.LimbeckError, match="does not hold"):
        filled_network(wider, network_arrays(one))


def test_small_images_are_refused_by_lenet() -> None:
    with pytest.raises(lk.LimbeckError, match="12 x 12"):
        LeNet(shape=(8, 8, 1), classes=2, key=jax.random.key(0))
