"""PSG: images whose gradients are the measured ones, every one of which is charged."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_schema

import limbeck as lk
from limbeck.methods.distribution_matching.matched_set import MatchedSet, distance
from limbeck.nets import FlatNetwork

TINY = {
    "per_class": 2, "networks": 8, "moments": 2, "batch": 300, "filters": 8, "inner": 2, "updates": 20,
    "learning_rate": 0.01,
}  # fmt: skip
SIDE = 16
NETWORK = FlatNetwork(shape=(SIDE, SIDE, 1), classes=3, filters=8)


def bars() -> lk.Dataset:
    """A bright bar at a height of its own for every class."""
    lifetime = lk.Lifetime(epsilon=20.0, delta=1e-3, filter="sum")
    schema = replace(image_schema(SIDE), rows=3000, lifetime=lifetime)
    labels = np.arange(3000) % 3
    images = np.random.default_rng(0).integers(0, 50, (3000, SIDE, SIDE, 1)).astype(np.uint8)
    for label in range(3):
        images[labels == label, 5 * label : 5 * label + 5] += 200
    return lk.read((images, labels), schema)


def release_of(tmp_path, **settings: object) -> lk.Release:
    return lk.distill(
        bars(),
        lk.PSG(**TINY | settings),  # type: ignore[arg-type]
        lk.Budget(10.0, 1e-5),
        seed=0,
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
    )


def test_images_teach_their_class(tmp_path) -> None:
    source = release_of(tmp_path).source
    assert source.slots.shape == (6, SIDE**2) and 0 <= source.slots.min() <= source.slots.max() <= 1
    given = jnp.asarray(source.slots), jnp.asarray(source.labels), jnp.ones(6)
    slope = jax.jit(jax.grad(NETWORK.mean_loss))
    numbers = NETWORK.start(jax.random.key(5))
    for _ in range(300):
        numbers = numbers - 0.1 * slope(numbers, *given)
    data = bars()
    rows = data._encoded()
    slots = data.schema.expand(rows.cells[:300])
    found = NETWORK.logits(numbers, jnp.asarray(slots)).argmax(axis=1)
    assert (np.asarray(found) == rows.labels[:300]).mean() > 0.9


def test_every_gradient_is_charged(tmp_path, monkeypatch) -> None:
    """The published program carried out one round more than it charged."""
    given = []
    match = MatchedSet.match
    monkeypatch.setattr(MatchedSet, "match", lambda *a: (given.append(a[2]), match(*a))[1])
    release = release_of(tmp_path, networks=3, batches=2, updates=2)
    (charge,) = (c for c in release.certificate["charges"] if c["sampling"] is not None)
    assert charge["steps"] == len(given) == 3 * 2 * 2
    assert charge["sampling"] == 0.1 and charge["sensitivity"] == 0.1
    assert all(gradient.shape == (NETWORK.size,) for gradient in given)


def test_distance_sees_directions_alone() -> None:
    """Of what leads to each output, layer by layer; scales and offsets are left out."""
    one, other = (NETWORK.shaped(NETWORK.start(jax.random.key(i))) for i in range(2))
    assert float(distance(one, one)) == pytest.approx(0, abs=1e-3)
    assert float(distance(one, jax.tree_util.tree_map(lambda a: 7 * a, one))) < 1e-3
    outputs = 3 * 8 + 3
    assert float(distance(one, jax.tree_util.tree_map(jnp.negative, one))) == pytest.approx(
        2 * outputs, rel=1e-3
    )
    assert 0.3 * outputs < float(distance(one, other)) < 1.7 * outputs


def test_what_is_refused() -> None:
    budget = lk.Budget(1.0, 1e-5)
    for wrong, schema, words in (
        (lk.PSG(), table_schema(), "psg is for images"),
        (lk.PSG(), replace(image_schema(), rows=None), "approximate number of rows"),
        (lk.PSG(), image_schema(), "A batch of 1000 is more than the 100 rows"),
    ):
        with pytest.raises(lk.LimbeckError, match=words):
            lk.plan(wrong, schema, budget)
    with pytest.raises(lk.LimbeckError, match="optimiser"):
        lk.PSG(optimiser="lbfgs")
