"""Bounds and values that a schema leaves open: within the budget, and nothing of a lone row."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import ask, planned, table_rows, table_schema
from scipy.stats import norm

import limbeck as lk
from limbeck.privacy import FrequentValues, Noise, Private, Unit
from limbeck.privacy.estimate import estimated_bounds, estimated_values


def _estimating_schema(**income: object) -> lk.Schema:
    columns = {c.name: c for c in table_schema().columns}
    columns["income"] = lk.Numeric(name="income", outer=(-1e6, 1e6), **income)
    columns["town"] = lk.Category(name="town", most=3)
    return replace(table_schema(), columns=tuple(columns.values()), rows=20_000)


def test_bounds_and_values_are_estimated_within_the_budget() -> None:
    schema = _estimating_schema()
    rows = table_rows(20_000)
    rows.loc[0, "town"] = "a secret hamlet"
    made = lk.plan(lk.DPMERF(features=8, steps=1), schema, lk.Budget(1.0, 5e-6))
    names = [c.name for c in made.charges]
    assert names[:4] == [f"bounds of income/{i}" for i in range(3)] + ["values of town"]
    assert made.cost.threshold > 0 and made.cost.epsilon == pytest.approx(1.0)
    data = lk.read(rows, schema)
    settled = Private(data, made.questions, made.unit, Noise.from_seed(0)).estimate()
    income, town = settled.columns[1], settled.columns[2]
    assert set(town.values) <= {"north", "south", "east", "?", "(other)"}
    assert "(other)" in town.values and len(town.values) == 4
    assert not settled.estimated
    low, high = np.quantile(rows["income"], [0.005, 0.995])
    for seed in range(100):  # noise in a few hundred bins: now and then it looks like rows far out
        private = Private(data, made.questions, made.unit, Noise.from_seed(seed))
        bottom, top = estimated_bounds(private, schema.columns[1])  # type: ignore[arg-type]
        assert abs(bottom - low) < 150 and abs(top - high) < 150
        assert seed or (income.min, income.max) == (bottom, top)


def test_data_that_change_between_two_readings_are_refused(
    tmp_path: Path,
) -> None:
    """Rows are read again with what was estimated: other rows would not be those that were paid for."""
    schema, place = _estimating_schema(), tmp_path / "rows.csv"
    rows = table_rows(300)
    rows.to_csv(place, index=False)
    made = lk.plan(lk.DPMERF(features=8, steps=1), schema, lk.Budget(1.0, 5e-6))
    data = lk.read(place, schema)
    data._encoded()
    rows.assign(income=rows["income"].iloc[::-1].to_numpy()).to_csv(place, index=False)
    private = Private(data, made.questions, made.unit, Noise.from_seed(0))
    with pytest.raises(lk.DataError, match="changed while they were being read"):
        private.estimate()


def test_a_value_of_one_row_is_hardly_ever_published() -> None:
    """The threshold keeps a singleton out with probability 1 - threshold_delta."""
    schema = _estimating_schema()
    rows = table_rows(300)
    rows["town"] = [f"hamlet {i}" for i in range(len(rows))]
    question = FrequentValues.of_column(schema.columns[2], 1e-6)  # type: ignore[arg-type]
    data = lk.read(rows, schema)
    for seed in range(5):
        private = ask(data, question, noise=Noise.from_seed(seed))
        assert estimated_values(private, schema.columns[2]) == ("(other)",)  # type: ignore[arg-type]


def test_a_threshold_delta_is_what_it_says() -> None:
    """With a large threshold_delta singletons do pass about that often: the test above can fail."""
    column = lk.Category(name="town", most=10_000)
    schema = replace(_estimating_schema(), columns=(column,))
    rows = pd.DataFrame({"town": [f"hamlet {i}" for i in range(5000)]})
    question = FrequentValues.of_column(column, 0.05)
    private = ask(lk.read(rows, schema), question, multiplier=5.0)
    passed = len(estimated_values(private, column)) - 1
    assert abs(passed / 5000 - 0.05) < 0.012


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("multiplier", [2.0, 5.0])
def test_counts_of_values_have_the_noise_that_was_charged(
    adjacency: str, multiplier: float
) -> None:
    """Told by how often values of two counts pass: their distance is known in deviations."""
    question = FrequentValues(name="values", column="town", most=None, threshold_delta=0.05)
    unit = Unit(adjacency=adjacency)
    (asked,) = planned(question, multiplier=multiplier, adjacency=adjacency)
    noise = multiplier * unit.factor
    assert asked.charges[0].noise == noise
    for count in (1, 1 + round(2 * noise)):
        made = question.calibrated(asked.charges, unit)
        counted = Counter({f"{i}": count for i in range(4000)})
        (answer,) = made.finish(counted, lambda c: Noise.from_seed(1).stream(c.name))
        wanted = norm.cdf((count - 1) / noise + norm.ppf(0.05))
        error = math.sqrt(wanted * (1 - wanted) / 4000)
        assert abs(len(answer.values) / 4000 - wanted) < 5 * error
        assert (answer.noise, answer.law) == (noise, "discrete gaussian")


def test_values_come_most_frequent_first_and_no_more_than_wanted() -> None:
    column = lk.Category(name="town", most=2)
    schema = replace(_estimating_schema(), columns=(column,))
    rows = pd.DataFrame({"town": ["b"] * 300 + ["a"] * 200 + ["c"] * 100})
    private = ask(lk.read(rows, schema), FrequentValues.of_column(column, 1e-6))
    assert estimated_values(private, column) == ("b", "a", "(other)")
