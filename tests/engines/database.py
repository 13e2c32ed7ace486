"""Tables of people in DuckDB, and in a PostgreSQL server of our own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

PROGRAMS = "/usr/lib/postgresql"


def into_file(place: Path, table: pa.Table) -> None:
    """A table `people` in a file of DuckDB."""
    import duckdb

    with duckdb.connect(str(place)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")


def into_server(url: str, table: pa.Table) -> None:
    """A table `people` in a PostgreSQL server."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE people (age int8, income float8, town text, smoker bool, worth float8, ill varchar)"
        )
        with cursor.copy("COPY people FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row([row[name] for name in table.column_names])


def no_server() -> str:
    """Why there is no server to start; nothing where there is one."""
    if not list(Path(PROGRAMS).glob("*/bin/initdb")):
        return "there is no PostgreSQL server"
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return "" if importlib.util.find_spec("psycopg") else "psycopg is not installed"


@contextmanager
def server() -> Iterator[str]:
    """A server on a socket in a folder, and where it is."""
    root, where = os.geteuid() == 0, sorted(Path(PROGRAMS).glob("*/bin/initdb"))[-1].parent
    # A short path, that another user may enter.
    folder = Path(tempfile.mkdtemp(prefix="limbeck-pg-"))
    user = "postgres" if root else None
    if root:
        shutil.chown(folder, "postgres")

    def run(*words: str) -> None:
        none = subprocess.DEVNULL
        subprocess.run(words, check=True, user=user, cwd=folder, stdout=none, stderr=none)

    data = str(folder / "data")
    run(str(where / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-c listen_addresses='' -k {folder} -F"
    run(str(where / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql:///postgres?host={folder}&user=postgres"
    finally:
        run(str(where / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)
