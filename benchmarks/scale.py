"""Time and peak memory against rows, columns, features and classes; two cores against one; CSV; executors of Spark.

python benchmarks/scale.py FOLDER [PATTERN ...]   # generated data go to FOLDER; what is there is kept, the rest runs
python benchmarks/scale.py FOLDER data            # makes what is measured on, and measures nothing
python benchmarks/scale.py FOLDER quiet           # on quiet cores: all of it anew, ratios first; may be stopped at any time
python benchmarks/scale.py FOLDER --trial         # everything with a hundredth of the rows; keeps nothing
python benchmarks/scale.py show                   # table and plots again, from what is there

Some ten minutes on two quiet cores without `marginals/rows/100000000`, which runs if it is named. Ratios are of runs
that follow each other. Spark is left out where pyspark or Java are missing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import scale_page
from _measure import HERE, keep
from _plot import lines as plot
from scale_runs import csv, parquet

Cell = dict[str, Any]
IMAGES = HERE.parent / "docs" / "images"
QUIET = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_ARENA_MAX": "1",
}
"""One thread within a batch: batches are what goes side by side."""
USUAL = {"kind": "run", "rows": 10**6, "count": 20, "classes": 2, "cores": "0,1"}
METHODS = {"marginals": 16, "dp-merf": 200}
AXES = {
    "rows": (10**4, 10**5, 10**6, 10**7, 10**8),
    "count": (5, 10, 20, 40),
    "features": (8, 16, 32, 64),
    "classes": (2, 4, 8, 16),
}
CORES_ROWS, CSV_ROWS, SPARK_ROWS = 10**7, 5 * 10**6, 10**6
WORKERS = (1, 2, 4)
BUSY = 0.1
"""Part of the cores' time from which on other work shared them."""
QUIET_CELLS = ("csv", "marginals/cores", "dp-merf/cores", "spark")
"""What is told as ratios of seconds: measured first."""
BEFORE = (
    "- Of marginals, growth with columns, cells and classes, and 10^4 rows, were measured before its ones and zeros were counted: "
    "these seconds of a core are of older sums."
)
"""Told as long as a cell of before is there."""
ONLY_IF_NAMED = "*/rows/100000000"


