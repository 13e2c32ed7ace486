"""The bytes of `measurements.npz` on every engine, and after everything that dies on the way.

python benchmarks/engines.py            # all of it, some minutes; what cannot run here is said
python benchmarks/engines.py --trial    # with the tests' few rows; keeps nothing

The scenarios are those of `tests/engines`, with a hundred times the rows. Some rows are there several times, cells are
missing, beyond their bounds and unknown. `counts` asks marginals by counts of pairs, `floats` random features (DP-MERF).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TRIAL = "--trial" in sys.argv
if not TRIAL:
    os.environ.setdefault("LIMBECK_ENGINE_ROWS", "30000")  # whoever makes the tests' table reads it
TESTS = str(Path(__file__).parents[1] / "tests" / "engines")
sys.path.insert(0, TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])
warnings.simplefilter("ignore")

from _measure import keep  # noqa: E402
from database import into_file, into_server, no_server, server  # noqa: E402
from engine_cases import COUNTS, FLOATS, SCHEMA, as_table, measured, people  # noqa: E402
from started import both, driver, why_no_connect, why_no_spark  # noqa: E402

import limbeck as lk  # noqa: E402
from limbeck.engines import Table, read_table  # noqa: E402

Line = dict[str, Any]
MASTER = "local-cluster[2,1,1024]"
METHODS = {"counts": COUNTS, "floats": FLOATS}


class Lines:
    """What was measured where, each beside what one process measured."""

    def __init__(self) -> None:
        self.wanted: dict[str, str] = {}
        self.all: list[Line] = []

    def add(self, engine: str, how: str, question: str, digest: str, **more: Any) -> None:
        """A digest: the first of a question is that to which all others are held."""
        same = self.wanted.setdefault(question, digest) == digest
        line = {"engine": engine, "how": how, "question": question, "digest": digest, "same": same}
        self.all.append(line | more)
        print(engine, how, question, "the same" if same else "OTHER BYTES", more, flush=True)


@contextmanager
def spark(mode: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = driver(mode, "local[1]" if mode == "dies" else MASTER, folder)
    try:
        yield process
    finally:
        process.kill()


def connect(lines: Lines, folder: Path) -> None:
    """A frame of Spark Connect, whose driver is another process."""
    process = driver("layouts", "connect", folder)
    for name, digest in found(process).items():
        parts, question = name.split()
        lines.add("spark", f"Spark Connect, shuffled, parts: {parts}", question, digest)


def found(process: subprocess.Popen[str]) -> Line:
    """What a script says that it found."""
    shown, errors = process.communicate()
    last = [line for line in shown.splitlines() if line.startswith("FOUND ")]
    if not last:
        raise SystemExit(errors[-3000:])
    return json.loads(last[0].removeprefix("FOUND "))


def one_process(lines: Lines, folder: Path) -> None:
    """A frame, then the same rows in another order from files."""
    rows = people()
    for question, method in METHODS.items():
        lines.add("local", "a frame", question, measured(lk.read(rows, SCHEMA), method)[0])
    shuffled, lake = rows.sample(frac=1, random_state=0), folder / "lake"
    shuffled.to_csv(folder / "people.csv", index=False)
    lake.mkdir()
    for number in range(7):
        shuffled[number::7].to_parquet(lake / f"{number}.parquet", index=False)
    for how, place in (("shuffled, CSV", folder / "people.csv"), ("shuffled, 7 Parquet files", lake)):  # fmt: skip
        for question, method in METHODS.items():
            lines.add("local", how, question, measured(lk.read(place, SCHEMA), method)[0])


def databases(lines: Lines, folder: Path) -> None:
    """Counts alone: rows stay where they are."""
    table = as_table(people().sample(frac=1, random_state=1))
    into_file(folder / "people.duckdb", table)
    place = Table(f"duckdb:///{folder}/people.duckdb", "people")
    lines.add("sql", "DuckDB", "counts", measured(read_table(place, SCHEMA), COUNTS)[0])
    if why := no_server():
        print("PostgreSQL:", why)
        return
    with server() as url:
        into_server(url, table)
        place = Table(url, "people")
        lines.add("sql", "PostgreSQL", "counts", measured(read_table(place, SCHEMA), COUNTS)[0])


def processes(lines: Lines, folder: Path) -> None:
    """Two under `jax.distributed`; one of them is killed, and all start again."""
    seen, code = both("die", folder)
    error = seen["error"] if code == 2 else "none"
    seen, code = both("again", folder)
    how = f"2 processes, one killed ({error.split('.')[0]}); then the same call"
    lines.add("jax", how, "counts", seen["counts"], runs=int(seen["runs"]), error=error)
    lines.add("jax", "2 processes", "counts", seen["anew"])
    lines.add("jax", "2 processes", "floats", seen["floats"])


def clusters(lines: Lines, folder: Path) -> None:
    """Two executors, each a JVM: other parts, and all that dies."""
    with spark("layouts", folder) as process:
        for name, digest in found(process).items():
            parts, question = name.split()
            how = f"2 executors, shuffled, parts: {parts}"
            lines.add("spark", how, question, digest)
    with spark("dies", folder) as killed, spark("cluster", folder) as process:
        if killed.wait() != -signal.SIGKILL:
            raise SystemExit("the driver that is to be killed ended otherwise")
        (folder / "dead").touch()
        seen = found(process)
    runs = {"runs": seen["runs begun"], "paid once": seen["no more runs"]}
    how = "driver killed between answers; then the same call in one part"
    lines.add("spark", how, "counts", seen["1 part, a killed driver"], **runs)
    how = "one task failed reading, another one after it had given its sum; 7 parts"
    lines.add("spark", how, "counts", seen["7 parts, failed tasks"])
    how = "an executor killed (SIGKILL) in mid-run; 3 parts"
    lines.add("spark", how, "counts", seen["3 parts, a killed executor"], killed=seen["killed"])
    lines.add("spark", "limbeck distill FOLDER --engine spark --master ...", "counts", seen["command line"])  # fmt: skip
    lines.add("local", "persons, bounds and values estimated", "persons", seen["persons here"])
    lines.add("spark", "the same in 2 parts", "persons", seen["persons"])


def table_of(lines: list[Line]) -> str:
    head = f"{len(people()):,} rows of 6 columns. Of each question the first line is what the others are held to.\n\n"
    rows = ["| engine | how | question | SHA-256 of measurements.npz | bytes |", "|---|---|---|---|---|"]  # fmt: skip
    for line in lines:
        same = "the same" if line["same"] else "OTHERS"
        rows.append(
            f"| {line['engine']} | {line['how']} | {line['question']} | {line['digest'][:16]} | {same} |"
        )
    resumed = [line for line in lines if "runs" in line]
    notes = [
        f"- {line['engine']}, {line['how'].split(';')[0]}: {line['runs']} run in the ledger afterwards."
        for line in resumed
    ]
    return head + "\n".join([*rows, "", *notes]) + "\n"


if __name__ == "__main__":
    lines, begun = Lines(), time.perf_counter()
    for part in (one_process, databases, processes, clusters, connect):
        why = {clusters: why_no_spark, connect: why_no_connect}.get(part, str)()
        if why:
            print(part.__name__, why)
            continue
        with tempfile.TemporaryDirectory() as place:
            part(lines, Path(place))
    if not TRIAL:
        keep("engines", {"lines": lines.all}, table_of(lines.all))
    print(f"{time.perf_counter() - begun:.0f} s; all the same: {all(x['same'] for x in lines.all)}")
