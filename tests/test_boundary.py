"""Who may touch rows: the allow-lists of what goes round `Private`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "limbeck"

INNER = {
    "_bounded",
    "_encoded",
    "_persons",
    "_rows",
    "_values",
    "_content",
    "_digest",
    "_raw_digest",
    "_source",
}
"""Attributes of `Dataset` that hold or give rows, or what depends on them."""

MAY_TOUCH = {
    "privacy/private.py": {"_content"},  # the holder of rows: are they the same as before?
    "privacy/question.py": {"_bounded"},  # what a mechanism is given
    "privacy/estimate/values.py": {"_values"},  # values that the schema does not name yet
    "ledger/paid.py": {
        "_encoded",
        "_digest",
    },  # reads them before it pays, to resume on the same ones
    "data/bare.py": {
        "_encoded",
        "_persons",
        "_source",
    },  # the one other door: encoded rows, or values as they are
    "engines/processes.py": {"_encoded", "_source"},  # sums a part of the rows for another process
}

DOORS = ("bare_rows", "bare_values", "lines_left_out", "lines_of", "rows_of_nobody")

MAY_SEE_BARE_ROWS = {
    "data/bare.py",  # what they are made of
    "data/draft.py",  # refuses files of which no line could be read, before there is a schema
    "release/release.py",  # released rows, read back
    "release/deep.py",
    "release/model.py",  # rows that a released model predicts
    "evaluation/predictions.py",  # internal scores of a released model
    "evaluation/learner.py",  # released rows
    "evaluation/internal.py",  # counts of rows, in internal scores
    "evaluation/looking.py",  # `limbeck check`: internal, noted in the ledger, told by certificates
    "report/contents.py",  # real rows beside released ones: stamps the page internal
    "report/pairs.py",  # the same
    "audits/one_run.py",  # made-up rows, and a made-up release of them
    "scores/batteries.py",  # internal scores
    "scores/logistic.py",
    "papers/bench.py",  # named public data
    "papers/making.py",
    "papers/scoring.py",
}


def _trees() -> dict[str, ast.Module]:
    paths = sorted(ROOT.rglob("*.py"))
    return {p.relative_to(ROOT).as_posix(): ast.parse(p.read_text()) for p in paths}


def _touched(tree: ast.Module) -> set[str]:
    """Inner names that are used on anything but `self`, also by their text."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in INNER:
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and node.value in INNER:
            found.add(str(node.value))
    return found


def test_only_the_boundary_touches_the_inside_of_a_data_set() -> None:
    found = {name: touched for name, tree in _trees().items() if (touched := _touched(tree))}
    assert found == MAY_TOUCH


def test_the_other_door_is_used_by_who_is_listed() -> None:
    found = {
        name
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in DOORS)
        or (isinstance(node, ast.Attribute) and node.attr in (*DOORS, "_bare"))
    }
    assert found == MAY_SEE_BARE_ROWS


def test_methods_and_features_have_no_door_at_all() -> None:
    for name, tree in _trees().items():
        if name.split("/")[0] in ("methods", "features", "nets", "engines"):
            names = {n.name for n in ast.walk(tree) if isinstance(n, ast.alias)}
            doors = {*DOORS, "_data", "_bare"}
            if not name.startswith("engines/"):  # which declare data sets whose rows are elsewhere
                doors |= {"Dataset"}
            assert not names & doors, name


def test_the_list_would_notice() -> None:
    leak = "def score(data):\n    return getattr(data, '_encoded')(), data._content(), self._rows"
    assert _touched(ast.parse(leak)) == {"_encoded", "_content"}
