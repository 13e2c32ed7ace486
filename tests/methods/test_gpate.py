"""G-PATE: what it refuses, what it is charged for, and that its generator learns."""

from __future__ import annotations

import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TEACH, image_schema, planned, table_schema
from patterns import two_patterns

import limbeck as lk
from limbeck.methods.gpate.gradient_aggregator import GradientAggregator
from limbeck.privacy import Noise, Unit
from limbeck.run import Recipe

RECIPES = Path(__file__).parent.parent.parent / "recipes"
IMAGES = image_schema()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teachers": 101}, "more than the 100 rows"),
        ({"teachers": 0}, "teachers > 0"),
        ({"projection": 65, "view": "rows"}, "cannot be projected to 65"),
        ({"projection": -1}, "projection >= 0"),
        ({"aggregation": "guess"}, "aggregation"),
        ({"network": "large"}, "network"),
        ({"view": "nothing"}, "view"),
        ({"threshold": 1.5}, "threshold < 1"),
        ({"bins": 1}, "bins >= 2"),
        ({"momentum": 1.0}, "momentum < 1"),
        ({"channels": (4,)}, "two channels"),
        ({"teachers": 100, "view": "rows", "teacher_hidden": (200_000,)}, "GiB"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_bad_settings_are_refused_before_anything_is_read(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.plan(lk.GPATE(**TEACH | settings), IMAGES, lk.Budget(1.0))


def test_the_number_of_rows_must_be_known_or_counted() -> None:
    schema = table_schema(rows=None)
    lk.plan(lk.GPATE(**TEACH), schema, lk.Budget(1.0))
    with pytest.raises(lk.LimbeckError, match="how many rows"):
        lk.plan(lk.GPATE(**TEACH, count_epsilon=0.0), schema, lk.Budget(1.0))


def test_the_class_ratio_costs_its_epsilon() -> None:
    made = lk.plan(lk.GPATE(**TEACH), table_schema(), lk.Budget(1.0))
    counts = made.charges[0]
    assert counts.mechanism == "discrete laplace" and counts.noise == 100.0
    assert made.cost.epsilon == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("recipe", "data", "epsilon", "noises"),
    [
        ("g-pate-eps1.toml#mnist", "mnist", 1.0, (3000, 1000)),
        ("g-pate-eps1.toml#fashion-mnist", "fashion-mnist", 1.0, (3000, 1000)),
        ("g-pate-eps10.toml#mnist", "mnist", 10.0, (600, 100)),
        ("g-pate-eps1.toml#credit", "credit", 1.0, (1500, 600)),
    ],
)
@pytest.mark.filterwarnings("ignore:delta:limbeck.errors.LimbeckWarning")  # it is the paper's
def test_recipes_have_the_published_noise(
    recipe: str, data: str, epsilon: float, noises: tuple[float, float]
) -> None:
    """The number of updates is what an honest budget allows at that noise."""
    method = Recipe.load(RECIPES / recipe).method
    made = lk.plan(method, lk.datasets.schema(data), lk.Budget(epsilon, 1e-6 if data == "credit" else 1e-5))  # fmt: skip
    found = [c.noise for c in made.charges if c.mechanism == "discrete gaussian"]
    # Of one update a vector of votes is measured: noise is that of a single count.
    assert found == pytest.approx(noises, rel=0.02)


def test_every_variant_of_the_recipes_can_be_planned() -> None:
    import tomllib

    paths = sorted(RECIPES.glob("g-pate*.toml"))
    assert paths
    for path in paths:
        for variant in tomllib.loads(path.read_text())["variants"]:
            method = Recipe.load(f"{path}#{variant}").method
            data = "credit" if "credit" in variant else "mnist"
            assert method.questions(lk.datasets.schema(data))


@pytest.mark.parametrize(
    "settings",
    [
        {"aggregation": "directions"},
        {"aggregation": "histogram", "clip": 0.01},
        {"aggregation": "confident-gnmax", "clip": 1e-3, "threshold": 0.3},
    ],
    ids=lambda s: s["aggregation"],
)
def test_the_generator_learns_what_classes_look_like(settings: dict[str, object]) -> None:
    """Without noise: to see that gradients point the right way."""
    method = lk.GPATE(
        **TEACH | {"teachers": 20, "updates": 40, "points": 24, "hidden": (32,), "channels": (8, 4)}
        | {"teacher_rate": 0.01}, teacher_decay=0.2, view="rows", **settings,
    )  # fmt: skip
    release = lk.distill(
        lk.read(two_patterns(100), IMAGES), method, lk.Budget(math.inf), seed=0, non_private=True
    )
    drawn = release.sample(200, seed=0)
    images = drawn.images.astype(float).reshape(-1, 8, 8)
    left, below = (images[drawn.labels == c].mean(axis=0) for c in (0, 1))
    assert left[:4, :4].mean() > left[:4, 4:].mean() + 30
    assert below[4:, 4:].mean() > below[:4, 4:].mean() + 30


def test_one_teacher_without_noise_is_a_plain_gan() -> None:
    """The paper's yardstick walks the same road, and spends nothing on noise."""
    method = Recipe.load(RECIPES / "g-pate-gan.toml#published").method
    assert isinstance(method, lk.GPATE) and method.teachers == 1
    made = lk.plan(method, lk.datasets.schema("mnist"), lk.Budget(math.inf))
    assert made.charges[0].noise == 0


def test_projections_and_votes_are_undone() -> None:
    """Without noise and with full agreement a gradient comes back, up to the width of a bin."""
    rng = np.random.default_rng(0)
    gradients = rng.uniform(-0.9, 0.9, (3, 6)).astype(np.float32)
    for aggregation in ("histogram", "confident-gnmax"):
        aggregator = GradientAggregator(
            aggregation=aggregation, points=3, width=6, projection=0, updates=1,
            clip=1.0, bins=200, threshold=0.5, threshold_share=0.3,
        )  # fmt: skip
        votes = np.tile(np.asarray(aggregator.answer(jnp.asarray(gradients), None)), (5, 1))
        ballot = aggregator.ballot
        tally = ballot.calibrated(planned(ballot, multiplier=0.0)[0].charges, Unit())
        found = tally.finish(tally.counted(votes), lambda charge: Noise().stream(charge.name))
        tallies = [answer.values for answer in found]
        assert np.allclose(aggregator.restore(tallies, None, np.full(3, 5)), gradients, atol=0.0051)
