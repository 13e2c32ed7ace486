"""Time and peak memory against rows, columns, features and classes, in one process each.

python benchmarks/scale.py FOLDER [ROWS ...]     # generated Parquet goes to FOLDER
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PART = 1_000_000
QUIET = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_ARENA_MAX": "1",
}
"""One thread within a batch: batches are what goes side by side."""


def columns(count: int, classes: int) -> tuple[Any, ...]:
    import limbeck as lk

    label = lk.Category(name="y", values=tuple(range(classes)), label=True)
    numbers = [lk.Numeric(name=f"n{i}", min=-4, max=4) for i in range(count // 2)]
    texts = [
        lk.Category(name=f"c{i}", values=tuple("abcdefgh")) for i in range(count - count // 2 - 1)
    ]
    return (*numbers, *texts, label)


def generate(folder: Path, rows: int, count: int, classes: int) -> Path:
    """Parquet in parts of a million rows."""
    place = folder / f"{rows}-{count}-{classes}"
    if place.exists():
        return place
    place.mkdir(parents=True)
    letters = np.asarray(list("abcdefgh"))
    for start in range(0, rows, PART):
        rng, size = np.random.default_rng(start), min(PART, rows - start)
        made: dict[str, Any] = {}
        for i in range(count // 2):
            made[f"n{i}"] = np.round(rng.normal(size=size), 4)
        for i in range(count - count // 2 - 1):
            made[f"c{i}"] = letters[rng.integers(0, 8, size)]
        made["y"] = rng.integers(0, classes, size)
        pq.write_table(pa.table(made), place / f"{start:010d}.parquet", row_group_size=PART // 4)
    return place


def child(place: str, rows: int, count: int, classes: int, method: str, features: int) -> None:
    """One run; prints seconds, CPU seconds and peak memory."""
    import tempfile

    import limbeck as lk

    schema = lk.Schema(dataset="scale", rows=rows, columns=columns(count, classes))
    made = {
        "marginals": lambda: lk.Marginals(grid=features, soft_rows=20, steps=1),
        "dp-merf": lambda: lk.DPMERF(features=features, steps=1),
    }[method]()
    with tempfile.TemporaryDirectory() as folder:
        ledger = lk.Ledger(Path(folder) / "ledger.sqlite")
        begun, cpu = time.perf_counter(), time.process_time()
        lk.distill(lk.read(place, schema), made, 1.0, ledger=ledger, seed=0, rows=10)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))


def run(folder: Path, cores: str = "", **shape: Any) -> dict[str, Any]:
    place = generate(folder, shape["rows"], shape["count"], shape["classes"])
    words = [sys.executable, __file__, "--child", json.dumps({"place": str(place), **shape})]
    words = ["taskset", "-c", cores, *words] if cores else words
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | QUIET)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found = shape | {"cores": cores} | json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found), flush=True)
    return found


def slope(found: list[dict[str, Any]], axis: str, what: str) -> float:
    """Of the logarithms: 1 is linear growth, 0 is none."""
    return float(
        np.polyfit(np.log([f[axis] for f in found]), np.log([f[what] for f in found]), 1)[0]
    )


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(**json.loads(sys.argv[2]))
        raise SystemExit
    folder = Path(sys.argv[1])
    sizes = [int(float(word)) for word in sys.argv[2:]] or [10**4, 10**5, 10**6, 10**7]
    usual: dict[str, Any] = {
        "rows": sizes[0],
        "count": 20,
        "classes": 2,
        "method": "marginals",
        "features": 16,
    }
    axes = {
        "rows": sizes,
        "count": [5, 10, 20, 40],
        "features": [8, 16, 32, 64],
        "classes": [2, 4, 8, 16],
    }
    for axis, values in axes.items():
        found = [run(folder, **(usual | {axis: value})) for value in values]
        for what in ("cpu", "peak"):
            print(axis, what, f"slope {slope(found, axis, what):.2f}", flush=True)
    for cores in ("0", "0,1"):
        run(folder, cores, **(usual | {"rows": sizes[-1]}))
