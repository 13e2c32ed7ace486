"""Images of a generator do not depend on how a batch is cut into pieces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema

from limbeck.nets import build_generator, settle
from limbeck.nets import generator as _generator


@pytest.mark.parametrize("count", [0, 1, 7, 12, 13])
def test_pieces_make_the_same_images(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = image_schema()
    made = build_generator(schema, {"code": 3, "hidden": [5]}, key=jax.random.key(0))
    classes = len(schema.classes)
    made = settle(made, jnp.arange(30) % classes, key=jax.random.key(1))
    codes, labels = np.random.default_rng(0).normal(size=(count, 3)), np.arange(count) % classes
    whole = made(jnp.asarray(codes, jnp.float32), jnp.asarray(labels))
    monkeypatch.setattr(_generator, "PIECE_IMAGES", 6)
    pieces = made(jnp.asarray(codes, jnp.float32), jnp.asarray(labels))
    np.testing.assert_allclose(pieces, whole, atol=1e-6)
    assert pieces.shape == (count, schema.slots)
