"""Every system that the papers compare with, beside what they published and our own methods, cell by cell.

A cell is SYSTEM/DATA/EPSILON/SEED, such as `psg/mnist/10/0`; delta is 1e-5 (or 1/rows, if less). A system is one
row of `SYSTEMS` (_systems.py): its name, the recipe (with its variant) that stands for it on images and on tables, and what was published.
`SYSTEM+name=value/...` changes settings, `held/SYSTEM/...` trains on part of the training rows and tests on the others: for
choosing settings, which is never done on test rows.

images   accuracy on the real test images of logistic regression, an MLP and the field's ConvNet, trained on the release
tables   mean ROC AUC of four classifiers on the real test rows; total variation of all pairs of columns

Every cell runs in a process of its own, which says its CPU time and its peak memory before it scores. Resumable:
finished cells are kept in systems.json.
Usage: LIMBECK_DATA=... python benchmarks/systems.py [PATTERN ...]
runs the missing cells whose names contain one of the patterns; without one it prints what is there.
"""

from __future__ import annotations

import contextlib
import json
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _floors import ClassMeans, SingleColumns
from _measure import HERE, delta_for, keep
from _systems import COLOUR, IMAGES, SYSTEMS
from generators import PICKED, pair, rows, settings

import limbeck as lk
from limbeck.methods import METHODS
from limbeck.run import Recipe, make_method
from limbeck.scores import classifier_scores, convnet_accuracy, discretise, mean_marginal_distance

STATE = HERE / "systems.json"
TABLES = ("adult", "census", "credit")
MOST_ROWS = 20_000
"""Rows into the classifiers of tables, released and real, and over which marginals are taken."""
HELD_ROWS = 6
"""One of so many training rows is held back in cells that begin with `held/`."""
MOST_IMAGES = 3_000
"""Released images into the classifiers: in the benchmark of generators more changed nothing."""
SMALL_SET, SMALL_EPOCHS, IMAGES_SEEN = 1_000, 300, 90_000
"""Images of a small set, at most, the epochs that a ConvNet is taught on it, and images that it sees of a large one."""
WIDTHS = (128, 32)
"""Filters of the ConvNet that small sets teach, as published, and large ones, for two cores' sake."""
PUBLIC = {"mnist": "cifar10", "fashion-mnist": "cifar10", COLOUR: "fashion-mnist"}
"""What public networks learn from, by the data that they are for; brought to the same shape."""
NETWORK_STEPS = 600
FLOORS = {"class-means": ClassMeans(), "single-columns": SingleColumns()}


def cells() -> Iterator[str]:
    """Names of all cells of the page."""
    for system in SYSTEMS:
        for data in IMAGES if system.images else ():
            yield from (f"{system.name}/{data}/{epsilon}/0" for epsilon in (1, 10))
        if system.colour:
            yield from (f"{system.name}/{COLOUR}/{epsilon}/0" for epsilon in (1, 10))
        for data in TABLES if system.tables else ():
            yield f"{system.name}/{data}/1/0"


# ---- one cell -----------------------------------------------------------------------------------


def method_of(system: str, data: str) -> tuple[lk.methods.AbstractMethod, str]:
    """The method of a cell and the recipe it is from, or that its defaults were taken."""
    name, _, changes = system.partition("+")
    row = next(row for row in SYSTEMS if row.name == name)
    kind = row.tables if data in TABLES else row.colour if data == COLOUR else row.images
    if kind in FLOORS:
        return FLOORS[kind], "floor"
    if "#" in kind:
        path, _, variant = kind.partition("#")
        made = Recipe.load(HERE.parent / "recipes" / f"{path}.toml#{variant}").method
    else:
        made = make_method(kind)
    if row.wants_network:
        changes = ",".join([f"network={public_network(data)}", *filter(None, [changes])])
    made = make_method(made.name, made.settings() | settings(changes)) if changes else made
    return made, kind if "#" in kind else "defaults"