def cells() -> dict[str, dict[str, Cell]]:
    """Every cell by its name, with the runs it has, one after the other; the dearest and most wanted first."""
    wanted: dict[str, dict[str, Cell]] = {}
    for method, features in METHODS.items():
        for rows in reversed(AXES["rows"]):
            shape = USUAL | {"method": method, "features": features, "rows": rows}
            wanted[f"{method}/rows/{rows}"] = {"": shape}
    for method, features in METHODS.items():
        shape = USUAL | {"method": method, "features": features, "rows": CORES_ROWS}
        wanted[f"{method}/cores"] = {
            "1": shape | {"cores": "0"},
            "2": shape,
        }
    table = {"rows": CSV_ROWS, "count": 20, "classes": 2, "cores": "0,1"}
    wanted["csv"] = {"pandas": {"kind": "pandas", **table}, "limbeck": {"kind": "summed", **table}}
    spark = USUAL | {"kind": "spark", "rows": SPARK_ROWS}
    if importlib.util.find_spec("pyspark") and shutil.which("java"):
        wanted["spark"] = {str(workers): spark | {"workers": workers} for workers in WORKERS}
        wanted["spark"]["few"] = spark | {"workers": 2, "rows": SPARK_ROWS // 10}
    for method, features in METHODS.items():
        for axis in ("count", "features", "classes"):
            for value in AXES[axis]:
                value = value * 25 if (method, axis) == ("dp-merf", "features") else value
                shape = USUAL | {"method": method, "features": features} | {axis: value}
                wanted[f"{method}/{axis}/{value}"] = {"": shape}
    return wanted


def measured(folder: Path, shape: Cell) -> Cell:
    """One run in a process and a session of its own."""
    place = fill(folder, shape)
    given = {"place": str(place)} | {k: v for k, v in shape.items() if k != "cores"}
    words = [sys.executable, str(HERE / "scale_runs.py"), json.dumps(given)]
    begun, busy = time.perf_counter(), busy_seconds()
    done = subprocess.run(
        ["taskset", "-c", shape["cores"], *words],
        capture_output=True,
        text=True,
        env=os.environ | QUIET,
        start_new_session=True,
    )
    if done.returncode:
        raise SystemExit(f"{shape}: {done.stderr[-2000:]}")
    seconds, busy = time.perf_counter() - begun, busy_seconds() - busy
    found = json.loads(done.stdout.splitlines()[-1])
    others = max(0.0, busy - found.pop("all")) / seconds / (os.cpu_count() or 1)
    return shape | found | {"others": round(others, 3)}


def busy_seconds() -> float:
    """Seconds of all cores that anything has used since the machine began."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def shared(runs: Iterable[Cell]) -> bool:
    """Whether other work had much of the cores, or may have had."""
    return any(run.get("others", 1.0) > BUSY for run in runs)


def known(results: dict[str, Any], shape: Cell) -> Cell | None:
    """A run that lies on several axes is made once."""
    runs = (run for cell in results.values() for run in cell.values())
    return next((run for run in runs if shape.items() <= run.items()), None)


def slope(found: list[Cell], axis: str, what: str) -> float:
    """Of the logarithms, over the larger half: 1 is linear growth, 0 is none."""
    last = found[len(found) // 2 :]
    return float(np.polyfit(np.log([f[axis] for f in last]), np.log([f[what] for f in last]), 1)[0])


def kept() -> dict[str, Any]:
    place = HERE / "scale.json"
    return json.loads(place.read_text())["cells"] if place.exists() else {}


def on_axis(results: dict[str, Any], method: str, axis: str) -> list[Cell]:
    """The cells of an axis that are there, in its order."""
    found = [c[""] for n, c in results.items() if n.startswith(f"{method}/{axis}/")]
    return sorted(found, key=lambda cell: cell[axis])


def growth(results: dict[str, Any]) -> list[str]:
    """Tables and plots of the cells on an axis."""
    lines = ["| method | axis | value | seconds | seconds of a core | peak, GiB |", "|---|---|---|---|---|---|"]  # fmt: skip
    slopes = ["| growth with | of | seconds of a core | peak |", "|---|---|---|---|"]
    for axis in AXES:
        curves: dict[str, dict[str, list[float]]] = {"cpu": {}, "peak": {}}
        at: list[float] = []
        for method in METHODS:
            found = on_axis(results, method, axis)
            for c in found:
                lines.append(
                    f"| {method} | {axis} | {c[axis]:,} | {c['seconds']:.1f} | {c['cpu']:.1f} | {c['peak']:.2f} |"
                )
            if len(found) > 2:
                both = (slope(found, axis, what) for what in ("cpu", "peak"))
                slopes.append(f"| {axis} | {method} | " + " | ".join(f"{b:.2f}" for b in both) + " |")  # fmt: skip
                places = [float(c[axis]) for c in found]
                if not at or at == places:
                    at = places
                    for what in curves:
                        curves[what][method] = [c[what] for c in found]
        if axis == "rows" and curves["cpu"]:
            IMAGES.mkdir(exist_ok=True)
            for what, name in (("cpu", "seconds of a core"), ("peak", "peak memory, GiB")):
                work = what == "cpu"
                plot(
                    IMAGES / f"scale-{what}.png", at, curves[what], x="rows of 20 columns", y=name,
                    logarithmic=(True, work), from_zero=not work,
                )  # fmt: skip
    return [*lines, "", *slopes]


def ratios(results: dict[str, Any]) -> list[str]:
    """What is told as a ratio of two runs."""
    lines = []
    if any("measuring" not in c for c in on_axis(results, "marginals", "count")):
        lines.append(BEFORE)
    for method in METHODS:
        rows = {c["rows"]: c for c in on_axis(results, method, "rows")}
        if 10**6 in rows and 10**7 in rows:
            few, many = rows[10**6]["peak"], rows[10**7]["peak"]
            lines.append(
                f"- {method}, 10^7 rows of 20 columns: peak {many:.2f} GiB, {many / few:.2f} times that of 10^6."
            )
        cores = results.get(f"{method}/cores", {})
        if all("measuring" in run for run in cores.values()) and cores:
            one, two = cores["1"], cores["2"]
            lines.append(
                f"- {method}, {one['rows']:,} rows: {one['seconds']:.1f} s on one core, {two['seconds']:.1f} s on "
                f"two: {one['seconds'] / two['seconds']:.2f} times as fast, with {two['cpu'] / one['cpu']:.2f} "
                f"times the seconds of a core; reading and measuring alone {one['measuring']:.1f} and "
                f"{two['measuring']:.1f} s: {one['measuring'] / two['measuring']:.2f} times."
                + company(cores)
            )
    if both := results.get("csv"):
        plain, ours = both["pandas"], both["limbeck"]
        lines.append(
            f"- CSV of {ours['rows']:,} rows: pandas reads it in {plain['seconds']:.1f} s ({plain['cpu']:.1f} s of a "
            f"core), limbeck reads, encodes and sums it in {ours['seconds']:.1f} s ({ours['cpu']:.1f}): "
            f"{plain['seconds'] / ours['seconds']:.2f} times as fast, {plain['cpu'] / ours['cpu']:.2f} by seconds of "
            "a core." + company(both)
        )
    return lines


def company(cell: dict[str, Cell]) -> str:
    """Whether the seconds of a cell are worth something."""
    return " Other work shared the cores." if shared(cell.values()) else " The cores were quiet."


def executors(cell: dict[str, Cell]) -> list[str]:
    """Spark by number of executors: time, work, and bytes beside those on paper."""
    lines = [
        "", "| executors | rows | seconds | seconds of a core | encoded row, bytes | between tasks, MB | on paper, MB | to the driver, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for c in cell.values():
        row, paper = c["kept"] / c["rows"], c["tasks"] * c["partials"]
        moved = (c["shuffled"], paper, c["collected"])
        lines.append(
            f"| {c['workers']} | {c['rows']:,} | {c['seconds']:.1f} | {c['cpu']:.1f} | {row:.0f} | "
            + " | ".join(f"{b / 1e6:.2f}" for b in moved)
            + " |"
        )
    one, two, four, few = (cell[name] for name in ("1", "2", "4", "few"))
    row = (two["cpu"] - few["cpu"]) / (two["rows"] - few["rows"])
    start = (four["cpu"] - one["cpu"]) / (four["workers"] - one["workers"])
    lines += [
        "",
        f"Two executors were {one['seconds'] / two['seconds']:.2f} times as fast as one, four "
        f"{one['seconds'] / four['seconds']:.2f} times; the driver shares the cores. A row takes {1e6 * row:.1f} "
        f"microseconds of a core, an executor more {start:.1f} seconds to begin.{company(cell)}",
    ]
    return lines


def show(results: dict[str, Any]) -> None:
    """Tables, slopes and plots of what is there."""
    order = [name for name in cells() if name in results]
    results = {name: results[name] for name in order}
    lines = [*ratios(results), "", *growth(results)]
    if any(shared(cell.values()) for cell in results.values()):
        busy = "Where other work shared the cores, seconds of a core and peaks hold; seconds and their ratios mean little."
        lines = [busy, "", *lines]
    if "spark" in results:
        lines += executors(results["spark"])
    keep("scale", {"cells": results}, "\n".join(lines) + "\n")
    slopes = {
        (axis, method): slope(on_axis(results, method, axis), axis, "cpu")
        for axis in AXES
        for method in METHODS
    }
    told = ratios(results)
    if "spark" in results:
        told.append(f"- Marginals on Spark, {SPARK_ROWS:,} rows: {executors(results['spark'])[-1]}")
    scale_page.write(results, told, slopes)


def small(shape: Cell) -> Cell:
    return shape | {"rows": max(1000, shape["rows"] // 100)}


def fill(folder: Path, shape: Cell) -> Path:
    """What a run reads."""
    make = csv if shape["kind"] in ("pandas", "summed") else parquet
    return make(folder, shape["rows"], shape["count"], shape["classes"])


def of_quiet() -> dict[str, dict[str, Cell]]:
    """All cells but the dearest, first those whose ratios want quiet cores."""
    every = {n: runs for n, runs in cells().items() if not fnmatch(n, ONLY_IF_NAMED)}
    return {name: every[name] for name in QUIET_CELLS if name in every} | every


def again(folder: Path) -> None:
    """Everything anew, whatever was there; each cell is kept as soon as it is there."""
    fresh: dict[str, Any] = {}
    begun = time.perf_counter()
    for name, runs in of_quiet().items():
        fresh[name] = {key: known(fresh, s) or measured(folder, s) for key, s in runs.items()}
        show(kept() | fresh)
        print(f"{name}: {time.perf_counter() - begun:.0f} s so far", flush=True)


def missing(folder: Path, patterns: list[str], trial: bool) -> None:
    """Cells that are not there yet; of a trial all, and none is kept."""
    results: dict[str, Any] = {} if trial else kept()
    for name, runs in cells().items():
        wanted = any(fnmatch(name, pattern) for pattern in patterns or ["*"])
        if not wanted or name in results or (fnmatch(name, ONLY_IF_NAMED) and name not in patterns):
            continue
        if trial:
            runs = {key: small(shape) for key, shape in runs.items()}
        found = {key: known(results, s) or measured(folder, s) for key, s in runs.items()}
        print(name, json.dumps(found) if trial else "", flush=True)
        if not trial:
            results[name] = found
            show(results)


if __name__ == "__main__":
    if sys.argv[1] == "show":
        show(kept())
        raise SystemExit
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    if words == ["data"]:
        for runs in of_quiet().values():
            for shape in runs.values():
                print(fill(folder, shape), flush=True)
    elif words == ["quiet"]:
        again(folder)
    else:
        trial = "--trial" in words
        missing(folder, [word for word in words if word != "--trial"], trial)
