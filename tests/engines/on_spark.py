"""Run by `test_spark.py` in a process of its own: two executors, each a JVM; prints what was measured."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def session(master: str, folder: str) -> Any:
    """Before JAX is imported, which does not like forks."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ |= {
        "SPARK_HOME": os.path.dirname(pyspark.__file__), "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": folder,
        "PYTHONPATH": str(HERE),
    }  # fmt: skip
    settings = {
        "spark.ui.enabled": "false", "spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "4", "spark.eventLog.enabled": "true", "spark.sql.session.timeZone": "UTC",
        "spark.eventLog.dir": folder, "spark.local.dir": folder, "spark.eventLog.compress": "false",
    }  # fmt: skip
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class FailOnce:
    """A task that fails the first time it is run."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __call__(self, batches: Any) -> Any:
        for batch in batches:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
            else:
                raise RuntimeError("injected")


def kill_an_executor() -> bool:
    """SIGKILL for one of the two JVMs that this process started."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            APP in words
            and b"--executor-id" in words
            and words[words.index(b"--executor-id") + 1] == b"0"
        ):
            os.kill(int(place.name), signal.SIGKILL)
            return True
    return False


if __name__ == "__main__":
    folder = sys.argv[2]
    spark = session(sys.argv[1], folder)
    APP = spark.sparkContext.applicationId.encode()
    spark.sparkContext.setLogLevel("OFF")
    from dataclasses import replace

    from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people

    import limbeck as lk
    from limbeck.engines import spark as spark_module
    from limbeck.schema import Person

    rows = people()
    found: dict[str, Any] = {"here": measured(lk.read(rows, SCHEMA), COUNTS)[0]}
    frames = {
        parts: spark.createDataFrame(rows.sample(frac=1, random_state=parts)).repartition(parts)
        for parts in (1, 3, 7)
    }
    killed: list[bool] = []

    def kill(phase: str, done: float) -> None:
        if phase == "single columns" and not killed:
            killed.append(kill_an_executor())

    found["1 part"] = measured(lk.read(frames[1], SCHEMA), COUNTS)[0]
    frame = frames[7].mapInArrow(FailOnce(f"{folder}/failed"), frames[7].schema)
    spark_module.MERGERS = 2  # so that partial sums meet on the cluster
    found["7 parts, a failed task"], release = measured(lk.read(frame, SCHEMA), COUNTS)
    found["engine"] = release.certificate["engine"]
    found["floats here"] = measured(lk.read(rows, SCHEMA), FLOATS)[0]
    found["floats"] = measured(lk.read(frames[3], SCHEMA), FLOATS)[0]
    killing = lk.read(frames[3], SCHEMA)
    found["3 parts, a killed executor"] = measured(killing, COUNTS, progress=kill)[0]
    found["killed"] = killed

    owned = rows.assign(who=[str(i % 90) for i in range(len(rows))])
    persons = replace(
        SCHEMA, person=Person(column="who", rows_at_most=2, persons=90), unit="one person"
    )
    found["persons here"] = measured(lk.read(owned, persons), COUNTS)[0]
    found["persons"] = measured(
        lk.read(spark.createDataFrame(owned).repartition(2), persons), COUNTS
    )[0]
    try:
        measured(lk.read(frames[1], SCHEMA), lk.DPGAN(batch=50))
    except lk.LimbeckError as error:
        found["refused"] = str(error)
    spark.stop()
    print("FOUND " + json.dumps(found))
