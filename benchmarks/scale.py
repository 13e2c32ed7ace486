"""Time and peak memory against rows, columns, features and classes, each cell in a process of its own.

python benchmarks/scale.py FOLDER [PATTERN ...]  # generated Parquet goes to FOLDER; cells that are there are kept
python benchmarks/scale.py show                  # table and plots from the cells that are there
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _measure import HERE, keep
from _plot import lines as plot

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


def child(
    place: str, rows: int, count: int, classes: int, method: str, features: int, cores: str
) -> None:
    """One run; prints seconds, CPU seconds and peak memory."""
    import tempfile

    import limbeck as lk

    schema = lk.Schema(dataset="scale", rows=rows, columns=columns(count, classes))
    chosen = {
        "marginals": lambda: lk.Marginals(grid=features, soft_rows=20, steps=1),
        "dp-merf": lambda: lk.DPMERF(features=features, steps=1, batch=8, hidden=(4,)),
    }[method]()
    with tempfile.TemporaryDirectory() as folder:
        ledger = lk.Ledger(Path(folder) / "ledger.sqlite")
        begun, cpu = time.perf_counter(), time.process_time()
        lk.distill(lk.read(place, schema), chosen, 1.0, ledger=ledger, seed=0, rows=10)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))


def cells() -> dict[str, dict[str, Any]]:
    """Every cell by its name: what is measured on each axis, all else as usual."""
    usual = {"rows": 100_000, "count": 20, "classes": 2, "cores": "1"}
    methods = {"marginals": 16, "dp-merf": 200}
    axes = {
        "rows": (10**4, 10**5, 10**6, 10**7),
        "count": (5, 10, 20, 40),
        "features": (8, 16, 32, 64),
        "classes": (2, 4, 8, 16),
    }
    found = {}
    for method, features in methods.items():
        for axis, values in axes.items():
            for value in values:
                if method == "dp-merf" and axis == "features":
                    value = value * 25
                shape = usual | {"method": method, "features": features} | {axis: value}
                found[f"{method}/{axis}/{value}"] = shape
    for cores in ("0", "0,1"):
        shape = usual | {"method": "marginals", "features": 16, "rows": 3 * 10**6, "cores": cores}
        found[f"marginals/cores/{len(cores.split(','))}"] = shape
    return found


def run(folder: Path, shape: dict[str, Any]) -> dict[str, Any]:
    place = generate(folder, shape["rows"], shape["count"], shape["classes"])
    words = [sys.executable, __file__, "--child", json.dumps({"place": str(place), **shape})]
    words = ["taskset", "-c", shape["cores"], *words]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | QUIET)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return shape | json.loads(done.stdout.splitlines()[-1])


def slope(found: list[dict[str, Any]], axis: str, what: str) -> float:
    """Of the logarithms, over the larger half: 1 is linear growth, 0 is none."""
    last = found[len(found) // 2 - 1 :]
    return float(np.polyfit(np.log([f[axis] for f in last]), np.log([f[what] for f in last]), 1)[0])


def kept() -> dict[str, Any]:
    place = HERE / "scale.json"
    return json.loads(place.read_text())["cells"] if place.exists() else {}


def show(results: dict[str, Any]) -> None:
    """The table, slopes and plots of what is there."""
    lines = ["| cell | seconds of a core | peak, GiB |", "|---|---|---|"]
    for name, cell in results.items():
        if "/cores/" not in name:
            lines.append(f"| {name} | {cell['cpu']:.1f} | {cell['peak']:.2f} |")
    lines += ["", "| slope | seconds of a core | peak |", "|---|---|---|"]
    for method in ("marginals", "dp-merf"):
        for axis in ("rows", "count", "features", "classes"):
            found = [c for n, c in results.items() if n.startswith(f"{method}/{axis}/")]
            if len(found) < 3:
                continue
            both = (slope(found, axis, what) for what in ("cpu", "peak"))
            lines.append(f"| {method}, {axis} | " + " | ".join(f"{b:.2f}" for b in both) + " |")
        rows = [c for n, c in results.items() if n.startswith(f"{method}/rows/")]
        if len(rows) > 2:
            curves = {
                "CPU seconds": [c["cpu"] for c in rows],
                "peak, GiB": [c["peak"] for c in rows],
            }
            at = [c["rows"] for c in rows]
            plot(HERE / f"scale-{method}.png", at, curves, x="rows", y="", logarithmic=(True, True))
    one, two = (results.get(f"marginals/cores/{n}") for n in (1, 2))
    if one and two:
        ratio = one["seconds"] / two["seconds"]
        lines += ["", f"Marginals of {one['rows']:,} rows: {one['seconds']:.1f} s on one core, "
                  f"{two['seconds']:.1f} s on two: {ratio:.2f} times as fast."]  # fmt: skip
    keep("scale", {"cells": results}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(**json.loads(sys.argv[2]))
        raise SystemExit
    results, patterns = kept(), sys.argv[2:] or ["*"]
    for name, shape in cells().items() if sys.argv[1] != "show" else ():
        if name not in results and any(fnmatch(name, pattern) for pattern in patterns):
            results[name] = run(Path(sys.argv[1]), shape)
            order = [n for n in cells() if n in results]
            show({n: results[n] for n in order})
    if sys.argv[1] == "show":
        show(results)
