"""What the scores themselves show: the twelve classifiers on real Adult, the papers' own scorer beside
them, each classifier on images that DP-MERF released, and a private classifier on the real rows.

Every cell is kept in scores.json when it is done; a stopped run goes on where it was.

Usage: LIMBECK_DATA=... python benchmarks/scores.py [PATTERN ...]
runs the missing cells whose names contain one of the patterns, such as `twelve/adult`; without a
pattern it only prints what is there.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from _measure import HERE, keep

import limbeck as lk
from limbeck.papers.bench import Bench, bench
from limbeck.scores import TWELVE, classifier_scores, legacy_scores, score_chances
from limbeck.scores.legacy import CANDIDATES

STATE = HERE / "scores.json"
LEGACY_ROWS = 5_000
"""Rows for the legacy scorer, real ones at random: it trains some forty models."""
IMAGES = 2_000
"""Released images for each of the twelve classifiers."""
SOURCES = ("real", "dp-merf")


def cells() -> Iterator[str]:
    """Names of all cells."""
    for classifier in TWELVE:
        yield f"twelve/adult/{classifier.name}"
    for name in CANDIDATES:
        yield f"legacy/adult/{name}"
    for data in ("adult", "mnist", "fashion-mnist"):
        for epsilon in (1, 10):
            yield f"private-classifier/{data}/{epsilon}"
    for source in SOURCES:
        for classifier in TWELVE:
            yield f"images-{source}/mnist/{classifier.name}"


def some(stand: Bench, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    slots, labels = stand.rows("train")
    at = np.random.default_rng(0).permutation(len(labels))[:rows]
    return slots[at], labels[at]


@lru_cache(maxsize=1)
def released(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Images of one DP-MERF release at epsilon 1, default settings, as slots and labels."""
    stand = bench(data)
    with tempfile.TemporaryDirectory() as folder:
        made = lk.distill(
            stand.train,
            lk.DPMERF(),
            lk.Budget(1.0, 1e-5),
            rows=IMAGES,
            seed=0,
            ledger=lk.Ledger(Path(folder) / "ledger.sqlite"),
        )
    held = lk.read((made.data.images, made.data.labels), made.schema)._encoded()
    return made.schema.expand(held.cells), held.labels


def measure(cell: str) -> dict[str, Any]:
    kind, data, name = cell.split("/")
    stand = bench(data)
    test = stand.rows("test")
    classes = len(stand.schema.classes)
    if kind == "legacy":
        found = legacy_scores(
            *some(stand, LEGACY_ROWS), *test, candidates={name: CANDIDATES[name]}
        )[name]
        return found | {"rows": LEGACY_ROWS}
    if kind == "private-classifier":
        with tempfile.TemporaryDirectory() as folder:
            book = lk.Ledger(Path(folder) / "ledger.sqlite")
            budget = lk.Budget(float(name), 1e-5)
            trained = lk.classify(
                stand.train, lk.LinearHead(), budget, ledger=book, seed=0, check=False
            )
        return score_chances(test[1], trained.classifier.chances(test[0]))
    x, y = {
        "twelve": lambda: stand.rows("train"),
        "images-real": lambda: some(stand, IMAGES),
        "images-dp-merf": lambda: released(data),
    }[kind]()
    one = [c for c in TWELVE if c.name == name]
    return classifier_scores(x, y, *test, classes, classifiers=one)[name]


def share(state: dict[str, Any], cell: str, figure: str) -> str:
    found = state.get(cell, {}).get(figure)
    return "*not run*" if found is None else f"{found:.3f}"


def mean(state: dict[str, Any], kind: str, figure: str) -> str:
    there = [v[figure] for k, v in state.items() if k.startswith(f"{kind}/") and figure in v]
    all_of = [c for c in cells() if c.startswith(f"{kind}/")]
    return f"{np.mean(there):.3f} ({len(there)} of {len(all_of)})" if there else "*not run*"


def tables(state: dict[str, Any]) -> str:
    lines = [
        "## Adult, real rows\n",
        "Trained on the 32,561 training rows, slow ones on 20,000 of them; ",
    ]
    lines[-1] += (
        "figures from probabilities. Legacy: the papers' scorer, best of several settings on the "
    )
    lines[-1] += (
        f"test rows and from hard labels; trained on {LEGACY_ROWS:,} rows. For comparison only.\n"
    )
    lines += ["| classifier | ROC AUC | average precision | accuracy | legacy ROC | legacy PRC |"]
    lines += ["|---|---|---|---|---|---|"]
    for classifier in TWELVE:
        ours, theirs = f"twelve/adult/{classifier.name}", f"legacy/adult/{classifier.name}"
        row = [share(state, ours, f) for f in ("roc_auc", "average_precision", "accuracy")]
        row += [share(state, theirs, f) for f in ("roc_auc", "average_precision")]
        lines.append(f"| {classifier.name} | {' | '.join(row)} |")
    row = [mean(state, "twelve", f) for f in ("roc_auc", "average_precision", "accuracy")]
    row += [mean(state, "legacy", f) for f in ("roc_auc", "average_precision")]
    lines.append(f"| mean | {' | '.join(row)} |")
    lines += [f"\n## MNIST by classifier (paper 002, figure 6), {IMAGES:,} images\n"]
    lines += ["| classifier | real images | DP-MERF, epsilon 1 |", "|---|---|---|"]
    for classifier in TWELVE:
        row = [share(state, f"images-{s}/mnist/{classifier.name}", "accuracy") for s in SOURCES]
        lines.append(f"| {classifier.name} | {' | '.join(row)} |")
    row = [mean(state, f"images-{s}", "accuracy") for s in SOURCES]
    lines.append(f"| mean | {' | '.join(row)} |")
    lines += ["\n## A private classifier on the real rows: the other way to spend the budget\n"]
    lines += [
        "Softmax regression on scattering features (images) or random features (tables), 100 noisy "
    ]
    lines[-1] += (
        "full-batch steps, delta 1e-5, one seed. The paper's DP-SGD at epsilon 10 (001, table 3): "
    )
    lines[-1] += "0.965 on MNIST, 0.829 on Fashion-MNIST.\n"
    lines += ["| data | epsilon | accuracy | ROC AUC |", "|---|---|---|---|"]
    for cell in cells():
        if cell.startswith("private-classifier"):
            _, data, epsilon = cell.split("/")
            auc = share(state, cell, "roc_auc") if state.get(cell, {}).get("roc_auc") else ""
            lines.append(f"| {data} | {epsilon} | {share(state, cell, 'accuracy')} | {auc} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    state = json.loads(STATE.read_text())["cells"] if STATE.exists() else {}
    for cell in cells():
        if cell in state or not any(p in cell for p in sys.argv[1:]):
            continue
        begun = time.process_time()
        state[cell] = measure(cell) | {"cpu_seconds": round(time.process_time() - begun, 1)}
        print(cell, state[cell], flush=True)
        keep("scores", {"cells": state}, tables(state))
    keep("scores", {"cells": state}, tables(state))


if __name__ == "__main__":
    main()
