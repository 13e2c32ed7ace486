"""The downstream ConvNet: its own derivative, its pieces, and a tiny run."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck as lk
from limbeck.nets import ConvNet, norm_relu_pool
from limbeck.scores import Deformation, convnet_accuracy
from limbeck.scores import train as _train


def plain(x: jax.Array, scale: jax.Array, offset: jax.Array) -> jax.Array:
    x = (x - x.mean((1, 2), keepdims=True)) / jnp.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    x = jax.nn.relu(scale * x + offset)
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))


def test_the_norm_and_its_derivative_by_hand_are_the_textbook_ones() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    x = 2 + jax.random.normal(keys[0], (3, 4, 6, 5))
    scale, offset = 1 + jax.random.normal(keys[1], (5,)), jax.random.normal(keys[2], (5,))
    weight = jax.random.normal(keys[3], (3, 2, 3, 5))
    values = [jax.jit(f)(x, scale, offset) for f in (norm_relu_pool, plain)]
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-5)
    ours, theirs = (
        jax.jit(jax.grad(lambda *a, f=f: (f(*a) * weight).sum(), argnums=(0, 1, 2)))(
            x, scale, offset
        )
        for f in (norm_relu_pool, plain)
    )
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("shape", "cells"), [((28, 28, 1), 16), ((32, 32, 3), 16), ((9, 8, 1), 2)])
def test_pictures_of_any_size_are_widened_and_halved_three_times(shape, cells) -> None:
    net = ConvNet(shape, 10, width=4, key=jax.random.key(0))
    assert net.head.shape == (cells * 4, 10)
    assert jax.eval_shape(net, jnp.ones((2, *shape))).shape == (2, 10)
    assert net.margin[0] == {28: (3, 3), 32: (1, 1), 9: (4, 5)}[shape[0]]


def test_the_first_layer_is_a_convolution() -> None:
    net = ConvNet((8, 8, 2), 3, width=4, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (2, 8, 8, 2))
    got = jax.jit(lambda x: net(x))(x)

    @jax.jit
    def wanted(x: jax.Array) -> jax.Array:
        for weight, scale, offset in zip(net.filters, net.scales, net.offsets, strict=True):
            dims = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=dims)
            x = plain(x, scale, offset)
        return x.reshape(2, -1) @ net.head + net.bias

    np.testing.assert_allclose(got, wanted(x), rtol=1e-4, atol=1e-4)


def bars(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Upright and lying bars: easy for a ConvNet, not for pixel averages."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    images = rng.random((count, 8, 8, 1)).astype(np.float32) * 0.3
    for image, label in zip(images, labels, strict=True):
        at = rng.integers(1, 7)
        image[(slice(None), at) if label else (at, slice(None))] = 1
    return images, labels


def test_a_tiny_run_learns_and_is_repeatable() -> None:
    images, labels = bars(40, 0)
    test_images, test_labels = bars(130, 1)
    done: list[float] = []
    settings = {"seed": 0, "epochs": 60, "width": 8}
    first, soft = (
        convnet_accuracy(images, t, test_images, test_labels, progress=done.append, **settings)
        for t in (labels, np.eye(2)[labels])
    )
    assert first == soft > 0.75
    assert done[59] == done[-1] == 1.0 and len(done) == 120
    grey = np.rint(images * 255).astype(np.uint8)
    assert convnet_accuracy(grey, labels, test_images, test_labels, **settings) > 0.75


def test_deformed_training_runs_and_many_images_go_in_batches(monkeypatch) -> None:
    monkeypatch.setattr("limbeck.scores.convnet.BATCH", 16)
    images, labels = bars(32, 0)
    flip = Deformation(shift=1, scale=0.1, rotation=10, flip=True)
    got = convnet_accuracy(images, labels, *bars(10, 1), seed=1, epochs=2, width=4, augment=flip)
    assert 0 <= got <= 1


def deformed(images: jax.Array, **settings: float) -> jax.Array:
    made = Deformation(**settings)  # type: ignore[arg-type]
    return jax.jit(lambda x, key: made(x, key=key))(images, jax.random.key(0))


def test_a_step_in_pieces_is_the_same_step(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    images, wanted = rng.random((11, 8, 8, 1), np.float32), np.eye(3, dtype=np.float32)
    pace = {"rates": np.full(2, 0.1), "batch": 7, "momentum": 0.9, "seed": 0}
    found = []
    for piece in (7, 3, 1):
        monkeypatch.setattr(_train, "PIECE_IMAGES", piece)
        net = ConvNet((8, 8, 1), 3, width=4, key=jax.random.key(0))
        found.append(_train.train(net, images, wanted[np.arange(11) % 3], **pace).head)
    assert np.allclose(found[0], found[1], atol=1e-6) and np.allclose(found[0], found[2], atol=1e-6)
    assert not np.allclose(found[0], ConvNet((8, 8, 1), 3, width=4, key=jax.random.key(0)).head)


def test_a_deformation_of_nothing_changes_nothing_and_a_shift_moves() -> None:
    images = jnp.asarray(bars(20, 0)[0])
    still = deformed(images, shift=0, scale=0.0, rotation=0.0)
    np.testing.assert_allclose(still, images, atol=1e-5)
    moved = deformed(images, shift=2, scale=0.0, rotation=0.0)
    places = [
        any(
            np.allclose(np.roll(a, (i, j), (0, 1))[2:6, 2:6], b[2:6, 2:6], atol=1e-5)
            for i in range(-2, 3)
            for j in range(-2, 3)
        )
        for a, b in zip(np.asarray(images), np.asarray(moved), strict=True)
    ]
    assert all(places) and not np.allclose(moved, images)


def test_a_rotation_turns_about_the_middle() -> None:
    image = jnp.zeros((200, 9, 9, 1)).at[:, 4, 4].set(1.0).at[:, 0, 4].set(1.0)
    turned = deformed(image, shift=0, scale=0.0, rotation=90.0)
    np.testing.assert_allclose(turned[:, 4, 4, 0], 1, atol=1e-5)
    assert float(turned[:, 4, 0, 0].max()) > 0.5


def test_a_covered_part_is_a_rectangle_and_one_picture_in_four_has_one() -> None:
    images = jnp.ones((400, 8, 12, 3))
    covered = np.asarray(deformed(images, shift=0, scale=0.0, rotation=0.0, cover=0.5)) == 0
    some = covered.any(axis=(1, 2, 3))
    assert 0.18 < some.mean() < 0.32
    sides = covered[some].any(axis=(2, 3)).sum(axis=1), covered[some].any(axis=(1, 3)).sum(axis=1)
    assert (covered[some].sum(axis=(1, 2, 3)) == 3 * sides[0] * sides[1]).all()
    assert sides[0].max() == 4 and sides[1].max() == 6


def test_mistakes_are_named() -> None:
    images, labels = bars(4, 0)
    with pytest.raises(lk.LimbeckError, match="one target per image"):
        convnet_accuracy(images, labels[:3], images, labels, seed=0)
    with pytest.raises(lk.LimbeckError, match="epochs > 0"):
        convnet_accuracy(images, labels, images, labels, seed=0, epochs=0)
    with pytest.raises(lk.LimbeckError, match="height, width"):
        convnet_accuracy(images[:, 0, 0], labels, images, labels, seed=0)
