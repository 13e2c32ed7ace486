"""NDPDC: images whose class means in views are the measured ones."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_schema

import limbeck as lk
from limbeck.methods import COUNTS
from limbeck.methods.distribution_matching.ndpdc import IMAGES, VIEWS
from limbeck.methods.tiles import unpacked

TINY = {"per_class": 1, "views": 2, "filters": 4, "steps": 30}


def release_of(tmp_path, **settings: object) -> lk.Release:
    schema = replace(image_schema(), rows=3000)
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 3
    images = np.zeros((3000, 8, 8, 1), np.uint8)
    for row, label in enumerate(labels):  # a bright bar at a height of its own
        images[row, 2 * label : 2 * label + 2] = 200
    images += rng.integers(0, 50, images.shape).astype(np.uint8)
    return lk.distill(
        lk.read((images, labels), schema),
        lk.NDPDC(**TINY | settings),  # type: ignore[arg-type]
        lk.Budget(10.0, 1e-5),
        out=tmp_path / "release",
        seed=0,
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
    )


def test_images_show_their_class(tmp_path) -> None:
    source = release_of(tmp_path).source
    pictures = source.slots.reshape(3, 8, 8)
    for label, picture in enumerate(pictures):
        bars = picture.reshape(4, 2, 8).mean(axis=(1, 2))[:3]
        assert bars.argmax() == label


def test_what_images_learn_from_is_charged_once_class_counts_too() -> None:
    """The authors' program draws by exact class sizes, which its price rests on, too."""
    charges = {c.name: c for c in lk.plan(lk.NDPDC(), image_schema(), lk.Budget(1.0)).charges}
    assert set(charges) == {COUNTS, IMAGES, VIEWS}
    assert all(c.steps == 1 and c.sampling is None and c.noise > 0 for c in charges.values())


def test_several_pictures_in_one_image(tmp_path) -> None:
    release = release_of(tmp_path, tiles=2)
    source = release.source
    assert source.slots.shape == (12, 64) and source.stored.shape == (3, 64)
    again = unpacked(jnp.asarray(source.stored), (8, 8, 1), 2)
    assert np.asarray(again) == pytest.approx(source.slots, abs=1e-5)
    assert (source.labels == np.repeat(np.arange(3), 4)).all()
    loaded = lk.Release.load(tmp_path / "release").source
    assert (loaded.stored == source.stored).all()


def test_cut_pictures_come_from_their_own_quarter() -> None:
    stored = jnp.zeros((1, 4, 4, 1)).at[0, :2, 2:].set(1.0).reshape(1, -1)
    pictures = np.asarray(unpacked(stored, (4, 4, 1), 2))
    assert pictures.max(axis=1) == pytest.approx([0, 1, 0, 0])
    assert jax.numpy.allclose(pictures[1], 1.0)


def test_what_is_refused(tmp_path) -> None:
    budget = lk.Budget(1.0, 1e-5)
    with pytest.raises(lk.LimbeckError, match="ndpdc is for images"):
        lk.plan(lk.NDPDC(), table_schema(), budget)
    with pytest.raises(lk.LimbeckError, match="8 x 8 pixels cannot be cut into 3 x 3"):
        lk.plan(lk.NDPDC(tiles=3), image_schema(), budget)
    with pytest.raises(lk.LimbeckError, match="views"):
        lk.NDPDC(views=0)


def test_views_of_many_networks_fit_into_memory() -> None:
    """What lies between the layers of all views is in memory at once: of few rows, then."""
    schema = replace(image_schema(28), rows=60_000)
    plan, looking = lk.plan(lk.NDPDC(), schema, lk.Budget(1.0, 1e-6)), lk.NDPDC().looking(schema, 0)
    planned = plan.questions[-1]
    mechanism = planned.question.calibrated(planned.charges, plan.unit)
    assert mechanism.rows_at_once(schema, looking) * looking.between * 4 < 1 << 30