def public_network(data: str) -> Path:
    """The file of a network that learned from other images than these; made where there is none yet."""
    image = lk.datasets.schema(data).image
    assert image is not None
    path = (
        Path(tempfile.gettempdir())
        / f"limbeck-network-of-{PUBLIC[data]}-{NETWORK_STEPS}-for-{data}.npz"
    )
    if not path.exists():
        make = runpy.run_path(str(HERE.parent / "examples" / "public_network.py"))["main"]
        with contextlib.redirect_stdout(sys.stderr):
            make(PUBLIC[data], path, *image.shape, NETWORK_STEPS)
    return path


def halves(data: str, *, held: bool) -> tuple[lk.Schema, Any, Any]:
    """Schema, rows to train on and rows to test on: the data set's own, or parts of its training rows."""
    public = lk.datasets.load(data)
    tabular = isinstance(public.train, pd.DataFrame)
    train, test = ((part if tabular else pair(part)) for part in (public.train, public.test))
    if held:
        count = len(train) if tabular else len(train[1])
        order = np.random.default_rng(11).permutation(count)
        parts = order[count // HELD_ROWS :], order[: count // HELD_ROWS]
        train, test = (
            train.iloc[at].reset_index(drop=True) if tabular else (train[0][at], train[1][at])
            for at in parts
        )
    return public.schema, train, test


def measure(cell: str) -> dict[str, Any]:
    """What a cell gives; run in a process of its own."""
    system, data, epsilon, seed = cell.removeprefix("held/").split("/")
    method, setting = method_of(system, data)
    schema, train, test = halves(data, held=cell.startswith("held/"))
    budget = lk.Budget(float(epsilon), delta_for(schema.rows))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        release = lk.distill(
            lk.read(train, schema), method, budget, seed=int(seed),
            ledger=lk.Ledger(Path(folder) / "ledger.sqlite"),
            settings_source="defaults or a recipe of the folder recipes; uncharged: benchmark only",
        )  # fmt: skip
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "setting": setting,
        "cpu_minutes": round((used.ru_utime + used.ru_stime) / 60, 2),
        "minutes": round((time.perf_counter() - start) / 60, 2),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }
    scores = image_scores if schema.image else table_scores
    return cost | scores(release, train, test, int(seed))


def image_scores(release: lk.Release, train: Any, test: Any, seed: int) -> dict[str, float]:
    schema, source = release.schema, release.source
    if source.kind == "distilled":
        slots, labels = np.clip(source.slots, 0, 1), source.labels
    else:
        made, labels = _rows(release.data, schema, MOST_IMAGES)
        slots = schema.expand(made)
    cells_, truth = _rows(test, schema)
    wanted, classes = schema.expand(cells_), len(schema.classes)
    found = classifier_scores(slots, labels, wanted, truth, classes, classifiers=PICKED, seed=seed)
    shape = (-1, *schema.image.shape)
    small = len(labels) <= SMALL_SET
    epochs = SMALL_EPOCHS if small else IMAGES_SEEN // len(labels)
    cnn = convnet_accuracy(
        slots.reshape(shape), labels, wanted.reshape(shape), truth, classes, seed=seed,
        epochs=epochs, width=WIDTHS[0 if small else 1],
    )  # fmt: skip
    lr, mlp = (found[one.name]["accuracy"] for one in PICKED)
    return {"lr": lr, "mlp": mlp, "cnn": cnn, "images": len(labels)}


def table_scores(release: lk.Release, train: Any, test: Any, seed: int) -> dict[str, float]:
    schema = release.schema
    made, known, real = (_rows(part, schema, MOST_ROWS) for part in (release.data, train, test))
    found = classifier_scores(
        schema.expand(made[0]), made[1], schema.expand(real[0]), real[1],
        len(schema.classes), cap=MOST_ROWS, seed=seed,
    )  # fmt: skip
    each = {name: score["roc_auc"] for name, score in found.items()}
    (ours, sizes), (theirs, _) = (discretise(schema, *part) for part in (made, known))
    near = mean_marginal_distance(ours, theirs, sizes)
    return each | {"mean": float(np.mean(list(each.values()))), "total_variation": near}


