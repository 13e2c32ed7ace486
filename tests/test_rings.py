"""What an auditor reads: `docs/guarantees.md` names the trusted files, and says how many lines they have.

Every module of the rooms below is in one ring, or not trusted for a reason that the page gives. The
lists are held against what a run of `marginals` executes, so that nothing trusted is left out.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from helpers import table_rows, table_schema

import limbeck as lk
from limbeck.privacy import Private, Question

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "limbeck"
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
ROOMS = ("privacy", "engines", "ledger", "data", "schema", "release", "accounting")
RINGS = ("Ring 1", "Ring 2", "Ring 3", "Ring 4", "Not trusted")
CORE_LINES = 1500
"""Lines of ring 1, at most; a later feature raises a number only with a reason. 60 more than 1300 for persons with
several rows, whom every kind of question bounds, and for the check of the schema, which is booked first;
40 for several cores; 12 for damaged files of an unfinished run or a ledger, which are told of in words; 85 for features that are ones and zeros,
which are counted: the sums of marginals cost less than half."""
TOGETHER_LINES = 3260
"""Lines of rings 1 and 2, at most: 70 more than 3000 for several cores and flat memory, 20 for numbers as targets,
which decide with which rows a row is counted; 20 for separators of thousands, as spreadsheets write them; 50 for rules between columns, which a schema holds, and by which it
says what a row is learned by; 40 for CSV files of which numbers and codes are read at once, in half the time; 102 of the core."""
PARTS_OF_EVERY_RUN = {
    "engines/reading.py", "ledger/answers.py", "ledger/identity.py", "ledger/lock.py", "privacy/kept.py",
    "privacy/questions/states.py", "schema/facts.py",
}  # fmt: skip
"""Of ring 3: a run looks where its rows are, whether it is to be resumed (by its schema's facts, too), and holds the file against its schema if not told otherwise."""


def _section(heading: str) -> str:
    """The text of the page under a heading that begins so."""
    found = re.search(rf"^### {heading}\b.*?$(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {heading}"
    return found[1]


def _files(heading: str) -> list[str]:
    return re.findall(r"`([a-z_/]+\.py)`", _section(heading))


def _modules() -> set[str]:
    paths = [p for room in ROOMS for p in (PACKAGE / room).rglob("*.py")]
    return {p.relative_to(PACKAGE).as_posix() for p in [*paths, PACKAGE / "planning.py"]}


def _only_a_table_of_contents(name: str) -> bool:
    """Whether a module defines nothing: it imports, or says where names live."""
    text = (PACKAGE / name).read_text()
    kinds = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While)
    return name.endswith("__init__.py") and not any(
        isinstance(node, kinds) for node in ast.walk(ast.parse(text))
    )


def _lines(ring: str) -> int:
    texts = [(PACKAGE / name).read_text() for name in _files(ring)]
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def test_every_module_is_in_one_ring() -> None:
    named = [name for ring in RINGS for name in _files(ring)]
    assert sorted(set(named)) == sorted(named), "a file is named twice"
    contents = {name for name in _modules() if _only_a_table_of_contents(name)}
    assert set(named) == _modules() - contents


@pytest.mark.parametrize("ring", RINGS[:4])
def test_the_page_counts_the_lines_of_each_ring(ring: str) -> None:
    said = re.search(r"\A\s*(\d+) lines", _section(ring))
    assert said and int(said[1]) == _lines(ring), f"{ring} has {_lines(ring)} lines"


def test_the_core_is_short_enough_to_be_read() -> None:
    both = _lines("Ring 1") + _lines("Ring 2")
    assert _lines("Ring 1") <= CORE_LINES and both <= TOGETHER_LINES
    assert f"{both} with ring 1" in _section("Ring 2"), f"rings 1 and 2 have {both} lines"


def test_a_run_of_marginals_executes_the_core_and_no_optional_question(tmp_path: Path) -> None:
    """Every file of ring 1 is at work, and of ring 3 only what asks whether a run is to be resumed."""
    table_rows(80).to_csv(tmp_path / "people.csv", index=False)
    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>":
            seen.add(Path(name).relative_to(PACKAGE).as_posix())

    method = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    before = sys.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)  # cells are read in threads
    try:
        data = lk.read(tmp_path / "people.csv", table_schema())
        lk.distill(data, method, lk.Budget(1.0), out=tmp_path / "out", ledger=book, seed=0)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert set(_files("Ring 1")) <= seen
    assert set(_files("Ring 2")) - seen == {"schema/columns.py"}  # it names the kinds
    assert set(_files("Ring 3")) & seen <= PARTS_OF_EVERY_RUN | {"privacy/estimate/__init__.py"}
    assert {"planning.py", "release/arithmetic.py", "accounting/accountant.py"} <= seen
    roads = _roads()
    assert roads["Every run"] | roads["marginals"] <= seen


def _roads() -> dict[str, set[str]]:
    """The files that `docs/internals.md` names for whoever follows a run, by method."""
    section = (ROOT / "docs" / "internals.md").read_text().split("## Roads")[1].split("\n## ")[0]
    parts = re.split(r"^(?:- )?\*\*([\w -]+)\*\* \((\d+)", section, flags=re.MULTILINE)[1:]
    roads = {}
    for name, count, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        roads[name] = set(re.findall(r"`([a-z_/]+\.py)`", text))
        assert len(roads[name]) == int(count), name
    return roads


def test_a_run_is_followed_through_at_most_25_files() -> None:
    roads = _roads()
    every = roads.pop("Every run")
    assert set(roads) == {"marginals", "measure-once", "DP-KIP", "G-PATE"}
    for name, road in roads.items():
        assert all((PACKAGE / file).exists() for file in every | road), name
        assert len(every | road) <= 25, name


def _kinds() -> set[type[Question]]:
    for module in pkgutil.walk_packages(lk.__path__, "limbeck."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, new = set(), {Question}
    while new:
        found |= new
        new = {kind for parent in new for kind in parent.__subclasses__()}
    ours = {kind for kind in found if kind.__module__.startswith("limbeck.")}
    return {kind for kind in ours if not getattr(kind, "__abstractmethods__", None)}


def _first_cells(head: str) -> list[str]:
    """The names in the first column of the page's table that has this head."""
    table = PAGE.split(head)[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_the_page_lists_every_kind_of_question_with_its_noise() -> None:
    kinds = {kind.__name__: kind for kind in _kinds()}
    named = _first_cells("| Kind | The answer |")
    assert sorted(named) == sorted(kinds)
    for name, noise in re.findall(r"^\| `(\w+)` \|.*\| ([\w ]+) \|$", PAGE, re.MULTILINE):
        source = Path(str(sys.modules[kinds[name].__module__].__file__)).read_text()
        said = "discrete laplace" in source
        assert (noise == "discrete Laplace") == said, name


def test_questions_of_the_core_are_in_ring_1() -> None:
    asked = lk.Marginals().questions(table_schema())
    homes = {type(one.question).__module__.removeprefix("limbeck.") for one in asked}
    assert {home.replace(".", "/") + ".py" for home in homes} <= set(_files("Ring 1"))


def test_the_page_lists_the_verbs_of_private() -> None:
    private = Private.__init__.__code__
    held = {name for name in private.co_names if not name.startswith("_")} & {
        "schema",
        "float_sums",
    }
    verbs = {name for name in vars(Private) if not name.startswith("_")}
    assert sorted(_first_cells("| `Private` | gives |")) == sorted(verbs | held)


def test_every_path_on_the_page_exists() -> None:
    for name in re.findall(r"`limbeck/([\w/*]+\.py)`", PAGE):
        assert list(PACKAGE.glob(name)), name
