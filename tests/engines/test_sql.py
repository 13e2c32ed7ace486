"""Counts in a database: the same integers, so the same bytes, as where rows are read here."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from database import into_file, into_server, no_server, server
from engine_cases import COUNTS, FLOATS, SCHEMA, as_table, measured, people

import limbeck as lk
from limbeck.engines import Table, read_table
from limbeck.features.cells import Cells
from limbeck.privacy import Noise
from limbeck.schema import Numbers, Person

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'limbeck[sql]'")
pytestmark = pytest.mark.filterwarnings("ignore::limbeck.LimbeckWarning")


def table_of_people() -> pa.Table:
    rows = people()
    rows.loc[5::13, "town"] = None
    return as_table(rows)


@pytest.fixture(scope="module")
def here() -> str:
    return measured(lk.read(table_of_people(), SCHEMA), COUNTS)[0]


@pytest.fixture
def base(tmp_path: Path) -> Table:
    into_file(tmp_path / "people.duckdb", table_of_people())
    return Table(f"duckdb:///{tmp_path}/people.duckdb", "people")


def test_duckdb_counts_what_is_counted_here(base: Table, here: str) -> None:
    found, release = measured(read_table(base, SCHEMA), COUNTS)
    assert found == here
    assert release.certificate["engine"]["name"] == "sql"


class Listening:
    """A cursor that notes what it is asked."""

    def __init__(self, cursor: Any, said: list[str]) -> None:
        self._cursor, self._said = cursor, said

    def execute(self, text: str) -> Any:
        self._said.append(text)
        return self._cursor.execute(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def test_no_statement_holds_a_key_or_casts_a_text(
    base: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    connect = Table.connect
    monkeypatch.setattr(Table, "connect", lambda table: Listening(connect(table), said))
    measured(read_table(base, SCHEMA), COUNTS)
    noise = Noise.from_seed(0)
    keys = [noise.secret, noise.stream("rows of persons").words(8).tobytes()]
    shown = [text for key in keys for text in (key.hex(), base64.b64encode(key).decode()[:-4])]
    assert sum("GROUP BY" in text for text in said) > 20
    assert not any(key in text for key in shown for text in said)
    columns = [column.name for column in SCHEMA.columns]
    for text in said:  # only constants have a type of their own
        assert "CAST(" not in text.upper()
        assert not any(f'"{name}"::' in text or f"{name})::" in text for name in columns)


def test_a_query_is_read_here_in_batches(base: Table, here: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        asked = connection.sql("SELECT * FROM people ORDER BY worth")
        assert measured(lk.read(asked, SCHEMA), COUNTS)[0] == here


def test_what_counts_cannot_tell_is_refused_before_anything_is_paid(base: Table) -> None:
    person = replace(
        SCHEMA, person=Person(column="who", rows_at_most=2, persons=90), unit="one person"
    )
    with pytest.raises(lk.LimbeckError, match="no \\[person\\]"):
        read_table(base, person)
    with pytest.raises(lk.LimbeckError, match="dp-merf asks for more than counts"):
        lk.plan(FLOATS, SCHEMA, 1.0, engine="sql")
    with pytest.raises(
        lk.LimbeckError,
        match="the engine sql: it is a OuterSum, which needs the engine local or spark or jax[.]",
    ):
        lk.plan(lk.Marginals(pairs="correlations"), SCHEMA, 1.0, engine="sql")
    texts = lk.Numeric(name="town", min=0, max=1)
    with pytest.raises(lk.DataError, match="column 'town' is declared as float"):
        read_table(
            base,
            replace(
                SCHEMA,
                columns=(texts, SCHEMA.columns[-1]),
                ignore=("age", "income", "smoker", "worth"),
            ),
        )
    with pytest.raises(lk.DataError, match="no table 'nobody'"):
        read_table(replace(base, name="nobody"), SCHEMA)


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("whole", [False, True])
def test_thresholds_are_exact(scale: str, whole: bool) -> None:
    """One float, or whole number, below each threshold lies in another cell."""
    from limbeck.engines.comparisons import thresholds

    column = lk.Numeric(name="x", integer=whole, min=0 if whole else 0.5, max=10**5, scale=scale)
    cells = Cells(column=column, grid=16)

    def code(value: float) -> int:
        numbers = Numbers(np.asarray([value], np.float64), np.zeros(1, bool))
        return int(cells.codes(column.encode(numbers))[0])

    steps = thresholds(column, cells, whole)[1:]
    assert len(steps) > 10
    for text, cell in steps:
        at = float(text) if whole else float(text.split("'")[1])
        before = at - 1 if whole else np.nextafter(at, -np.inf)
        assert code(at) == cell > code(float(before))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if why := no_server():
        pytest.skip(why)
    with server() as url:
        yield url


def test_postgresql_counts_what_is_counted_here(postgres: str, here: str) -> None:
    into_server(postgres, table_of_people())
    found, release = measured(read_table(Table(postgres, "people"), SCHEMA), COUNTS)
    assert found == here
    assert release.certificate["engine"]["version"].startswith("postgresql ")
