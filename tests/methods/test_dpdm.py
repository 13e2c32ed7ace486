"""DPDM: one clipped gradient a row, however often it is made noisy; images come from noise alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import image_schema, table_schema

import limbeck as lk
from limbeck.methods.diffusion.diffused import noise_sizes
from limbeck.methods.diffusion.flat_denoiser import FlatDenoiser
from limbeck.nets import Denoiser
from limbeck.privacy import PlainGradients
from limbeck.privacy.poisson.gradient_sum import GradientSum

SIDE = 8
FLAT = FlatDenoiser(shape=(SIDE, SIDE, 1), classes=3, width=4, depth=1, draws=3, seed=5)
LIFETIME = lk.Lifetime(epsilon=20.0, delta=1e-3, filter="sum")


def rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    slots = np.random.default_rng(seed).random((count, SIDE**2), dtype=np.float32)
    return slots, np.arange(count) % 3


def gradients(
    slots: np.ndarray, labels: np.ndarray, *, flat: FlatDenoiser = FLAT, step: int = 0
) -> np.ndarray:
    given = flat.given(flat.start(jax.random.key(1)) + 0.05, step)
    made = PlainGradients(loss=flat.row_loss, chunk=4).blocks(given, slots, labels)
    return np.concatenate([part for _, part in made])


def test_a_rows_gradient_is_its_own() -> None:
    """The noise that an image is made noisy with follows from the seed, the step and the row, not from its place in
    the batch or who else is there."""
    slots, labels = rows(12)
    whole = gradients(slots, labels)
    turned = gradients(slots[::-1].copy(), labels[::-1].copy())[::-1]
    np.testing.assert_allclose(whole, turned, rtol=1e-4, atol=1e-5)
    alone = gradients(slots[3:4], labels[3:4])
    np.testing.assert_allclose(whole[3], alone[0], rtol=1e-4, atol=1e-5)


def test_every_step_and_row_has_other_noise() -> None:
    slots, labels = rows(1)
    same = np.repeat(slots, 2, axis=0)
    other = same + np.asarray([[0.0], [1e-6]], np.float32)  # another row by a hair
    one, near = gradients(same, np.zeros(2, int)), gradients(other, np.zeros(2, int))
    np.testing.assert_allclose(one[0], one[1], rtol=1e-4, atol=1e-5)
    assert np.abs(near[0] - near[1]).max() > 0.01
    later = gradients(slots, labels, step=1)
    assert np.abs(later[0] - one[0]).max() > 0.01
    assert (one[:, -1] == 0).all()  # the step's number is no number that is learned


@pytest.mark.parametrize("draws", [1, 16])
def test_draws_do_not_enlarge_what_a_row_adds(draws: int) -> None:
    """Noise multiplicity: the mean over the draws is clipped once."""
    flat = replace(FLAT, draws=draws)
    slots, labels = rows(1)
    summed = GradientSum(sensitivity=0.01, noise=0.01, size=flat.size + 1, shape=64)

    def load(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        padded = np.zeros((64, SIDE**2), np.float32), np.full(64, -1)
        padded[0][: len(places)], padded[1][: len(places)] = slots[places], labels[places]
        return padded

    given = flat.given(flat.start(jax.random.key(1)) + 0.05, 0)
    source = PlainGradients(loss=flat.row_loss, chunk=4)
    total = summed.total(source, given, np.zeros(1, int), load) * summed.grid
    assert 0.0099 < np.linalg.norm(total) <= 0.01


def bars(side: int = SIDE) -> lk.Dataset:
    """A bright bar at a height of its own for every class."""
    labels = np.arange(3000) % 3
    images = np.random.default_rng(0).integers(0, 50, (3000, side, side, 1)).astype(np.uint8)
    for label in range(3):
        images[labels == label, 2 * label + 1 : 2 * label + 3] += 200
    return lk.read((images, labels), replace(image_schema(side), rows=3000, lifetime=LIFETIME))


def test_images_of_a_class_look_like_it(tmp_path: Path) -> None:
    method = lk.DPDM(steps=80, batch=300, draws=2, width=6, sampler_steps=8)
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    release = lk.distill(bars(), method, lk.Budget(10.0, 1e-5), seed=0, rows=60, ledger=book)
    (charge,) = (c for c in release.certificate["charges"] if c["sampling"] is not None)
    assert charge["steps"] == 80 and charge["sampling"] == 0.1 and charge["sensitivity"] == 1.0
    images, labels = release.data
    for label in range(3):
        mean = images[labels == label].mean(axis=(0, 2, 3))
        assert set(np.argsort(mean)[-2:]) == {2 * label + 1, 2 * label + 2}
    more = release.sample(30, where={"label": 2})
    assert set(more.labels.tolist()) == {2}


def test_drawing_an_image_does_not_depend_on_others(tmp_path: Path) -> None:
    method = lk.DPDM(steps=2, batch=300, draws=1, width=3, sampler_steps=3)
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    release = lk.distill(bars(), method, lk.Budget(10.0, 1e-5), seed=0, rows=5, ledger=book)
    source, schema = release.source, release.schema

    class Fixed:
        """The same noise for the first rows, whatever their number."""

        def standard_normal(self, shape: tuple[int, ...], dtype: object) -> np.ndarray:
            return np.random.default_rng(1).standard_normal((9, *shape[1:]), dtype)[: shape[0]]

    labels = np.arange(9) % 3
    nine, _ = source.of_classes(schema, labels, Fixed(), 0)
    four, _ = source.of_classes(schema, labels[:4], Fixed(), 0)
    np.testing.assert_allclose(nine[:4], four, atol=1e-4)


@pytest.mark.parametrize("shape", [(10, 7, 3), (5, 4, 1), (8, 8, 1)])
def test_the_network_takes_pictures_of_any_size(shape: tuple[int, int, int]) -> None:
    net = Denoiser(shape, 2, width=3, key=jax.random.key(0))
    noisy = jnp.ones((2, *shape))
    found = net(noisy, jnp.asarray([0.1, 5.0]), jnp.asarray([0, 1]))
    assert found.shape == noisy.shape
    # Before it has learned anything it returns what came where there is little noise, and nothing where there is much.
    np.testing.assert_allclose(found[0], 1 / 1.04, rtol=1e-4)
    np.testing.assert_allclose(found[1], 0.25 / 25.25, rtol=1e-4)


def test_noise_falls_to_nothing() -> None:
    sizes = noise_sizes(18)
    assert sizes[0] == pytest.approx(20) and sizes[-2] == pytest.approx(0.02) and sizes[-1] == 0
    assert (np.diff(sizes) < 0).all()


def test_what_is_refused() -> None:
    budget = lk.Budget(1.0, 1e-5)
    with pytest.raises(lk.LimbeckError, match="dpdm is for images"):
        lk.plan(lk.DPDM(), table_schema(), budget)
    with pytest.raises(lk.LimbeckError, match="approximate number of rows"):
        lk.plan(lk.DPDM(), replace(image_schema(), rows=None), budget)
    with pytest.raises(lk.LimbeckError, match="sampler_steps"):
        lk.DPDM(sampler_steps=1)
    with pytest.raises(lk.LimbeckError, match="noise_mean"):
        lk.DPDM(noise_mean=float("inf"))
