"""Run by `test_spark.py` in processes of its own: `dies` begins a run and is killed in the middle of it; `cluster`
goes on with it on two executors, each a JVM, does what else is tested, and prints what was measured."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A JVM that lives for a minute need not optimise itself."""


def session(master: str, folder: str) -> Any:
    """Before JAX is imported, which does not like forks."""
    import pyspark
    from pyspark.sql import SparkSession

    home = Path(folder) / f"home-{os.getpid()}"  # executors' logs come to lie in it
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ |= {
        "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    settings = {
        "spark.ui.enabled": "false", "spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "4", "spark.eventLog.enabled": "true", "spark.sql.session.timeZone": "UTC",
        "spark.eventLog.dir": folder, "spark.local.dir": folder, "spark.eventLog.compress": "false",
        "spark.driver.extraJavaOptions": QUICK, "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }  # fmt: skip
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if master == "connect" else builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if master != "connect":  # whose driver is another process
        spark.sparkContext.setLogLevel("OFF")
    return spark


def first(marker: str) -> bool:
    """Whether no task was here before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class FailOnce:
    """Rows of which a task cannot read all, the first time."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __call__(self, batches: Any) -> Any:
        for batch in batches:
            if first(self.marker):
                raise RuntimeError("injected")
            yield batch


class FailWhenDone:
    """A task that fails once, after it has given its partial sum."""

    def __init__(self, task: Callable[[Any], Any], marker: str) -> None:
        self.task, self.marker = task, marker

    def __call__(self, batches: Any) -> Any:
        yield from self.task(batches)
        if first(self.marker):
            raise RuntimeError("injected, too late")


def kill_an_executor(application: bytes) -> bool:
    """SIGKILL for one of the two JVMs that this process started."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            application in words
            and b"--executor-id" in words
            and words[words.index(b"--executor-id") + 1] == b"0"
        ):
            os.kill(int(place.name), signal.SIGKILL)
            return True
    return False


def command_line(spark: Any, rows: Any, folder: Path) -> str:
    """`limbeck distill` of a folder of Parquet, and the digest of what it measured."""
    import hashlib

    from engine_cases import SCHEMA

    from limbeck.cli.main import main

    (folder / "lake").mkdir()
    for part in (0, 1):
        rows[part::2].to_parquet(folder / "lake" / f"{part}.parquet", index=False)
    SCHEMA.save(folder / "people.toml")
    os.environ["LIMBECK_LEDGER"] = str(folder / "command.sqlite")
    settings = ("pairs=counts", "grid=8", "groups=2", "soft_rows=20", "steps=1")
    sys.argv = [
        "limbeck", "distill", str(folder / "lake"), "--schema", str(folder / "people.toml"), "--epsilon", "1",
        "--delta", "1e-5", "--method", "marginals", *(w for s in settings for w in ("--set", s)), "--seed", "0",
        "--no-check", "--out", str(folder / "release"), "--engine", "spark", "--master", spark.sparkContext.master,
    ]  # fmt: skip
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    return hashlib.sha256((folder / "release" / "measurements.npz").read_bytes()).hexdigest()


def dies(spark: Any, folder: str) -> None:
    """A driver that is killed between its answers."""
    from engine_cases import COUNTS, SCHEMA, measured, people

    import limbeck as lk

    def kill(phase: str, done: float) -> None:
        if phase == "single columns" and done == 1.0:
            os.kill(os.getpid(), signal.SIGKILL)

    ledger = lk.Ledger(Path(folder) / "ledger.sqlite")
    frame = spark.createDataFrame(people())
    measured(lk.read(frame, SCHEMA), COUNTS, ledger=ledger, progress=kill)


def layouts(spark: Any, folder: str) -> None:
    """Rows in other orders and parts, by counts and in floating point."""
    from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people

    import limbeck as lk

    found, rows = {}, people()
    for parts in (1, 3, 7):
        frame = spark.createDataFrame(rows.sample(frac=1, random_state=parts)).repartition(parts)
        for name, method in (("counts", COUNTS), ("floats", FLOATS)):
            found[f"{parts} {name}"] = measured(lk.read(frame, SCHEMA), method)[0]
    spark.stop()
    print("FOUND " + json.dumps(found))


def cluster(spark: Any, folder: str) -> None:
    """All that is tested on a cluster, in one session."""
    from engine_cases import COUNTS, FLOATS, OPEN, PERSONS, SCHEMA, measured, people

    import limbeck as lk
    from limbeck.engines import spark as spark_module

    rows, found, timed = people(), {}, time.monotonic()

    def note(name: str, value: Any) -> None:
        nonlocal timed
        found[name] = value
        print(f"{name}: {time.monotonic() - timed:.1f} s", file=sys.stderr, flush=True)
        timed = time.monotonic()

    note("here", measured(lk.read(rows, SCHEMA), COUNTS)[0])
    note("floats here", measured(lk.read(rows, SCHEMA), FLOATS)[0])
    frames = {
        parts: spark.createDataFrame(rows.sample(frac=1, random_state=parts)).repartition(parts)
        for parts in (1, 3, 7)
    }
    note("floats", measured(lk.read(frames[3], SCHEMA), FLOATS)[0])

    while not (
        Path(folder) / "dead"
    ).exists():  # the driver that is killed, at work beside this one
        time.sleep(0.1)
    ledger = lk.Ledger(Path(folder) / "ledger.sqlite")
    before = [run.id for run in ledger.accounts()[0].runs]
    note("runs begun", len(before))
    again = lk.read(frames[1], SCHEMA)
    note("1 part, a killed driver", measured(again, COUNTS, ledger=ledger)[0])
    note("no more runs", [run.id for run in ledger.accounts()[0].runs] == before)

    spark_module.MERGERS = 2  # so that partial sums meet on the cluster
    guarded = spark_module._guarded

    def fails(task: Any) -> Any:
        sums = task.func is spark_module._sum_task
        return FailWhenDone(guarded(task), f"{folder}/failed late") if sums else guarded(task)

    spark_module._guarded = fails
    frame = frames[7].mapInArrow(FailOnce(f"{folder}/failed"), frames[7].schema)
    digest, release = measured(lk.read(frame, SCHEMA), COUNTS)
    spark_module._guarded = guarded
    note("7 parts, failed tasks", digest)
    note("engine", release.certificate["engine"])

    killed: list[bool] = []
    stages: list[float] = []
    spark_module.POLL_SECONDS = 0.02

    def kill(phase: str, done: float) -> None:
        if phase == "single columns" and not killed:
            killed.append(kill_an_executor(spark.sparkContext.applicationId.encode()))
        stages.append(done)

    note(
        "3 parts, a killed executor", measured(lk.read(frames[3], SCHEMA), COUNTS, progress=kill)[0]
    )
    note("killed", killed)
    found["on the way"] = sum(0 < done < 1 for done in stages)

    owned = rows.assign(who=[str(i % PERSONS) for i in range(len(rows))])
    digest, release = measured(lk.read(owned, OPEN), COUNTS, epsilon=10.0)
    note("persons here", digest)
    found["towns"] = release.schema.columns[2].values
    frame = spark.createDataFrame(owned).repartition(2)
    note("persons", measured(lk.read(frame, OPEN), COUNTS, epsilon=10.0)[0])
    del frame, again
    gc.collect()
    found["kept at the end"] = spark.sparkContext._jsc.getPersistentRDDs().size()
    note("command line", command_line(spark, rows, Path(folder)))
    try:
        measured(lk.read(frames[1], SCHEMA), lk.DPGAN(batch=50))
    except lk.LimbeckError as error:
        found["refused"] = str(error)
    found["configuration"] = spark.sparkContext.getConf().getAll()
    spark.stop()
    print("FOUND " + json.dumps(found))


if __name__ == "__main__":
    mode, master, where = sys.argv[1:]
    {"dies": dies, "cluster": cluster, "layouts": layouts}[mode](session(master, where), where)
