"""What `scale.py` measures, each run in a process of its own: `python benchmarks/scale_runs.py '{"kind": ...}'`.

Prints seconds, seconds of a core and peak memory as JSON. Data are generated: half numbers, half categories, a label.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

PART = 1_000_000
"""Rows of a file."""
DIFFERENT = 10
"""Files after which the same rows come again, so that 10^8 rows need no more room on disk than 10^7."""
SPLIT_BYTES = 2 << 20
"""Bytes of Parquet for one of Spark's tasks."""
LETTERS = "abcdefgh"


def schema_of(rows: int, count: int, classes: int) -> Any:
    """Half of the columns numbers, the others categories, the last one a label."""
    import limbeck as lk

    label = lk.Category(name="y", values=tuple(range(classes)), label=True)
    numbers = [lk.Numeric(name=f"n{i}", min=-4, max=4) for i in range(count // 2)]
    texts = [
        lk.Category(name=f"c{i}", values=tuple(LETTERS)) for i in range(count - count // 2 - 1)
    ]
    return lk.Schema(dataset="scale", rows=rows, columns=(*numbers, *texts, label))


def part(number: int, rows: int, count: int, classes: int) -> pa.Table:
    rng, letters = np.random.default_rng(number), np.asarray(list(LETTERS))
    made: dict[str, Any] = {}
    for i in range(count // 2):
        made[f"n{i}"] = np.round(rng.normal(size=rows), 4)
    for i in range(count - count // 2 - 1):
        made[f"c{i}"] = letters[rng.integers(0, len(letters), rows)]
    made["y"] = rng.integers(0, classes, rows)
    return pa.table(made)


def parquet(folder: Path, rows: int, count: int, classes: int) -> Path:
    """Parquet in files of a million rows; beyond ten of these, links to them."""
    place = folder / f"{rows}-{count}-{classes}"
    if place.exists():
        return place
    whole = parquet(folder, PART * DIFFERENT, count, classes) if rows > PART * DIFFERENT else None
    made = place.with_suffix(".part")
    made.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, PART)):
        file = made / f"{number:04d}.parquet"
        file.unlink(missing_ok=True)
        if whole is not None:
            os.link(whole / f"{number % DIFFERENT:04d}.parquet", file)
            continue
        table = part(number, min(PART, rows - start), count, classes)
        pq.write_table(table, file, row_group_size=PART // 16)
    return made.rename(place)


def csv(folder: Path, rows: int, count: int, classes: int) -> Path:
    """The same rows as one CSV file."""
    place = folder / f"{rows}-{count}-{classes}.csv"
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    made = place.with_suffix(".part")
    with open(made, "wb") as file:
        for number, start in enumerate(range(0, rows, PART)):
            table = part(number, min(PART, rows - start), count, classes)
            options = pa_csv.WriteOptions(include_header=number == 0, quoting_style="none")
            pa_csv.write_csv(table, file, options)
    return made.rename(place)


class Timed:
    """Seconds, seconds of a core, and the peak of this process."""

    def __enter__(self) -> Timed:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        self.found = {
            "seconds": time.perf_counter() - self._wall,
            "cpu": time.process_time() - self._cpu,
            "peak": peak,
        }


def method_of(name: str, features: int) -> Any:
    """A method whose work after the measurement is next to none."""
    import limbeck as lk

    if name == "marginals":
        return lk.Marginals(pairs="counts", grid=features, soft_rows=20, steps=1)
    return lk.DPMERF(features=features, steps=1, batch=8, hidden=(4,))


def released(data: Any, method: Any, progress: Any = lambda phase, done: None) -> dict[str, Any]:
    """A whole run: reading, check, questions, noise, a small release."""
    import limbeck as lk

    with tempfile.TemporaryDirectory() as folder:
        ledger = lk.Ledger(Path(folder) / "ledger.sqlite")
        with Timed() as timed:
            lk.distill(data, method, 1.0, ledger=ledger, seed=0, rows=10, progress=progress)
    return timed.found


def run(place: str, rows: int, count: int, classes: int, method: str, features: int) -> Any:
    """A method on Parquet, in this process."""
    import limbeck as lk

    data = lk.read(place, schema_of(rows, count, classes))
    made, seen = method_of(method, features), []
    asked = {one.question.name for one in made.questions(data.schema)}

    def note(phase: str, done: float) -> None:
        if phase in asked | {"reading", "column states"}:
            seen.append(time.perf_counter())

    found = released(data, made, note)
    return found | {"measuring": seen[-1] - seen[0]}


def pandas(place: str, rows: int, count: int, classes: int) -> Any:
    """What pandas takes to read a CSV file, and does nothing with it."""
    import pandas as pd

    with Timed() as timed:
        frame = pd.read_csv(place)
    assert len(frame) == rows
    return timed.found


def summed(place: str, rows: int, count: int, classes: int) -> Any:
    """A CSV file read, encoded, and its columns' cells summed per class, with their noise."""
    import limbeck as lk
    from limbeck.privacy import Noise, Private

    method, schema = method_of("marginals", 16), schema_of(rows, count, classes)
    plan = lk.plan(method, schema, 1.0)
    private = Private(lk.read(place, schema), plan.questions, plan.unit, Noise.from_seed(0))
    with Timed() as timed:
        for name, spec in (
            ("class counts", None),
            ("single columns", method.map_spec("single_columns", 0)),
        ):
            private.ask(name, spec)
    return timed.found


def session_cpu() -> float:
    """Seconds of a core of all processes that the system counts with this one: Spark's, and Python's beside them."""
    total, own = 0, os.getsid(0)
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(words[3]) == own:
            total += sum(map(int, words[11:15]))  # its own, and of children that have ended
    return total / os.sysconf("SC_CLK_TCK")


def spark(place: str, rows: int, count: int, classes: int, workers: int) -> Any:
    """Marginals on executors of one core each, which are JVMs of their own, with what was moved."""
    import limbeck as lk

    with tempfile.TemporaryDirectory() as folder:
        session = cluster(workers, folder)
        data = lk.read(session.read.parquet(place), schema_of(rows, count, classes))
        method, phases = method_of("marginals", 16), {}
        sizes = note_sizes(data.engine)
        begun, cpu = time.perf_counter(), session_cpu()

        def note(phase: str, done: float) -> None:
            if done >= 1.0:
                phases.setdefault(phase, (time.perf_counter() - begun, session_cpu() - cpu))

        found = released(data, method, note)
        found["cpu"] = session_cpu() - cpu
        kept = session.sparkContext._jsc.sc().getRDDStorageInfo()
        found["kept"] = sum(one.memSize() + one.diskSize() for one in kept)
        found["tasks"], found["partials"] = (
            data.engine._encoded().rdd.getNumPartitions(),
            sum(sizes),
        )
        found["all"] = session_cpu()
        session.stop()
        found |= moved(Path(folder))
    return found | {"phases": phases}


def note_sizes(engine: Any) -> list[int]:
    """The bytes of a partial sum, of each question that will be asked."""
    sizes: list[int] = []
    partial = engine.partial

    def noting(work: Any, state: Any, access: Any) -> Any:
        found = partial(work, state, access)
        sizes.append(len(work.mechanism.to_bytes(found)))
        return found

    engine.partial = noting
    return sizes


def cluster(workers: int, folder: str) -> Any:
    """Before JAX is imported, which does not like forks."""
    import pyspark
    from pyspark.sql import SparkSession

    home = Path(folder) / "home"  # executors' logs come to lie in it
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    os.environ |= {
        "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    settings = {
        "spark.ui.enabled": "false", "spark.executor.memory": "1g", "spark.local.dir": folder,
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": folder, "spark.eventLog.compress": "false",
        "spark.shuffle.compress": "false",  # the paper's bytes are of what is not packed
        "spark.sql.files.maxPartitionBytes": str(SPLIT_BYTES), "spark.sql.session.timeZone": "UTC",
    }  # fmt: skip
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def moved(folder: Path) -> dict[str, int]:
    """Bytes that went from task to task, and from tasks to the driver, by Spark's own log."""
    shuffled = collected = 0
    for file in folder.rglob("*"):
        if not file.is_file() or "home" in file.parts:
            continue
        for line in file.read_bytes().splitlines():
            if b'"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics", {})
                shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                collected += metrics["Result Size"]
    return {"shuffled": shuffled, "collected": collected}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    measure = {"run": run, "pandas": pandas, "summed": summed, "spark": spark}[given.pop("kind")]
    found = measure(**given)
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"all": own.ru_utime + own.ru_stime} | found))
