"""The list of planted bugs is sound, and a quick dozen of them are noticed; `make mutants` tries them all."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RUN = ROOT / "benchmarks" / "mutants" / "run.py"


@pytest.fixture(scope="module")
def run() -> Any:
    spec = spec_from_file_location("mutants_run", RUN)
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules["mutants_run"] = module
    spec.loader.exec_module(module)
    return module


def test_every_mutant_can_be_planted_and_names_its_tests(run: Any) -> None:
    """Whoever changes a line in which a bug is planted brings the list up to date."""
    listed, places = run.mutants(), run.places_of_tests(ROOT)
    assert len(listed) >= 80 and sum(m.fast for m in listed) >= 12
    for mutant in listed:
        assert mutant.planted(ROOT) != (ROOT / "limbeck" / mutant.file).read_text()
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            run.node(test, places)


def test_every_outcome_on_the_page_is_a_bug_that_was_noticed(run: Any) -> None:
    found, page = json.loads(run.RESULTS.read_text()), run.PAGE.read_text()
    for mutant in run.mutants():
        if mutant.name in found:
            assert found[mutant.name]["state"] == "caught", mutant.name
            assert f"| {mutant.name} | `{mutant.file}` |" in page


def test_a_dozen_planted_bugs_are_noticed() -> None:
    """One at a time, in a copy of the tree, by the tests that are named for it."""
    words = [sys.executable, str(RUN), "--fast", "--no-baseline", "--workers", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].endswith(" 0 not noticed")
