"""Measure once, distill freely: kernel ridge and ConvNet accuracy of released sets, cell by cell.

Every cell is a data set, a goal, an epsilon, a number of images per class and a seed. One release
pays for the measurements of all sizes; the others are made from it by `redistill`. Scores are on
the untouched test part: ridge regression with group-normalised scattering features, ridge 1e-3;
the ConvNet (128 filters, 300 epochs, final epoch, augmentation as `AUGMENTED` says).

Where settings come from, and which of them test images had a part in, is in notes/images.md.
Resumable: finished cells are kept in measureonce.json.

Usage: LIMBECK_DATA=... python benchmarks/measureonce.py [PATTERN ...]
runs the missing cells whose names contain one of the patterns, such as `any/mnist/1/`; without a
pattern it only writes what is there.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _measure import HERE, keep
from _plot import trade

import limbeck as lk
from limbeck.accounting import Charge
from limbeck.features import Scattering
from limbeck.privacy import Measurement
from limbeck.scores import Deformation, convnet_accuracy, feature_rows, ridge_accuracy

STATE = HERE / "measureonce.json"
WORK = Path("/tmp/limbeck-measureonce")
VARIED = Deformation(shift=4, scale=0.2, rotation=15.0, flip=True, cover=0.5)
AUGMENTED = {"mnist": Deformation(), "fashion-mnist": False, "cifar10": VARIED}
"""Decided on training images: deformations help on MNIST and hurt on Fashion-MNIST (73.6 against 77.4 percent, small
ConvNet). On CIFAR-10, sets of ten per class, ConvNets of 64 filters, deformed by a trial script of the same kinds: at epsilon 10 none 35.4 percent, flips 36.6 and 36.9 (150 and 450
epochs), all of these 38.2, 40.2 and 39.5 (150, 450, 1000; other networks 37.3 and 38.9); at epsilon 1 31.8, 32.3 and 34.1 (flips, 150; all, 150 and 450)."""
PAPER = {
    ("mnist", 1): (94.7, 96.3, 97.2),
    ("mnist", 10): (96.1, 97.4, 98.1),
    ("fashion-mnist", 1): (77.5, 83.3, 84.7),
    ("fashion-mnist", 10): (82.1, 86.2, 87.6),
    ("cifar10", 1): (46.6, 48.6, 49.7),
    ("cifar10", 10): (50.4, 54.4, 58.7),
}
"""DP-KIP-ScatterNet (paper 001, Table 2), kernel ridge accuracy with 1, 10 and 50 per class."""


LABELS = {"any": "its own", "hard": "hard"}
"""What the ConvNet is taught in cells whose sets are for any learner: soft labels where the set has some, or its hard ones."""
GREY = ("mnist", "fashion-mnist")
"""Data whose sets have soft labels beside hard ones."""
COMPARED = tuple(
    (data, epsilon, goal)
    for (data, epsilon), goal in itertools.product(PAPER, LABELS)
    if goal == "any" or data in GREY
)


def cells() -> Iterator[str]:
    """Names of all cells: goal/data/epsilon/per class/seed."""
    for data in PAPER_SETS:
        for epsilon in (1, 10):
            for each in (1, 10, 50):
                for seed in range(1 if data == "cifar10" else 3):
                    yield f"ridge/{data}/{epsilon}/{each}/{seed}"
            for each in (1, 10, 20, 50) if data != "cifar10" else (1, 10, 50):
                for seed in range(3 if each == 10 and data != "cifar10" else 1):
                    yield f"any/{data}/{epsilon}/{each}/{seed}"
                    if data in GREY:
                        yield f"hard/{data}/{epsilon}/{each}/{seed}"
        for each in (1, 10, 50):
            yield f"real/{data}/0/{each}/0"
    for data in GREY:
        for setting in CHANGES:
            yield f"any+{setting}/{data}/1/10/0"


PAPER_SETS = ("mnist", "fashion-mnist", "cifar10")
CHANGES = (
    "defaults", "align_weight=0.0", "match_weight=0.0", "error_weight=0.0", "steps=1", "prototypes=0",
    "align_weight=0.25", "align_weight=4.0", "align_weight=16.0",
    "teacher_share=0.2", "teacher_share=0.7",
)  # fmt: skip
"""Parts taken away, weights and shares moved. Their ConvNet is small: 32 filters, 100 epochs."""


class Bench:
    """One data set with its test features, computed once."""

    def __init__(self, name: str) -> None:
        self.name, self.public = name, lk.datasets.load(name)
        self.schema = self.public.schema
        height, width, channels = self.schema.image.shape
        self.phi = Scattering(height=height, width=width, channels=channels, normalisation="group")
        self.test, self.labels = self.rows(self.public.test)
        path = WORK / f"{name}-test-features.npy"
        if not path.exists():
            np.save(path, feature_rows(self.phi, self.test))
        self.features = np.load(path, mmap_mode="r")

    def rows(self, pictures: Any) -> tuple[np.ndarray, np.ndarray]:
        held = lk.read((pictures.images, pictures.labels), self.schema)._encoded()
        return self.schema.expand(np.asarray(held.cells)), held.labels

    def release(self, goal: str, epsilon: int, each: int, seed: int) -> tuple[lk.Release, float]:
        """A set of the wanted size, from measurements that are made at most once."""
        goal, _, change = goal.partition("+")
        free = {
            name: float(value) if "." in value else int(value)
            for name, _, value in (part.partition("=") for part in change.split(","))
            if value
        }
        measured = {name: free.pop(name) for name in ("teacher_share",) if name in free}
        source = WORK / "-".join(
            [self.name, goal, str(epsilon), str(seed), *map(str, measured.values())]
        )
        start = time.perf_counter()
        if not source.exists():
            train = self.public.train
            lk.distill(
                lk.read((train.images, train.labels), self.schema),
                lk.MeasureOnce(goal=goal, steps=1, **measured),  # its own set is not looked at
                lk.Budget(float(epsilon), 1e-5),
                out=source,
                seed=seed,
                ledger=lk.Ledger(WORK / f"{source.name}.sqlite"),
                settings_source="defaults: free settings and the teacher's rate tried on held-back training images of "
                "MNIST, Fashion-MNIST and CIFAR-10; radii and shares taken over from trials on MNIST and Fashion-MNIST, the networks' number and share tried on training images of Fashion-MNIST; uncharged: benchmark only",
            )
        given = lk.Release.load(source)
        if change == "prototypes=0":
            kept = {k: v for k, v in given.measurements.items() if k in ("class counts", "teacher")}
            return self.from_noise(given, kept), time.perf_counter() - start
        usual = {name: getattr(lk.MeasureOnce(), name) for name in lk.MeasureOnce.free}
        made = lk.redistill(given, {**usual, "per_class": each, **free})
        return made, time.perf_counter() - start

    def from_noise(self, given: lk.Release, kept: dict[str, np.ndarray]) -> lk.Release:
        """The teacher's part of the budget alone, from noise: what prototypes are good for."""
        charges = {facts["name"]: Charge(**facts) for facts in given.certificate["charges"]}
        answers = {name: Measurement.under(charges[name], kept[name]) for name in kept}
        made = lk.MeasureOnce(goal="ridge").distill(
            given.schema, answers, seed=0, progress=lambda phase, done: None
        )
        return lk.Release(
            schema=self.schema, certificate=given.certificate, data=given.data, source=made.source
        )

    def convnet(self, slots: np.ndarray, labels: np.ndarray, seed: int, **size: int) -> float:
        shape = (-1, *self.schema.image.shape)
        return convnet_accuracy(
            slots.reshape(shape), labels, self.test.reshape(shape), self.labels,
            len(self.schema.classes), seed=seed, augment=AUGMENTED[self.name], **size,
        )  # fmt: skip

    def real(self, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        slots, labels = self.rows(self.public.train)
        rng = np.random.default_rng(seed)
        chosen = [rng.choice(np.flatnonzero(labels == c), each, False) for c in range(10)]
        at = np.concatenate(chosen)
        return slots[at], labels[at]


def measure(bench: Bench, cell: str) -> dict[str, Any]:
    goal, _, epsilon, each, seed = cell.split("/")
    if goal == "real":
        slots, labels = bench.real(int(each), int(seed))
        taught, seconds = labels, 0.0
    else:
        asked = "any" if goal == "hard" else goal
        release, seconds = bench.release(asked, int(epsilon), int(each), int(seed))
        source = release.source
        slots, labels = source.slots, source.labels
        taught = source.soft if goal == "any" and source.soft is not None else labels
    support = feature_rows(bench.phi, slots)
    found = {
        "ridge": ridge_accuracy(support, labels, bench.features, bench.labels),
        "seconds": round(seconds, 1),
    }
    if goal != "ridge":
        small = {"width": 32, "epochs": 100} if "+" in goal else {}
        found["convnet"] = bench.convnet(slots, taught, int(seed), **small)
    return found


def summary(state: dict[str, Any], goal: str, data: str, epsilon: int, score: str) -> str:
    """Mean (spread, seeds) for 1, 10 and 50 per class."""
    told = []
    for each in (1, 10, 50):
        prefix = f"{goal}/{data}/{epsilon}/{each}/"
        values = [100 * v[score] for k, v in state.items() if k.startswith(prefix)]
        spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
        told.append(f"{np.mean(values):.1f}{spread}" if values else "*not run*")
    return " / ".join(told)


def compared(state: dict[str, Any], data: str, epsilon: int, goal: str) -> str:
    """A row of ConvNet and kernel ridge accuracies."""
    scores = [summary(state, goal, data, epsilon, s) for s in ("convnet", "ridge")]
    return f"| {data} | {epsilon} | {LABELS[goal]} | {' | '.join(scores)} |"


def changed(state: dict[str, Any]) -> list[str]:
    """What becomes of a set without a part, or with another weight or share."""
    lines = [
        "10 per class, epsilon 1, seed 0; ConvNet of 32 filters, 100 epochs, taught hard labels:\n",
        "| setting | MNIST ConvNet | ridge | Fashion ConvNet | ridge |",
        "|---|---|---|---|---|",
    ]
    for change in CHANGES:
        row = [change]
        for data in GREY:
            found = state.get(f"any+{change}/{data}/1/10/0")
            row += [f"{100 * found[s]:.1f}" if found else "*not run*" for s in ("convnet", "ridge")]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def tables(state: dict[str, Any]) -> str:
    lines = ["## Goal `ridge`: kernel ridge accuracy, 1 / 10 / 50 per class\n"]
    lines += ["| data | epsilon | ours | DP-KIP-ScatterNet |", "|---|---|---|---|"]
    for (data, epsilon), paper in PAPER.items():
        ours = summary(state, "ridge", data, epsilon, "ridge")
        lines.append(f"| {data} | {epsilon} | {ours} | {' / '.join(map(str, paper))} |")
    lines += [
        "\n## Goal `any`: one released set, ConvNet and kernel ridge accuracy, 1 / 10 / 50 per class\n",
        "The ConvNet is taught the set's own labels (soft ones, but on CIFAR-10, whose teacher knows too little to make some) or the hard ones of the same set; kernel ridge always hard ones. An image of CIFAR-10's sets holds four pictures, and both are taught these.\n",
        "| data | epsilon | labels | ConvNet | kernel ridge |",
        "|---|---|---|---|---|",
    ]
    lines += [compared(state, *row) for row in COMPARED]
    for data in PAPER_SETS:
        scores = [summary(state, "real", data, 0, s) for s in ("convnet", "ridge")]
        lines.append(f"| {data}, real images | none | hard | {' | '.join(scores)} |")
    lines += [
        "\n20 per class:\n",
        "| data | epsilon | labels | ConvNet | kernel ridge |",
        "|---|---|---|---|---|",
    ]
    for data, epsilon, goal in COMPARED:
        found = state.get(f"{goal}/{data}/{epsilon}/20/0")
        if data in GREY:
            told = [f"{100 * found[s]:.1f}" if found else "*not run*" for s in ("convnet", "ridge")]
            lines.append(f"| {data} | {epsilon} | {LABELS[goal]} | {' | '.join(told)} |")
    lines += ["\n## Each part removed, and the budget moved\n", *changed(state)]
    lines.append("\n![Kernel ridge against ConvNet](measureonce.png)")
    return "\n".join(lines) + "\n"


def draw(state: dict[str, Any]) -> None:
    """Kernel ridge against ConvNet accuracy, for every change of the settings that keeps prototypes."""
    series: dict[str, dict[str, tuple[float, float]]] = {}
    for data in GREY:
        for change in (c for c in CHANGES if c != "prototypes=0"):
            if found := state.get(f"any+{change}/{data}/1/10/0"):
                point = 100 * found["ridge"], 100 * found["convnet"]
                series.setdefault(data, {})[change] = point
    if series:
        names = {"x": "kernel ridge, percent", "y": "ConvNet, percent"}
        trade(HERE / "measureonce.png", series, **names)


def kept() -> dict[str, Any]:
    """Finished cells."""
    return json.loads(STATE.read_text())["cells"] if STATE.exists() else {}


def main() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    bench: Bench | None = None
    for cell in cells():
        if cell in kept() or not any(p in cell for p in sys.argv[1:]):
            continue
        data = cell.split("/")[1]
        if bench is None or bench.name != data:
            bench = Bench(data)
        found = measure(bench, cell)
        print(cell, found, flush=True)
        # Read again: another process may have finished cells meanwhile.
        state = kept() | {cell: found}
        keep("measureonce", {"cells": state}, tables(state))
    state = kept()
    keep("measureonce", {"cells": state}, tables(state))
    draw(state)


if __name__ == "__main__":
    main()
