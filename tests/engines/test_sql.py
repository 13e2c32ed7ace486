"""Counts in a database: the same integers, so the same bytes, as where rows are read here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people

import limbeck as lk
from limbeck.engines import Table, read_table
from limbeck.features.cells import Cells
from limbeck.schema import Numbers, Person

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'limbeck[sql]'")
pytestmark = pytest.mark.filterwarnings("ignore::limbeck.LimbeckWarning")


def table_of_people() -> pa.Table:
    rows = people()
    rows.loc[5::13, "town"] = None
    return pa.table({name: pa.array(rows[name], from_pandas=name != "income") for name in rows})


@pytest.fixture(scope="module")
def here() -> str:
    return measured(lk.read(table_of_people(), SCHEMA), COUNTS)[0]


@pytest.fixture
def base(tmp_path: Path) -> Table:
    people_table = table_of_people()
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("given", people_table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return Table(f"duckdb:///{tmp_path}/people.duckdb", "people")


def test_duckdb_counts_what_is_counted_here(base: Table, here: str) -> None:
    found, release = measured(read_table(base, SCHEMA), COUNTS)
    assert found == here
    assert release.certificate["engine"]["name"] == "sql"


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
    """A server of our own on a socket in a folder."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs or importlib.util.find_spec("psycopg") is None:
        pytest.skip("there is no PostgreSQL server, or no psycopg")
    root, where = os.geteuid() == 0, programs[-1].parent
    folder = Path(
        tempfile.mkdtemp(prefix="limbeck-pg-")
    )  # a short path that another user may enter
    user = "postgres" if root else None
    if root:
        shutil.chown(folder, "postgres")

    def run(*words: str) -> None:
        subprocess.run(
            words,
            check=True,
            user=user,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    data = str(folder / "data")
    run(str(where / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-c listen_addresses='' -k {folder} -F"
    run(str(where / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    yield f"postgresql:///postgres?host={folder}&user=postgres"
    run(str(where / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder)


def test_postgresql_counts_what_is_counted_here(postgres: str, here: str) -> None:
    import psycopg

    given = table_of_people()
    with psycopg.connect(postgres, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE people (age int8, income float8, town text, smoker bool, worth float8, ill varchar)"
        )
        with cursor.copy("COPY people FROM STDIN") as copy:
            for row in given.to_pylist():
                copy.write_row([row[name] for name in given.column_names])
    found, release = measured(read_table(Table(postgres, "people"), SCHEMA), COUNTS)
    assert found == here
    assert release.certificate["engine"]["version"].startswith("postgresql ")
