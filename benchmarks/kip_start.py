"""DP-KIP from a private start: accuracies beside the papers' tables, with both kernels.

Each cell is an entry of kip_start.json and is run once; an interrupted benchmark goes on where it was.

    python benchmarks/kip_start.py                     what there is, and what is left
    python benchmarks/kip_start.py run 'fc-ntk/*'      run cells by name or pattern
    python benchmarks/kip_start.py again 'fc-ntk/*'    run them anew

Data come from LIMBECK_DATA. Accuracies are of the final iterate, by kernel regression on all test
images with the method's own kernel and ridge. Settings are the method's defaults, but for what SETTINGS
says; they were chosen on held-back training images of Fashion-MNIST (notes/kernels.md): a proxy for MNIST
and CIFAR-10, its own training rows, unpaid, for Fashion-MNIST.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from typing import Any

from _measure import HERE, keep
from kip import PAPER, learn, pictures

from limbeck.run import make_method

COLOUR = {
    "dp-kip/scattering/cifar10/eps1": (46.6, 48.6, 49.7),
    "dp-kip/scattering/cifar10/eps10": (50.4, 54.4, 58.7),
}
"""Paper 001, table 2."""
SIZES = (1, 10, 50)
DATA = {"fc-ntk": ("mnist", "fashion"), "scattering": ("mnist", "fashion", "cifar10")}
SETTINGS: dict[str, dict[str, Any]] = {
    "fc-ntk": {},
    "scattering": {"kernel": "scattering"},
}


def cells() -> dict[str, tuple[str, str, int, int]]:
    """Kernel, data, epsilon and images per class of each cell, by its name."""
    return {
        f"{kernel}/{data}/eps{epsilon}/{per_class}": (kernel, data, epsilon, per_class)
        for kernel, names in DATA.items()
        for data in names
        for epsilon in (1, 10)
        for per_class in SIZES
    }


def run(kernel: str, data: str, epsilon: int, per_class: int) -> dict[str, Any]:
    method = make_method("dp-kip", SETTINGS[kernel] | {"per_class": per_class})
    return learn(method, *pictures(data), epsilon, 0)


def paper_of(kernel: str, data: str, epsilon: int, per_class: int) -> float:
    known = (PAPER | COLOUR)[f"dp-kip/{kernel}/{data}/eps{epsilon}"]
    return known[SIZES.index(per_class)]


def table_of(results: dict[str, Any]) -> str:
    lines = ["| cell | accuracy | paper | difference | minutes |", "|---|---|---|---|---|"]
    for name, cell in cells().items():
        entry, paper = results.get(name), paper_of(*cell)
        if entry is None:
            lines.append(f"| {name} | *not run* | {paper} | | |")
            continue
        accuracy = entry["accuracy"]
        # Processor time, where it was kept; else by the clock, whatever else ran beside it.
        told = [f"{entry[key] / 60:.1f}" for key in ("cpu_seconds",) if key in entry]
        minutes = told[0] if told else f"({entry['seconds'] / 60:.1f})"
        lines.append(f"| {name} | {accuracy:.1f} | {paper} | {accuracy - paper:+.1f} | {minutes} |")
    return "\n".join(lines) + NOTES


NOTES = """

Percentages of test images, one seed, the final iterate. The paper's MNIST figures under fc-ntk most likely
start from training images ([kip.md](kip.md)); ours start from noisy cluster means, which are part of what
epsilon pays for. Minutes are of processor time, scoring not included; those in brackets are by the clock, on cores that other
work shared more or less (`load_before` in the JSON is the load average): beside ten other processes they are ten
times too long.
"""


def main() -> None:
    path = HERE / "kip_start.json"
    results = json.loads(path.read_text())["cells"] if path.exists() else {}
    verb, pattern = (*sys.argv[1:], "list", "")[:2]
    for name, cell in cells().items():
        wanted = verb in ("run", "again") and fnmatch.fnmatch(name, pattern)
        if wanted and (verb == "again" or name not in results):
            print(name, flush=True)
            load = round(os.getloadavg()[0], 1)
            found = run(*cell) | {"load_before": load}
            # Another process may have finished other cells meanwhile.
            results = json.loads(path.read_text())["cells"] if path.exists() else {}
            results[name] = found
            keep("kip_start", {"cells": results}, table_of(results))
    if verb == "list":
        print(table_of(results))


if __name__ == "__main__":
    main()
