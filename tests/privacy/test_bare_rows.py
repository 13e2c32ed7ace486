"""Rows themselves are had at infinite epsilon alone, and never kept."""

from __future__ import annotations

import math

import pytest
from helpers import ask, table_rows
from kinds import (
    Kept,
    data,
)

import limbeck as lk
from limbeck.privacy import (
    BareRows,
    Noise,
)

# ---- rows themselves -------------------------------------------------------------------------


def test_rows_are_only_had_at_infinite_epsilon_and_never_kept() -> None:
    given, kept = data(table_rows(9)), Kept()
    with pytest.raises(lk.LimbeckError, match="infinity"):
        ask(given, BareRows()).ask("bare rows")
    with pytest.raises(lk.LimbeckError, match="law mode"):
        ask(given, BareRows(), epsilon=math.inf, noise=Noise.from_seed(0, law=True)).ask(
            "bare rows"
        )
    private = ask(given, BareRows(), epsilon=math.inf, answers=kept)
    answer = private.ask("bare rows")
    assert len(answer.values) == 9 and answer.law == "none" and not kept.files
    assert private.executed()[0].noise_multiplier == 0
