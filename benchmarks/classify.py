"""Models instead of rows, through the command line: accuracy on real test rows, time and memory.

A cell is METHOD/DATA/EPSILON: `limbeck classify` on the data set's training files with the method's defaults and delta 1e-5
(or a tenth of one over the rows, where that is less), `limbeck verify`, and `limbeck evaluate` on its test files. Each is a
process of its own. The noise is seeded, so that a cell can be run again. Defaults were chosen on training rows that were held back.

Resumable: finished cells are kept in classify.json.
Usage: LIMBECK_DATA=... python benchmarks/classify.py [PATTERN ...]
runs the missing cells whose names contain one of the patterns; without one it prints what is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import HERE, delta_for, keep

import limbeck as lk

STATE = HERE / "classify.json"
METHODS = ("linear-head", "dp-sgd")
DATA = ("mnist", "fashion-mnist", "adult")
EPSILONS = (1, 10)
PUBLISHED = {("mnist", 10): "96.5", ("fashion-mnist", 10): "82.9"}
"""Accuracy in per cent of DP-SGD ConvNets on all real rows, as paper 001 (table 3) has it."""


def cells() -> list[str]:
    return [f"{m}/{data}/{epsilon}" for data in DATA for epsilon in EPSILONS for m in METHODS]


def files(data: str, folder: Path) -> tuple[Path, Path, Path]:
    """The schema, the training and the test file."""
    written = {path.name: path for path in lk.datasets.write(data, folder / data, force=True)}
    train, test = (
        next(path for name, path in written.items() if name.startswith(part))
        for part in ("train", "test")
    )
    return written["schema.toml"], train, test


def command(*words: object, ledger: Path) -> tuple[str, os.struct_rusage, float]:
    """What a command says, what it used, and how long it took."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "limbeck.cli", *map(str, words)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"LIMBECK_LEDGER": str(ledger)},
    )  # fmt: skip
    assert child.stdout
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"limbeck {' '.join(map(str, words))} failed")
    return said, used, time.perf_counter() - start


def measure(cell: str) -> dict[str, Any]:
    method, data, epsilon = cell.split("/")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        schema, train, test = files(data, folder)
        delta = delta_for(lk.Schema.load(schema).rows, part=0.1)
        model, book = folder / "model", folder / "ledger.sqlite"
        _, used, seconds = command(
            "classify", train, "--schema", schema, "--method", method, "--epsilon", epsilon,
            "--delta", delta, "--seed", 0, "--out", model, ledger=book,
        )  # fmt: skip
        verdict = json.loads(command("verify", model, "--json", ledger=book)[0])
        told = json.loads(command("evaluate", model, "--test", test, "--json", ledger=book)[0])
    figures = {score["figure"]: score["mean"] for score in told["scores"]}
    return {
        "accuracy": figures["accuracy"],
        "roc_auc": figures.get("ROC AUC"),
        "epsilon_verified": verdict["epsilon"],
        "delta": delta,
        "test_rows": told["test_rows"],
        "minutes": round(seconds / 60, 2),
        "cpu_minutes": round((used.ru_utime + used.ru_stime) / 60, 2),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }


def table(found: dict[str, Any]) -> str:
    lines = [
        "Accuracy in per cent, and area under the ROC curve, on all real test rows, which decided nothing; one seed. `limbeck",
        "classify` with the methods' defaults; minutes and CPU minutes are of that command, on cores that other work shared.\n",
        "| method | data | epsilon | accuracy | ROC AUC | DP-SGD of paper 001 | minutes | CPU minutes | peak MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells():
        method, data, epsilon = cell.split("/")
        paper = PUBLISHED.get((data, int(epsilon)), "")
        one = found.get(cell)
        if one is None:
            lines.append(f"| {method} | {data} | {epsilon} | *not run* | | {paper} | | | |")
            continue
        area = "" if one["roc_auc"] is None else f"{one['roc_auc']:.3f}"
        lines.append(
            f"| {method} | {data} | {epsilon} | {100 * one['accuracy']:.1f} | {area} | {paper} | "
            f"{one['minutes']:.1f} | {one['cpu_minutes']:.1f} | {one['peak_megabytes']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    state = json.loads(STATE.read_text())["cells"] if STATE.exists() else {}
    for cell in cells():
        if cell in state or not any(pattern in cell for pattern in sys.argv[1:]):
            continue
        state[cell] = measure(cell)
        print(cell, state[cell], flush=True)
        keep("classify", {"cells": state}, table(state))
    keep("classify", {"cells": state}, table(state))


if __name__ == "__main__":
    main()
