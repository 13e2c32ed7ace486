"""What people type in Python first works, or is refused in words that fit Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import TINY, table_rows, table_schema

import limbeck as lk

ROOT = Path(lk.__file__).parent


@pytest.fixture
def book(tmp_path: Path) -> lk.Ledger:
    return lk.Ledger(tmp_path / "ledger.sqlite")


def test_a_schema_may_be_the_path_of_its_file(tmp_path: Path) -> None:
    table_schema().save(tmp_path / "schema.toml")
    for path in (tmp_path / "schema.toml", str(tmp_path / "schema.toml")):
        assert lk.read(table_rows(5), path).schema == table_schema()
    with pytest.raises(lk.SchemaError, match="No schema file"):
        lk.read(table_rows(5), "none.toml")
    with pytest.raises(lk.SchemaError, match="schema or the path .* got dict"):
        lk.read(table_rows(5), {})  # type: ignore[arg-type]


def test_a_method_may_be_named_and_a_budget_a_number() -> None:
    named = lk.plan("marginals", table_schema(), 1.0)
    assert named == lk.plan(lk.Marginals(), table_schema(), lk.Budget(1.0, 1e-5))
    assert lk.plan("marginals", table_schema(rows=None), np.float64(1)).budget.delta == 1e-5
    with pytest.raises(lk.LimbeckError, match="Unknown method 'marginal'. Known: marginals"):
        lk.plan("marginal", table_schema(), 1.0)
    with pytest.raises(lk.LimbeckError, match=r"such as limbeck.Marginals\(\)"):
        lk.plan(lk.Marginals, table_schema(), 1.0)  # type: ignore[arg-type]
    rows = lk.read(table_rows(5), table_schema())
    assert lk.plan("marginals", rows, 1.0) == named
    for no_schema in (lk.Marginals(), None):
        with pytest.raises(lk.SchemaError, match="Expected a schema, or rows .* got"):
            lk.plan("marginals", no_schema, 1.0)  # type: ignore[arg-type]
    for wrong in ("1", True, (1.0, 1e-5)):
        with pytest.raises(lk.LimbeckError, match="Expected a budget"):
            lk.plan("marginals", table_schema(), wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "delta"),
    [(None, 1e-5), (1, 1e-5), (9_999, 1e-5), (10_000, 1e-5), (10_001, 1e-6), (10**9, 1e-10)],
)
def test_delta_suits_the_declared_rows(rows: int | None, delta: float) -> None:
    """Always one that is neither refused nor warned of."""
    budget = lk.Budget.of(1.0, rows)
    assert budget.delta == delta
    budget.check_rows(rows)  # warnings are errors here


def test_the_whole_road_as_typed(
    tmp_path: Path, book: lk.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lk.DPMERF, "__init__", _with_few(lk.DPMERF.__init__))
    data = lk.read(table_rows(200), table_schema())
    release = lk.distill(data, "dp-merf", 1.0, ledger=book)
    assert release.certificate["guarantee"]["delta"] == 1e-5
    frame = table_rows(60, seed=1)
    assert lk.evaluate(release, frame) == lk.evaluate(release, lk.read(frame, release.schema))
    release.save(tmp_path / "release")
    with pytest.raises(lk.ReleaseError, match=r"got Release. Save a release first"):
        lk.verify(release)  # type: ignore[arg-type]
    assert lk.evaluate(str(tmp_path / "release"), frame).test_rows == 60
    for verb in (lk.evaluate, lk.measure_scores, lk.redistill):
        with pytest.raises(lk.ReleaseError, match="Expected a release.*got DataFrame"):
            verb(frame, frame, 0.5) if verb is lk.measure_scores else verb(frame, frame)  # type: ignore[operator]
    paid = lk.measure_scores(release, frame, 0.5, ledger=book)
    assert paid.certificate["guarantee"]["epsilon"] == 0.5
    with pytest.raises(lk.DataError, match="another schema"):
        fewer = table_schema(columns=table_schema().columns[1:])
        lk.evaluate(release, lk.read(frame.drop(columns="age"), fewer))
    with pytest.raises(lk.DataError, match="from limbeck.read; got DataFrame"):
        lk.distill(frame, "dp-merf", 1.0, ledger=book)  # type: ignore[arg-type]


def _with_few(init):
    def settled(self, **settings: object) -> None:
        init(self, **(TINY | settings))

    return settled


def test_errors_speak_python(tmp_path: Path, book: lk.Ledger) -> None:
    data = lk.read(table_rows(5), table_schema())
    (tmp_path / "there").mkdir()
    with pytest.raises(lk.ReleaseError, match="force=True"):
        lk.distill(data, "marginals", 1.0, out=tmp_path / "there", ledger=book)
    with pytest.raises(lk.LimbeckError, match="non_private=True"):
        lk.distill(data, "marginals", float("inf"), ledger=book)


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(ROOT.rglob("*.py")) if not {"cli", "papers"} & {*p.relative_to(ROOT).parts}],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_no_option_of_the_command_line_in_an_error(path: Path) -> None:
    """But for whole commands, which are a way from Python, too. The papers' room is a command's own."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            words = "".join(
                n.value
                for n in ast.walk(node.exc)
                if isinstance(n, ast.Constant) and isinstance(n.value, str)
            )
            assert not re.search(r"--[a-z]", re.sub(r"limbeck [a-z]+ .*", "", words)), words
