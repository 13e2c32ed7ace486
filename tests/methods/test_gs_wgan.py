"""GS-WGAN: what leaves a critic is bounded and paid for, and the generator follows it."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TEACH, image_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.accounting import mu_for
from limbeck.audits.small import SMALL
from limbeck.features import PooledImages
from limbeck.methods.adversarial.sanitised_interface import SanitisedInterface
from limbeck.methods.gpate.critic import Consultation
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "gs-wgan.toml"
IMAGES = image_schema()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teachers": 101}, "more than the 100 rows"),
        ({"clip": 0.0}, "clip > 0"),
        ({"slope_weight": -1.0}, "slope_weight >= 0"),
        ({"shards": "classes"}, "shards are mixed"),
        ({"generator_steps": 0}, "generator_steps > 0"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_bad_settings_are_refused_before_anything_is_read(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.plan(lk.GSWGAN(**TEACH | settings), IMAGES, lk.Budget(1.0))


def interface(*, stretched: bool) -> SanitisedInterface:
    return SanitisedInterface(
        points=4, width=5, updates=6, teachers=3, clip=2.0, stretched=stretched
    )


@pytest.mark.parametrize("stretched", [True, False])
def test_a_batch_of_gradients_is_one_vector_of_norm_one(stretched: bool) -> None:
    """Each gradient is of norm `clip` at most; all of them together are what a record may turn round."""
    gradients = jnp.asarray(np.random.default_rng(0).standard_normal((4, 5)), jnp.float32)
    gradients = gradients.at[0].multiply(1e6).at[1].multiply(1e-3).at[2].set(0.0)
    sanitised = interface(stretched=stretched)
    said = np.asarray(sanitised.answer(gradients, None), np.float64)
    assert np.linalg.norm(said) <= 1 + 1e-6
    back = np.asarray(sanitised.restore([said], None, np.ones(4)))
    norms = np.linalg.norm(back, axis=1)
    own = np.linalg.norm(np.asarray(gradients), axis=1)
    assert norms[0] == pytest.approx(2.0, rel=1e-5) and norms[2] == 0.0
    assert norms[1] == pytest.approx(2.0 if stretched else own[1], rel=1e-4)


def test_a_record_pays_for_the_turns_of_one_critic() -> None:
    for updates, turns in ((3, 1), (6, 2), (7, 3)):
        method = lk.GSWGAN(**SMALL["gs-wgan"] | {"updates": updates})
        (charge,) = method.ballot(IMAGES).measured()
        assert charge.sensitivity == 2.0 and charge.steps == turns and charge.sampling is None
        assert charge.coordinates == 6 * 16  # points, of 8 x 8 pixels two by two


def test_the_published_noise_is_priced_as_the_whole_batch_that_a_critic_answers() -> None:
    """The authors' program prices each generated row as a critic drawn anew, and says epsilon 10."""
    method = Recipe.load(f"{RECIPE}#mnist").method
    assert isinstance(method, lk.GSWGAN)
    ballot = method.ballot(lk.datasets.schema("mnist"))
    gradients = method.points * ballot.rounds
    assert gradients == 640
    published = 1.07  # noise of each gradient, in parts of what a record moves it
    assert math.sqrt(gradients) / published == pytest.approx(mu_for(379.4, 1e-5), rel=1e-3)
    assert math.sqrt(gradients) / mu_for(10.0, 1e-5) > 11 * published


def test_critics_are_steepest_where_rows_differ() -> None:
    """After some steps a critic sends generated rows towards the real ones of their class."""
    method = lk.GSWGAN(**SMALL["gs-wgan"] | {"teacher_steps": 30, "teacher_hidden": (8,)})
    critic = method.critic(IMAGES, 3)
    wide = method.seen_width(IMAGES)
    generated = jax.random.uniform(jax.random.key(0), (6, wide)) * 0.1
    labels = jnp.arange(6) % 3
    asked = Consultation(generated, labels, generated, labels, None)
    real = 0.4 + 0.2 * labels[:, None] * jnp.ones((6, wide))
    state = critic.start(0, 0)
    for _ in range(30):
        state = critic.learn(state, real, labels, jnp.ones(6, bool), asked)
    towards = np.asarray(critic.answer(state, asked)).reshape(6, wide)
    assert (towards.sum(axis=1) > 0).all() and np.isfinite(towards).all()


def test_pooled_images_are_means_of_their_pixels() -> None:
    rows = np.random.default_rng(0).random((3, 5 * 4 * 2)).astype(np.float32)
    seen = np.asarray(PooledImages(shape=(5, 4, 2))(rows)).reshape(3, 3, 2, 2)
    images = rows.reshape(3, 5, 4, 2)
    assert np.allclose(seen[:, 1, 1], images[:, 2:4, 2:4].mean(axis=(1, 2)), atol=1e-6)
    assert np.allclose(seen[:, 2, 0], images[:, 4, :2].mean(axis=1), atol=1e-6)
    with pytest.raises(lk.LimbeckError, match="pooled"):
        lk.plan(
            lk.GSWGAN(**SMALL["gs-wgan"], view="pooled"),
            lk.datasets.schema("adult"),
            lk.Budget(1.0, 1e-6),
        )


def test_the_generator_learns_what_classes_look_like() -> None:
    method = lk.GSWGAN(
        teachers=10, updates=150, points=24, code=3, hidden=(32,), channels=(8, 4),
        teacher_hidden=(16,), learning_rate=1e-2, average=0.9,
    )  # fmt: skip
    learns_both_patterns(method, IMAGES, by=30)


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        assert isinstance(method, lk.GSWGAN)
        assert method.questions(lk.datasets.schema("fashion-mnist"))
