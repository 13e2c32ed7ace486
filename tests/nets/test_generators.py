"""Generators: what they make fits the schema, and comes back from a file."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_schema

import limbeck as lk
from limbeck.nets import build_generator, filled_network, generate, network_arrays, settle
from limbeck.nets.deconvolution import DeconvolutionGenerator, Spreading
from limbeck.nets.upsample import upsampled_convolution

CASES = {
    "table": (table_schema(), {"hidden": (6, 5)}),
    "images": (image_schema(), {"hidden": (6,)}),
    "images, dense": (image_schema(), {"hidden": (6, 5), "kind": "dense"}),
    "images, deconvolution": (
        image_schema(10, 3),
        {"hidden": (6,), "channels": (4, 2), "kind": "deconvolution"},
    ),
    "colour, residual": (image_schema(10, 3), {"hidden": (8,), "kind": "residual"}),
}


@pytest.mark.parametrize(("schema", "settings"), CASES.values(), ids=CASES.keys())
def test_generators_make_rows_that_come_back_from_a_file(
    schema: lk.Schema, settings: dict[str, object]
) -> None:
    settings = {"code": 3, **settings}
    made = build_generator(schema, settings, key=jax.random.key(0))
    labels = np.arange(6) % len(schema.classes)
    fixed = settle(made, jnp.asarray(labels), key=jax.random.key(1))
    codes = np.random.default_rng(0).standard_normal((6, 3), dtype=np.float32)
    rows = generate(fixed, codes, labels)
    assert rows.shape == (6, schema.slots)
    assert rows.min() >= 0 and rows.max() <= 1 and rows.std() > 0
    other = build_generator(schema, settings, key=jax.random.key(2))
    again = filled_network(other, network_arrays(fixed))
    assert np.array_equal(generate(again, codes, labels), rows)


def test_a_transposed_convolution_spreads_numbers_as_the_derivative_of_a_convolution() -> None:
    layer = Spreading(2, 3, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (1, 4, 4, 2))

    def strided(large: jax.Array) -> jax.Array:
        dims = ("NHWC", "HWOI", "NHWC")
        kernel = layer.weight[::-1, ::-1]
        return jax.lax.conv_general_dilated(large, kernel, (2, 2), "SAME", dimension_numbers=dims)

    _, back = jax.vjp(strided, jnp.zeros((1, 8, 8, 3)))
    assert layer(x).shape == (1, 8, 8, 3) and np.allclose(layer(x), back(x)[0], atol=1e-6)


def test_the_label_enters_every_layer_of_the_deconvolution() -> None:
    settings = {"code": 2, "hidden": (5,), "channels": (4, 3), "kind": "deconvolution"}
    made = build_generator(image_schema(), settings, key=jax.random.key(0))
    assert isinstance(made, DeconvolutionGenerator)
    sizes = [made.first.weight.shape[0], made.second.weight.shape[0]]
    sizes += [layer.weight.shape[2] for layer in made.spreading]
    assert sizes == [2 + 3, 5 + 3, 4 + 3, 3 + 3]  # three classes


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("size", [(10, 8), (9, 7)])
def test_enlarging_and_convolving_at_once_is_the_same(outputs: int, size: tuple[int, int]) -> None:
    one, two = jax.random.split(jax.random.key(0))
    x = jax.random.normal(one, (2, 5, 4, 4))
    weight = jax.random.normal(two, (5, 5, 4, outputs))

    def plain(x: jax.Array, weight: jax.Array) -> jax.Array:
        large = jax.image.resize(x, (2, *size, 4), "bilinear")
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(large, weight, (1, 1), "SAME", dimension_numbers=dims)

    @jax.jit
    def both(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        return upsampled_convolution(x, weight, size), plain(x, weight)

    made, wanted = both(x, weight)
    assert made.shape == (2, *size, outputs)
    assert np.allclose(made, wanted, atol=1e-4)
