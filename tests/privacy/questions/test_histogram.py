"""Histograms: they count, in whole numbers where the noise is, and at a sensitivity of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import asked, table_rows, table_schema

import limbeck as lk
from limbeck.privacy import Histogram, LaplaceHistogram, Unit


def test_histograms_count() -> None:
    rows = table_rows(4000)
    counts = asked(lk.read(rows, table_schema()), Histogram(name="n", bins=3), epsilon=10.0)
    truth = [(rows["ill"] == v).sum() for v in ("no", "yes", "unsure")]
    assert np.abs(counts - truth).max() < 5


def test_laplace_histograms_count_in_whole_numbers() -> None:
    rows = table_rows(4000)
    question = LaplaceHistogram.of_classes("n", table_schema(), epsilon=0.5)
    assert question.measured()[0].noise_multiplier == 2.0
    counts = asked(lk.read(rows, table_schema()), question)
    assert np.array_equal(counts, np.rint(counts))
    assert abs(counts[0] - (rows["ill"] == "no").sum()) < 60


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_counts_have_sensitivity_one_whatever_a_charge_says(epsilon: float | None) -> None:
    question = Histogram(name="n", bins=3)
    if epsilon is not None:
        question = LaplaceHistogram(name="n", bins=3, epsilon=epsilon)
    (charge,) = question.measured()
    for wrong in (0.01, 2.0):
        with pytest.raises(RuntimeError, match="sensitivity"):
            question.calibrated([replace(charge, sensitivity=wrong, noise_multiplier=1.0)], Unit())
