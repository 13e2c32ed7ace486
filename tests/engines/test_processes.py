"""Two processes under `jax.distributed`: the same bytes, and a clear word when one of them dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people
from started import both

import limbeck as lk

pytestmark = pytest.mark.filterwarnings("ignore::limbeck.LimbeckWarning")


def test_a_process_that_dies_is_told_and_the_same_call_goes_on(tmp_path: Path) -> None:
    found, code = both("die", tmp_path)
    assert code == 2
    assert "Process 1 died while" in found["error"] and "pays nothing more" in found["error"]
    found, code = both("again", tmp_path)
    assert code == 0 and found["runs"] == "1"
    here = measured(lk.read(people(), SCHEMA), COUNTS)[0]
    assert found["counts"] == found["anew"] == here
    assert found["floats"] == measured(lk.read(people(), SCHEMA), FLOATS)[0] != here
