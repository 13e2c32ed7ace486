"""Every method for tables that the engine spark carries measures there what it measures here, to the bit.

Without Spark: on a cluster in this process, with the very tasks that Spark is given.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine_cases import COUNTS, SCHEMA, measured, people
from laws import CASES, Case
from small_cluster import Frame, Nowhere, on_cluster

import limbeck as lk
from limbeck.engines import spark
from limbeck.engines.remote import RemoteDataset
from limbeck.methods import AbstractMeasureOnce
from limbeck.privacy import Noise, Private


def carried(case: Case) -> bool:
    """Whether all that the method asks is summed on a cluster."""
    asked = case.method.questions(case.schema)
    return not case.schema.image and all(one.question.runs_on("spark") for one in asked)


class Noted(dict[str, np.ndarray]):
    """Answers by their names; none is given again."""

    def load(self, name: str, *, digest: str) -> None:
        return None

    def save(self, name: str, answer: np.ndarray, *, digest: str) -> None:
        self[name] = answer


def answers(case: Case, data: lk.Dataset) -> Noted:
    """What a run's questions are answered with, under frozen noise."""
    seen = Noted()
    plan = lk.plan(case.method, case.schema, lk.Budget(2.0), engine=data.engine_name)
    private = Private(data, plan.questions, plan.unit, Noise.from_seed(0), seen)
    private.estimate()
    method = case.method
    ask = method.measure if isinstance(method, AbstractMeasureOnce) else method.run
    ask(private, seed=0, progress=lambda phase, done: None)
    private.executed()
    return seen


def same(one: Noted, other: Noted) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[n], other[n], equal_nan=values.dtype.kind == "f")
        for n, values in other.items()
    )


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.xdist_group(c.name), id=c.name) for c in CASES if carried(c)]
)  # fmt: skip
def test_parts_on_a_cluster_measure_what_one_process_measures(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "MERGERS", 2)  # so that partial sums meet before they come here
    rows: Any = case.rows()
    here = answers(case, case.dataset(rows))
    shuffled = rows.sample(frac=1, random_state=0)
    assert same(answers(case, on_cluster(shuffled, case.schema, (0, 7, 90))), here)
    assert not same(answers(case, on_cluster(shuffled[1:], case.schema, (70,))), here)


class Connected(Frame):
    """A frame of Spark Connect: it does not say in how many parts it is, nor how far they are."""

    @property
    def rdd(self) -> Any:
        raise NotImplementedError


def test_a_frame_of_spark_connect_is_taken_like_any_other() -> None:
    table = pa.Table.from_pandas(people(), preserve_index=False)
    frame = Connected([table[:7].to_batches(), table[7:].to_batches()])
    data = RemoteDataset(SCHEMA, Nowhere(), partial(spark.SparkEngine, frame))
    assert measured(data, COUNTS)[0] == measured(lk.read(people(), SCHEMA), COUNTS)[0]


def test_persons_are_bounded_alike_wherever_their_rows_are() -> None:
    case = next(c for c in CASES if c.name == "marginals, bounds and values estimated")
    person = lk.Person(column="id", rows_at_most=2, persons=60, rows_per_person="estimate")
    case = replace(case, schema=replace(case.schema, person=person))
    rows: Any = case.rows()
    rows = rows.assign(
        id=[f"p{number % 60}" if number % 9 else None for number in range(len(rows))]
    )
    here = answers(case, case.dataset(rows))
    assert same(answers(case, on_cluster(rows[::-1], case.schema, (3, 100))), here)