def _rows(source: Any, schema: lk.Schema, most: int | None = None) -> tuple[Any, Any]:
    if isinstance(source, tuple):  # images and labels, as `halves` gives them
        held = lk.read(source, schema)._encoded()
        return np.asarray(held.cells), np.asarray(held.labels)
    return rows(source, schema, most)


# ---- what is shown ------------------------------------------------------------------------------


def cost(found: dict[str, Any] | None) -> str:
    if not found:
        return " |  | "
    return f"{found['setting']} | {found['cpu_minutes']:.1f} | {found['peak_megabytes']} MB"


def image_table(state: dict[str, Any], names: list[str]) -> list[str]:
    table = [
        "| data | epsilon | system | logistic regression / MLP / CNN | published | setting | CPU minutes | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    by_data = sorted(names, key=lambda n: (n.split("/")[-3], int(n.split("/")[-2])))
    for name in by_data:
        system, data, epsilon, _ = name.removeprefix("held/").split("/")
        found = state.get(name)
        ours = (
            " / ".join(f"{100 * found[k]:.1f}" for k in ("lr", "mlp", "cnn"))
            if found
            else "*not run*"
        )
        row = next(row for row in SYSTEMS if row.name == system.partition("+")[0])
        told = row.published.get((data, int(epsilon)), "")
        table.append(f"| {data} | {epsilon} | {system} | {ours} | {told} | {cost(found)} |")
    return table


def table_table(state: dict[str, Any], names: list[str]) -> list[str]:
    table = [
        "| table | system | mean ROC AUC | LR, forest, boosting, MLP | total variation, 2-way | setting | CPU minutes | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(names, key=lambda n: n.split("/")[-3]):
        system, data, _, _ = name.removeprefix("held/").split("/")
        found = state.get(name)
        if found:
            each = [f"{v:.3f}" for k, v in found.items() if k in FOUR_NAMES]
            ours = f"{found['mean']:.3f} | {', '.join(each)} | {found['total_variation']:.3f}"
        else:
            ours = "*not run* |  | "
        table.append(f"| {data} | {system} | {ours} | {cost(found)} |")
    return table


FOUR_NAMES = tuple(c.name for c in lk.scores.FOUR)
PICKED_NAMES = ("lr", "mlp", "cnn")
FAR = 5.0
"""Points below a published figure from which on the page says what differs."""
ABOUT = """
A recipe's variant is under *setting*; those called `quick` are reduced to what two cores do in minutes. The CNN is the field's
ConvNet; small sets teach 128 filters for 300 epochs, as published, larger ones 32 filters, 90,000 images in all, a
reduced protocol. Of large releases 3,000 images teach each classifier ([more change nothing](generators.md)). Published figures are those of the papers that
compare: their networks, rows and choices differ. A system counts when it beats `class-means` on Fashion-MNIST at epsilon 10,
and `single-columns` on tables.

In rows of `single-columns` nothing depends on anything, so its areas under ROC curves are chance: 0.5 if columns of the test rows were
independent, anything as they are. Least of all do areas of Credit say: of the 20,000 released rows that teach, some 34 are frauds, and frauds
lie so far out that many a direction taken by chance, or its opposite, finds them. To beat it there is to know something of the label, no more; `marginals` says how much there is to know. How far
pairs of columns are from the rows' says what the rest is worth: a release above the total variation of `single-columns` describes a table
worse than counting each column alone, whatever classifiers make of its label.
"""


def figures_of(found: dict[str, Any]) -> tuple[float, ...]:
    """Accuracies in per cent, or the mean area under ROC curves."""
    return tuple(100 * found[k] for k in PICKED_NAMES) if "cnn" in found else (found["mean"],)


def floor_lines(state: dict[str, Any]) -> list[str]:
    """Which systems have a mean figure above that of the floor, and on tables pairs of columns nearer to the rows'."""
    lines = []
    for data, epsilon, floor in [("fashion-mnist", 10, "class-means")] + [
        (table, 1, "single-columns") for table in TABLES
    ]:
        each = [(s.name, state.get(f"{s.name}/{data}/{epsilon}/0")) for s in SYSTEMS]
        found = {name: one for name, one in each if one}
        if floor not in found or len(found) < 2:
            continue
        place, tabular = f"{data} at epsilon {epsilon}", data in TABLES
        means = {name: float(np.mean(figures_of(one))) for name, one in found.items()}
        lines.append(
            f"- {place}, mean figure, {against(means, floor, '.3f' if tabular else '.1f')}"
        )
        if tabular:
            apart = {name: -one["total_variation"] for name, one in found.items()}
            lines.append(f"- {place}, total variation of pairs, {against(apart, floor, '.3f')}")
    return lines or ["Not run."]


def against(found: dict[str, float], floor: str, form: str) -> str:
    """Which are better than the floor and which are not; of negative figures the smaller size is better."""
    limit = found[floor]
    told: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(set(found) - {floor}, key=lambda name: -found[name]):
        told[found[name] > limit].append(f"{name} {abs(found[name]):{form}}")
    return (
        f"{floor} {abs(limit):{form}}. Better: {', '.join(told[True]) or 'none'}. "
        f"Not better: {', '.join(told[False]) or 'none'}."
    )


def shortfall_lines(state: dict[str, Any]) -> list[str]:
    """Systems of which a figure is more than five points below the published one, and what differs there."""
    lines = []
    for system in SYSTEMS:
        far = []
        for (data, epsilon), told in system.published.items():
            found = state.get(f"{system.name}/{data}/{epsilon}/0")
            if found is None:
                continue
            for kind, ours, theirs in zip(
                PICKED_NAMES, figures_of(found), told.split("/"), strict=True
            ):
                number = theirs.strip().partition(" ")[0]
                if number != "-" and ours < float(number) - FAR:
                    far.append(f"{data} at {epsilon}, {kind} {ours:.1f} of {number}")
        if far:
            lines.append(f"- {system.name}: {'; '.join(far)}. Published with: {system.differs}.")
    return lines or ["None of those that were run."]


def shown(state: dict[str, Any]) -> str:
    def in_tables(name: str) -> bool:
        return name.split("/")[-3] in TABLES

    names = list(cells())
    trials = [name for name in state if name not in names]
    lines = ["## Images: accuracy in per cent\n"]
    lines += image_table(state, [n for n in names if not in_tables(n)])
    lines += ["\n## Tables: epsilon 1\n"]
    lines += table_table(state, [n for n in names if in_tables(n)])
    lines += ["\n## Against the floors\n", *floor_lines(state)]
    lines += ["\n## Far below what was published\n", *shortfall_lines(state)]
    if trials:
        lines += ["\n## Trials, on held-back training rows\n"]
        for part, table in ((False, image_table), (True, table_table)):
            chosen = [n for n in trials if in_tables(n) == part]
            lines += [*table(state, chosen), ""] if chosen else []
    return "\n".join(lines) + "\n" + ABOUT


def kept() -> dict[str, Any]:
    """Finished cells; another process may have added some."""
    return json.loads(STATE.read_text())["cells"] if STATE.exists() else {}


def write(state: dict[str, Any]) -> None:
    """In the order of the page, so that cells of several people do not meet in the same lines."""
    order = [name for name in cells() if name in state]
    state = {name: state[name] for name in [*order, *sorted(set(state) - set(order))]}
    keep("systems", {"cells": state}, shown(state))


def main() -> None:
    if sys.argv[1:2] == ["--cell"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    named = [
        pattern for pattern in sys.argv[1:] if pattern.count("/") >= 3
    ]  # whole cells, trials too
    for cell in dict.fromkeys([*cells(), *named]):
        if cell in kept() or not any(p in cell for p in sys.argv[1:]):
            continue
        system = cell.removeprefix("held/").split("/")[0].split("+")[0]
        if system not in METHODS and system not in FLOORS:
            continue
        if next(row for row in SYSTEMS if row.name == system).wants_network:
            public_network(cell.removeprefix("held/").split("/")[1])  # its cost is not the system's
        command = [sys.executable, __file__, "--cell", cell]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(cell, "failed:", done.stderr[-2000:], flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        print(cell, found, flush=True)
        write(kept() | {cell: found})
    write(kept())


if __name__ == "__main__":
    main()
