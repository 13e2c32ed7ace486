"""The four states of a cell, and which of them stop a run."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.data import bare_rows
from limbeck.schema import STATES, Fit, can_tell, enough_for_gaps, fits_of

NUMBER = lk.Numeric(name="x", min=0, max=10)
DAY = lk.Date(name="x", min=datetime.date(2000, 1, 1), max=datetime.date(2009, 12, 31))
VALUE = lk.Category(name="x", values=("no", "yes"))


def states(column: object, cells: object) -> list[str]:
    schema = lk.Schema(dataset="d", rows=9, columns=(column,))  # type: ignore[arg-type]
    found = bare_rows(lk.read(pd.DataFrame({"x": cells}), schema)).states
    assert found is not None
    return [STATES[state] for state in found[:, 0]]


@pytest.mark.parametrize(
    ("column", "usable", "outside", "unknown"),
    [
        (NUMBER, "5", "11", "1,5"),
        (NUMBER, " 1e1 ", "inf", "7 EUR"),
        (DAY, "2001-02-03", "1999-12-31", "03.02.2001"),
        (VALUE, "no", None, "No"),
        (lk.Category(name="x", values=(False, True), boolean=True), "YES", None, "perhaps"),
        (lk.Numeric(name="x", outer=(0, 100)), "50", "101", "many"),
        (lk.Category(name="x", most=3), "anything", None, None),
    ],
)
def test_a_cell_is_in_one_of_four_states(
    column: object, usable: str, outside: str | None, unknown: str | None
) -> None:
    cells = [usable, None, "", " NA ", "nan", outside, unknown]
    wanted = ["usable", *["missing"] * 4, "outside" if outside else "missing"]
    assert states(column, cells) == [*wanted, "unknown" if unknown else "missing"]


def test_states_of_typed_columns() -> None:
    assert states(NUMBER, [1.0, np.nan, -1.0]) == ["usable", "missing", "outside"]
    moments = pd.to_datetime(["2001-01-01", None, "1999-01-01"])
    assert states(DAY, moments) == ["usable", "missing", "outside"]
    coded = pd.Categorical(["5", None, "x", "NA"])
    assert states(NUMBER, coded) == ["usable", "missing", "unknown", "missing"]


def test_a_picture_is_outside_when_most_of_it_is() -> None:
    image = lk.Image(height=1, width=4, min=0.0, max=1.0)
    schema = lk.Schema(dataset="d", rows=3, columns=(image,))
    pixels = np.array([[0, 1, 1, 9], [9, 9, 9, 0], [np.nan, np.nan, np.nan, 0]])
    found = bare_rows(lk.read((pixels.reshape(3, 1, 4), None), schema)).states
    assert found is not None and found[:, 0].tolist() == [0, 2, 2]


def test_missing_is_unusable_where_it_is_not_declared() -> None:
    gaps = (80.0, 20.0, 0.0, 0.0)
    declared = lk.Numeric(name="x", min=0, max=1, missing=True)
    assert Fit(NUMBER, gaps).unusable == 20 and Fit(declared, gaps).unusable == 0
    assert "missing = true" in Fit(NUMBER, gaps).words
    assert Fit(NUMBER, gaps).exceeds(0.05) and not Fit(NUMBER, gaps).mostly_unusable
    assert Fit(NUMBER, (20.0, 80.0, 0.0, 0.0)).mostly_unusable


PREDICTED = lk.Category(name="x", values=("no", "yes"), label=True)
GAPPED = lk.Numeric(name="x", min=0, max=10, missing=True)
TARGET = lk.Numeric(name="x", min=0, max=10, target=True)


@pytest.mark.parametrize(
    ("column", "counts", "stops"),
    [
        (NUMBER, (89, 11, 0, 0), True),
        (NUMBER, (90, 10, 0, 0), False),
        (NUMBER, (89, 6, 0, 5), True),  # neither tells a value from none
        (NUMBER, (80, 0, 20, 0), False),  # clipped, as declared
        (GAPPED, (60, 20, 0, 20), False),
        (GAPPED, (45, 0, 0, 55), True),
        (DAY, (89, 0, 0, 11), True),
        (VALUE, (89, 11, 0, 0), True),
        (VALUE, (80, 0, 0, 20), False),  # values that are left out on purpose
        (PREDICTED, (80, 20, 0, 0), False),  # such rows count as nothing
        (TARGET, (80, 20, 0, 0), False),
    ],
)
def test_gaps_that_nobody_declared_stop_a_run(
    column: Any, counts: tuple[float, ...], stops: bool
) -> None:
    assert Fit(column, counts).stops == stops


def stopped(rows: float, gaps: float, noise: float) -> float:
    """In what share of runs a column with this share of gaps stops its run."""
    rng = np.random.default_rng(1)
    counts = rows * np.array([1 - gaps, gaps, 0.0, 0.0]) + rng.normal(0, noise, (5000, 4))
    return float(np.mean([f.stops for f in fits_of([VALUE] * 5000, counts, noise=noise)]))


def test_gaps_stop_a_run_beyond_noise() -> None:
    """Noise as in 5,000 rows of five columns, and 6,300 of eleven, at epsilon 1."""
    for rows, noise in ((5000, 83.0), (6300, 124.0)):
        assert stopped(rows, 0.175, noise) > 0.99
        assert stopped(rows, 0.03, noise) < 1e-3
        assert stopped(rows, 0.0, noise) == 0
    assert 0.96 < stopped(enough_for_gaps(20.0), 0.2, 20.0) < 0.99
    assert stopped(1000, 0.0, 100.0) < 1e-3  # where noise is more than a tenth of the rows


def test_a_label_cannot_be_declared_with_gaps() -> None:
    told = Fit(PREDICTED, (80, 20, 0, 0)).words
    assert "count as nothing" in told and "missing = true" not in told


def test_noise_alone_does_not_condemn_a_column() -> None:
    """Four standard deviations of the difference: on no rows at all, next to never."""
    rng = np.random.default_rng(0)
    drawn = fits_of([NUMBER] * 5000, rng.normal(0, 50, (5000, 4)), noise=50.0)
    assert sum(f.stops for f in drawn) <= 3
    assert sum(f.exceeds(0.05) for f in drawn) <= 3
    assert not can_tell(drawn) and can_tell([Fit(NUMBER, (450.0, 0, 0, 0), noise=50.0)])
    assert Fit(NUMBER, (0, 0, 0, 500), noise=50.0).mostly_unusable
