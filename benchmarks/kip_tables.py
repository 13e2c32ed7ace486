"""DP-KIP on the papers' eight tables: distilled rows, exact and decoded, taught to twelve classifiers.

Each cell is an entry of kip_tables.json and is run once; an interrupted benchmark goes on where it was.

    python benchmarks/kip_tables.py                  what there is, and what is left
    python benchmarks/kip_tables.py run 'ad*'        run tables by name or pattern
    python benchmarks/kip_tables.py again 'ad*'      run them anew

Data come from LIMBECK_DATA. Settings are the method's defaults but for SETTINGS, the same for all tables; they
were chosen on held-back training rows (notes/kernels.md). Test rows are the true ones, not thinned out; of large
tables a random part of them.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import tempfile
import time
from typing import Any

import numpy as np
from _measure import HERE, delta_for, keep

import limbeck as lk
from limbeck.run import make_method
from limbeck.scores import TWELVE, classifier_scores, mean_scores

PAPER = {
    "adult": (0.662, 0.662), "census": (0.766, 0.766), "cervical": (0.622, 0.622),
    "credit": (0.892, 0.892), "epileptic": (0.786, 0.654), "isolet": (0.762, 0.615),
    "covtype": (0.582, 0.582), "intrusion": (0.648, 0.873),
}  # fmt: skip
"""Paper 000, table 3, and paper 001, table 5: ROC AUC; F1 of the last two."""
SETTINGS: dict[str, Any] = {"per_class": 10}
NUMBERS = 4_000_000
"""Of test rows that are scored, at most."""


def run(name: str) -> dict[str, Any]:
    data = lk.datasets.load(name)
    schema, began = data.schema, time.process_time()
    method = make_method("dp-kip", SETTINGS)
    budget = lk.Budget(1.0, delta_for(schema.rows, part=0.1))
    with tempfile.TemporaryDirectory() as folder:
        ledger = lk.Ledger(f"{folder}/ledger.sqlite")
        release = lk.distill(lk.read(data.train, schema), method, budget, seed=0, ledger=ledger)
    learned = time.process_time() - began
    held = lk.read(data.test, schema)._encoded()
    some = np.random.default_rng(0).permutation(len(held.labels))[: NUMBERS // schema.slots]
    seen, wanted = schema.expand(held.cells[some]), held.labels[some]
    made, source = lk.read(release.data, release.schema)._encoded(), release.source
    scores = {}
    for kind, rows, labels in (
        ("decoded", release.schema.expand(made.cells), made.labels),
        ("exact", source.slots, source.labels),
    ):
        by_name = classifier_scores(
            rows, labels, seen, wanted, len(schema.classes), classifiers=TWELVE
        )
        scores[kind] = {"mean": mean_scores(by_name), "each": by_name}
    return {
        "scores": scores,
        "settings": method.settings(),
        "delta": budget.delta,
        "test_rows": len(wanted),
        "cpu_seconds": learned,
        "cpu_seconds_of_scoring": time.process_time() - began - learned,
    }


def score_of(entry: dict[str, Any], kind: str) -> float:
    mean = entry["scores"][kind]["mean"]
    return mean.get("roc_auc", mean["f1"])


def table_of(results: dict[str, Any]) -> str:
    lines = [
        "| table | decoded | exact | paper 000 | paper 001 | average precision, decoded | test rows | "
        "processor seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (first, second) in PAPER.items():
        if name not in results:
            lines.append(f"| {name} | *not run* | *not run* | {first} | {second} | | | |")
            continue
        entry = results[name]
        decoded, exact = (score_of(entry, kind) for kind in ("decoded", "exact"))
        precision = entry["scores"]["decoded"]["mean"].get("average_precision")
        told = "" if precision is None else f"{precision:.3f}"
        lines.append(
            f"| {name} | {decoded:.3f} | {exact:.3f} | {first} | {second} | {told} | "
            f"{entry['test_rows']:,} | {entry['cpu_seconds']:.0f} |"
        )
    above = sum(score_of(results[name], "decoded") > PAPER[name][0] for name in results)
    return "\n".join(lines) + NOTES.format(above=above, run=len(results))


NOTES = """

Epsilon 1, delta a tenth of one over the rows or 1e-5, ten rows per class, one seed, the final iterate. ROC AUC, weighted F1 for
covtype and intrusion: the mean over the papers' twelve classifiers in their published single settings. Decoded
rows are what `limbeck distill` writes as a table; exact ones are the numbers in `distilled.npz`. Decoded rows are above paper
000's figure on {above} of {run} tables run. The papers' figures are of test rows from which much of the majority class was
thrown away, best of several settings per classifier, areas under curves of hard labels, five seeds: they are
another measurement under the same name.
"""


def main() -> None:
    path = HERE / "kip_tables.json"
    verb, pattern = (*sys.argv[1:], "list", "")[:2]
    results = json.loads(path.read_text())["cells"] if path.exists() else {}
    for name in PAPER:
        wanted = verb in ("run", "again") and fnmatch.fnmatch(name, pattern)
        if wanted and (verb == "again" or name not in results):
            print(name, flush=True)
            load = round(os.getloadavg()[0], 1)
            results[name] = run(name) | {"load_before": load}
            keep("kip_tables", {"cells": results}, table_of(results))
    if verb == "list":
        print(table_of(results))


if __name__ == "__main__":
    main()
