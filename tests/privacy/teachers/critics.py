"""Teachers that tests ask: small critics of small pictures, and one that keeps to no rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from helpers import image_rows, image_schema

import limbeck as lk
from limbeck.methods.gpate.critic import Consultation
from limbeck.privacy import Ballot, Faculty

SCHEMA = image_schema()
METHOD = lk.GPATE(
    teachers=30, updates=3, points=6, aggregation="confident-gnmax", projection=4, clip=1e-3,
    view="rows", network="published", filters=2, teacher_hidden=(5,), teacher_rate=1.0, batch=4, teacher_steps=2,
)  # fmt: skip
APART = replace(METHOD, shards="classes")
SUM = replace(METHOD, aggregation="directions", projection=0, network="per-class", shards="mixed")


def critics(method: lk.GPATE = METHOD) -> tuple[Faculty, Ballot]:
    aggregator = method.aggregator(SCHEMA)
    of_class = (10, 10, 10) if method.classes_apart(SCHEMA) else ()
    return Faculty(method.critic(SCHEMA, 3, of_class), of_class=of_class), aggregator.ballot


def question(method: lk.GPATE = METHOD, seed: int = 0) -> Consultation:
    rows = jax.random.uniform(jax.random.key(seed), (method.points, SCHEMA.slots))
    labels = jnp.arange(method.points) % 3
    matrices = method.aggregator(SCHEMA).drawn(jax.random.key(seed + 1))
    return Consultation(rows, labels, rows, labels, matrices)


def rows_of(count: int, seed: int = 0) -> lk.Dataset:
    return lk.read(image_rows(count, seed), SCHEMA)


@dataclass(frozen=True)
class Liar:
    """A teacher that keeps to no rule."""

    said: float | tuple[float, ...]
    size: int
    whole: bool = False
    count: int = 3
    batch: int = 2
    turns: int = 1
    seed: int = 0

    def start(self, seed: Any, number: Any) -> Any:
        return jnp.zeros(1) + number

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return state + jnp.nan * rows.sum()

    def answer(self, state: Any, question: Any) -> Any:
        kind = jnp.int32 if self.whole else jnp.float32
        return jnp.full(self.size, jnp.asarray(self.said, kind), kind)
