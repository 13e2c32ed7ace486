"""G-PATE: images and the Credit table at a stated epsilon, ablations, and the speed of the ensemble.

A cell is variant/data/epsilon/seed. Variants: `ours` (sums of directions), `ours+NAME=VALUE`, `paper`
(the recipes with the paper's mechanism and noise), `paper+VARIANT` (its ablations), `real` (trained on real rows).
Images are scored by the paper's CNN on its final epoch; it is trained for fewer epochs at a larger rate
than the paper's (`CNN_TRAINING`), whose 600 epochs on 100,000 images take days here. Tables are scored by
the paper's four classifiers. The speed cell compares one update of all teachers with the same
teachers trained one after another. Resumable: finished cells are kept in gpate.json.

Usage: LIMBECK_DATA=... python benchmarks/gpate.py [PATTERN ...]
runs the missing cells whose names contain one of the patterns, such as `ours/mnist/1/`; without a
pattern it only prints what is there.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _measure import HERE, delta_for, keep

import limbeck as lk
from limbeck.accounting import Budget
from limbeck.nets import build_generator
from limbeck.papers.scoring import CNN_TRAINING
from limbeck.privacy import Faculty, Noise, RowAccess
from limbeck.privacy.teachers.ensemble import Ensemble, Shards
from limbeck.run import Recipe
from limbeck.scores import CREDIT, classifier_scores, cnn_accuracy

STATE = HERE / "gpate.json"
RECIPES = HERE.parent / "recipes"
SOME = 40
"""Teachers that are timed one after another; the rest would take as long each."""
TABLE_ROWS = 40_000
"""Rows of a table that classifiers are trained on, released ones and real ones alike: for speed."""
IMAGES = ("mnist", "fashion-mnist")
PUBLISHED = {
    "mnist/1": 0.5631, "mnist/10": 0.8092, "fashion-mnist/1": 0.5174, "fashion-mnist/10": 0.6934,
}  # fmt: skip
"""Paper 003, Table 2: the best of 600 test epochs, with an epsilon that leaks."""
TEACHERS = (
    "paper+teachers-2000",
    "paper+teachers-3000",
    "ours+teachers=2000",
    "ours+teachers=3000",
)
PROJECTIONS = (
    "paper+projection-5",
    "paper+projection-20",
    "paper+projection-none",
    "ours+projection=5",
    "ours+projection=10",
    "ours+projection=20",
)


def cells() -> Iterator[str]:
    for seed in range(3):
        for data in IMAGES:
            for epsilon in (1, 10):
                yield f"ours/{data}/{epsilon}/{seed}"
        yield f"ours/credit/1/{seed}"
        yield f"ours+spread_share=0.1/credit/1/{seed}"
    for data in IMAGES:
        for epsilon in (1, 10):
            yield f"paper/{data}/{epsilon}/0"
        yield f"real/{data}/0/0"
    yield "paper/credit/1/0"
    yield "real/credit/0/0"
    for variant in (*TEACHERS, *PROJECTIONS):
        yield f"{variant}/mnist/1/0"
    yield "speed/mnist/1/0"


def method_of(variant: str, data: str, epsilon: str) -> lk.GPATE:
    kind, _, change = variant.partition("+")
    if kind == "paper":
        name = f"{data}-{change}" if change else data
        method = Recipe.load(f"{RECIPES / f'g-pate-eps{epsilon}.toml'}#{name}").method
    else:
        method = lk.GPATE(aggregation="directions")
        if change:
            name, _, value = change.partition("=")
            method = replace(method, **{name: json.loads(value)})
    assert isinstance(method, lk.GPATE)
    return method


def measure(cell: str) -> dict[str, Any]:
    variant, data, epsilon, seed = cell.split("/")
    public = lk.datasets.load(data)
    if variant == "speed":
        return speed(public)
    seconds = 0.0
    if variant == "real":
        made = public.train
    else:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            release = lk.distill(
                lk.read(rows_of(public.train), public.schema),
                method_of(variant, data, epsilon),
                Budget(
                    float(epsilon),
                    delta_for(public.schema.rows, paper=1e-5 if data in IMAGES else 1e-6),
                ),
                seed=int(seed),
                ledger=lk.Ledger(Path(folder) / "ledger.sqlite"),
                progress=told(cell),
                settings_source="defaults: tried on part of the training images of MNIST, uncharged: "
                "benchmark only",
            )
        seconds, made = time.perf_counter() - start, release.data
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return score(made, public, int(seed)) | {
        "seconds": round(seconds),
        "peak_gigabytes": round(peak, 2),
    }


def score(made: Any, public: Any, seed: int) -> dict[str, Any]:
    schema = public.schema
    if schema.image:
        labels = {value: code for code, value in enumerate(schema.classes)}
        codes = [
            np.array([labels[v] for v in part.labels.tolist()]) for part in (made, public.test)
        ]
        images = made.images[:10_000], public.test.images
        return {
            "cnn": cnn_accuracy(
                images[0],
                codes[0][:10_000],
                images[1],
                codes[1],
                len(labels),
                seed=seed,
                **CNN_TRAINING,
            )
        }
    some = made.sample(min(len(made), TABLE_ROWS), random_state=seed)
    (x, y), (x_test, y_test) = (
        (schema.expand(held.cells), held.labels)
        for held in (lk.read(part, schema)._encoded() for part in (some, public.test))
    )
    found = classifier_scores(x, y, x_test, y_test, 2, classifiers=CREDIT)
    mean = {
        key: float(np.mean([each[key] for each in found.values()]))
        for key in ("roc_auc", "average_precision")
        if all(key in each for each in found.values())
    }
    return {"classifiers": found} | mean


def speed(public: Any) -> dict[str, Any]:
    """One update of 4000 teachers at once, and of some of them one after another, scaled up."""
    found = {}
    for name, method in (
        ("ours", method_of("ours", "mnist", "1")),
        ("paper", method_of("paper", "mnist", "1")),
    ):
        data = lk.read(rows_of(public.train), public.schema)
        aggregator, phi = method.aggregator(public.schema), method.seen_features(public.schema, 0)
        facts: dict[str, Any] = {"code": method.code, "hidden": list(method.hidden)}
        generator = build_generator(public.schema, facts, key=jax.random.key(0))
        _, question = method.student().consultation(aggregator, generator, phi, jax.random.key(1))
        critic = method.critic(public.schema, 0)
        held = RowAccess(data=data, noise=Noise.from_seed(0), progress=lambda done: None)
        together = Ensemble.of_rows(Faculty(critic, phi), held)
        shards = Shards(held.rows, method.teachers, Noise.from_seed(1).stream("shards"))
        alone = Ensemble(replace(critic, count=SOME), shards, together._read)
        alone._chunk = lambda question: 1  # type: ignore[method-assign]
        times = []
        for ensemble in (together, alone):
            list(ensemble.ask(question))  # compiled and started
            start = time.perf_counter()
            list(ensemble.ask(question))
            times.append(time.perf_counter() - start)
        after = times[1] * method.teachers / SOME
        found[name] = {
            "teachers": method.teachers,
            "seconds_together": times[0],
            "seconds_one_after_another": after,
            "ratio": after / times[0],
        }
    return found


def rows_of(part: Any) -> Any:
    return (part.images, part.labels) if hasattr(part, "images") else part


def told(cell: str) -> Any:
    """Progress, some twenty lines a cell."""
    last = [-1.0]

    def progress(phase: str, done: float) -> None:
        if abs(done - last[0]) >= 0.05:
            last[0] = done
            print(f"{time.strftime('%H:%M:%S')} {cell}: {phase} {done:.0%}", flush=True)

    return progress


def table(state: dict[str, Any]) -> str:
    def mean(prefix: str, key: str) -> str:
        values = [v[key] for k, v in state.items() if k.startswith(prefix) and key in v]
        spread = f" ± {np.std(values, ddof=1):.3f} ({len(values)} seeds)" if len(values) > 1 else ""
        return f"{np.mean(values):.4f}{spread}" if values else "*not run*"

    lines = ["| images | epsilon | ours | the paper's mechanism, honest | paper | real images |"]
    lines.append("|---|---|---|---|---|---|")
    for data in IMAGES:
        for epsilon in (1, 10):
            key = f"{data}/{epsilon}"
            lines.append(
                f"| {data} | {epsilon} | {mean(f'ours/{key}/', 'cnn')} | {mean(f'paper/{key}/', 'cnn')} | "
                f"{PUBLISHED[key]} | {mean(f'real/{data}/', 'cnn')} |"
            )
    lines += ["", "CNN accuracy on real test images, final epoch.", ""]
    lines += ["| Credit, epsilon 1 | ROC AUC | average precision |", "|---|---|---|"]
    ranges = "ours+spread_share=0.1"
    for variant, key in (("ours", "1"), (ranges, "1"), ("paper", "1"), ("real", "0")):
        figures = " | ".join(
            mean(f"{variant}/credit/{key}/", score) for score in ("roc_auc", "average_precision")
        )
        lines.append(f"| {variant} | {figures} |")
    lines += ["| published | 0.9072 | 0.4392 |", ""]
    lines += ["| MNIST, epsilon 1 | CNN |", "|---|---|"]
    lines += [f"| {v} | {mean(f'{v}/mnist/1/', 'cnn')} |" for v in (*TEACHERS, *PROJECTIONS)]
    lines += [
        "",
        "Published: 2000, 3000, 4000 teachers 0.4240, 0.5218, 0.5631; projections to 5, 10, 20,",
    ]
    lines += ["none 0.4638, 0.5631, 0.5604, 0.1141.", ""]
    for name, each in state.get("speed/mnist/1/0", {}).items():
        lines.append(
            f"One update of {each['teachers']} teachers ({name}): {each['seconds_together']:.2f} s, one after "
            f"another {each['seconds_one_after_another']:.1f} s, ratio {each['ratio']:.1f}."
        )
    took = [(k, v) for k, v in state.items() if v.get("seconds")]
    lines += [""] + [f"{k}: {v['seconds']} s, {v['peak_gigabytes']} GB at most." for k, v in took]
    return "\n".join(lines) + "\n"


def main() -> None:
    state = json.loads(STATE.read_text())["cells"] if STATE.exists() else {}
    for cell in cells():
        if cell not in state and any(pattern in cell for pattern in sys.argv[1:]):
            state[cell] = measure(cell)
            keep("gpate", {"cells": state}, table(state))
    keep("gpate", {"cells": state}, table(state))


if __name__ == "__main__":
    main()
