"""PATE-GAN: shards that are apart, verdicts at their price, and a generator that follows the student."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import TEACH, image_rows, image_schema, table_schema
from patterns import learns_both_patterns

import limbeck as lk
from limbeck.methods.adversarial.apprentice import Lessons
from limbeck.methods.gpate.critic import Consultation
from limbeck.privacy import Faculty, Noise, RowAccess
from limbeck.privacy.teachers.ensemble import Ensemble
from limbeck.run import Recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "pate-gan.toml"
IMAGES = image_schema()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teachers": 101}, "more than the 100 rows"),
        ({"verdicts": "guess"}, "verdicts"),
        ({"remembered": 0}, "remembered > 0"),
        ({"student_decay": 1.0}, "student_decay < 1"),
        ({"student_hidden": (0,)}, "student_hidden"),
        ({"view": "nothing"}, "view"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, dict) else "",
)
def test_bad_settings_are_refused_before_anything_is_read(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(lk.LimbeckError, match=message):
        lk.plan(lk.PATEGAN(**TEACH | settings), IMAGES, lk.Budget(1.0))


def test_verdicts_cost_one_teachers_votes_in_every_update() -> None:
    """A teacher that changes its mind about all rows moves two counts of each by one."""
    for shards, most in (("mixed", 50), ("classes", 17)):
        method = lk.PATEGAN(**TEACH | {"points": 50, "updates": 7}, shards=shards)
        (charge,) = method.ballot(IMAGES).measured()
        assert charge.sensitivity == pytest.approx(math.sqrt(2 * most))
        assert charge.steps == 7 and charge.sampling is None


def states(data: lk.Dataset, teachers: int) -> list[Any]:
    """The hidden states of all teachers after a question."""
    method = lk.PATEGAN(
        teachers=teachers, batch=40, view="rows", shards="mixed", teacher_hidden=(5,)
    )
    held = RowAccess(data=data, noise=Noise.from_seed(0), progress=lambda done: None)
    ensemble = Ensemble.of_rows(Faculty(method.judge(IMAGES, 3)), held)
    rows = jax.random.uniform(jax.random.key(0), (6, IMAGES.slots))
    labels = np.arange(6, dtype=np.int32) % 3
    list(ensemble.ask(Consultation(rows, labels, rows, labels, None)))
    (state,) = ensemble._states
    flat = jax.tree_util.tree_leaves(state.weights)
    return [[np.asarray(leaf[t]) for leaf in flat] for t in range(teachers)]


def test_every_teacher_learns_from_its_own_shard_and_no_other() -> None:
    """The authors' program of 2020 showed all teachers the last shard: with few rows, every one of them
    learned from each."""
    images, labels = image_rows(40)
    whole = states(lk.read((images, labels), IMAGES), 8)
    fresh = states(lk.read((images[:0], labels[:0]), IMAGES), 8)
    learned = [any((a != b).any() for a, b in zip(*pair)) for pair in zip(whole, fresh)]  # noqa: B905
    assert sum(learned) >= 6
    changed = set()
    for gone in range(0, 40, 3):
        keep = np.arange(40) != gone
        less = states(lk.read((images[keep], labels[keep]), IMAGES), 8)
        moved = [
            t
            for t in range(8)
            if any((a != b).any() for a, b in zip(whole[t], less[t], strict=True))
        ]
        assert len(moved) == 1
        changed |= set(moved)
    assert len(changed) >= 4


def test_the_price_is_known_before_the_votes() -> None:
    """The authors' programs take a bound from private votes for epsilon, and stop by it."""
    method = lk.PATEGAN(**TEACH, student_steps=1, generator_steps=1, student_hidden=(4,))
    made = lk.plan(method, IMAGES, lk.Budget(1.0))
    images, labels = image_rows(40)
    for rows in ((images, labels), (np.zeros_like(images), labels)):
        release = lk.distill(lk.read(rows, IMAGES), method, lk.Budget(1.0), seed=1, check=False)
        assert release.certificate["charges"] == [c.facts() for c in made.charges]


def test_the_generator_learns_what_classes_look_like() -> None:
    method = lk.PATEGAN(
        teachers=20, updates=60, points=24, code=3, hidden=(32,), channels=(8, 4), view="rows",
        student_hidden=(16,), variety=0.1,
    )  # fmt: skip
    learns_both_patterns(method, IMAGES, by=30)


def test_ranks_tell_rows_apart_that_are_all_generated() -> None:
    """Half of a class is voted for, however unreal all of it looks; without ranks nothing is."""
    weights = np.linspace(0.1, 1.0, IMAGES.slots, dtype=np.float32)
    rows = -np.random.default_rng(0).random((12, IMAGES.slots)).astype(np.float32)
    labels = np.arange(12, dtype=np.int32) % 3
    seen = jnp.asarray(rows), jnp.asarray(labels)
    asked = Consultation(*seen, *seen, None)
    for verdicts, wanted in (("ranks", 2), ("shares", 0)):
        judge = lk.PATEGAN(view="rows", verdicts=verdicts, shards="mixed").judge(IMAGES, 0)
        state = judge.start(0, 0)
        head = state.weights.head
        taught = eqx.tree_at(lambda h: h.weight, head, np.tile(weights[:, None], (1, 3)))
        state = state._replace(weights=eqx.tree_at(lambda w: w.head, state.weights, taught))
        votes = np.asarray(judge.answer(state, asked))
        assert [(votes[labels == c] == 1).sum() for c in range(3)] == [wanted] * 3


def test_lessons_forget_the_oldest_and_weigh_what_there_is() -> None:
    lessons = Lessons(2, 3, 4)
    for number in range(3):
        lessons.note(np.full((3, 4), number), np.zeros(3, int), np.full(3, 0.5))
        rows, _, _, weights = lessons.flat()
        assert weights.sum() == pytest.approx(1.0)
    assert sorted(set(rows.ravel())) == [1.0, 2.0]


def test_every_variant_of_the_recipe_can_be_planned() -> None:
    for variant in tomllib.loads(RECIPE.read_text())["variants"]:
        method = Recipe.load(f"{RECIPE}#{variant}").method
        data = {"quick-images": "mnist", "quick-tables": "adult"}.get(variant, variant)
        assert isinstance(method, lk.PATEGAN) and method.questions(lk.datasets.schema(data))
    assert lk.PATEGAN().questions(table_schema(rows=60_000))
