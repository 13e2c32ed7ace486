"""DP-KIP's other exhibits: ConvNets taught by its sets, corrupted pixels, and clips, all through scattering.

Each cell is an entry of kip_exhibits.json and is run once; an interrupted benchmark goes on where it was.

    python benchmarks/kip_exhibits.py                   what there is, and what is left
    python benchmarks/kip_exhibits.py run 'convnet/*'   run cells by name or pattern
    python benchmarks/kip_exhibits.py again 'clip/*'    run them anew

Data come from LIMBECK_DATA. Settings are the method's defaults but for what a cell's name says; nothing is chosen here.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _measure import HERE, keep
from kip import learn, pictures

import limbeck as lk
from limbeck.run import make_method
from limbeck.scores import convnet_accuracy

CONVNETS = {
    "fc-ntk": {
        "mnist": {(1, 10): 93.53, (10, 10): 95.39, (1, 20): 97.78, (10, 20): 97.96},
        "fashion": {(1, 10): 87.7, (10, 10): 89.1, (1, 20): 88.3, (10, 20): 90.2},
    },
    "scattering": {
        "mnist": {(1, 10): 94.5, (10, 10): 98.0, (1, 20): 96.3, (10, 20): 98.4},
        "fashion": {(1, 10): 88.0, (10, 10): 89.3, (1, 20): 88.5, (10, 20): 90.9},
    },
}
"""Papers 000, table 2, and 001, table 3, by epsilon and images per class."""
CORRUPTED = {0: 46.6, 1: 50.4, 5: 50.9, 10: 45.9, 40: 45.2, 80: 40.1}
"""Paper 001, table 4: one image per class, epsilon 1, by percent of the pixels."""
CLIPS = {1: {"1e-1": 81.5, "1e-2": 94.7, "1e-4": 93.9, "1e-6": 90.5, "1": None, "10": None}}
"""Paper 001, table 6, by epsilon; clips of 1 and 10 are ours, since norms in feature space are larger."""
WIDTH, EPOCHS = 32, 300
"""Of the ConvNet; the papers' has 128 filters a layer."""
CIFAR_ROWS = 10_000
"""Images of CIFAR-10 for cells of corrupted pixels, as many of each class; the paper has 50,000."""


def convnet_cell(kernel: str, name: str, epsilon: int, per_class: int) -> dict[str, Any]:
    data, test, wanted = pictures(name)

    def taught(release: lk.Release) -> dict[str, Any]:
        shape = (-1, *release.schema.image.shape)
        images = np.clip(release.source.slots, 0, 1).astype(np.float32).reshape(shape)
        score = convnet_accuracy(
            images,
            release.source.labels,
            test.reshape(shape) / np.float32(255),
            wanted,
            10,
            seed=0,
            width=WIDTH,
            epochs=EPOCHS,
        )
        return {"convnet": round(100 * score, 2)}

    method = make_method("dp-kip", {"kernel": kernel, "per_class": per_class})
    return learn(method, data, test, wanted, epsilon, 0, taught)


def other_cell(name: str, epsilon: int, rows: int | None, **settings: Any) -> dict[str, Any]:
    method = make_method("dp-kip", {"kernel": "scattering", "per_class": 1} | settings)
    return learn(method, *pictures(name, rows), epsilon, 0)


def cells() -> dict[str, tuple[Callable[[], dict[str, Any]], float | None]]:
    """What makes each cell, and the paper's figure, by the cell's name."""
    found: dict[str, tuple[Callable[[], dict[str, Any]], float | None]] = {}
    kinds = itertools.product((10, 20), (1, 10), ("mnist", "fashion"), ("scattering", "fc-ntk"))
    for per, epsilon, name, kernel in kinds:

        def convnet(k: str = kernel, n: str = name, e: int = epsilon, p: int = per) -> Any:
            return convnet_cell(k, n, e, p)

        paper = CONVNETS[kernel][name][epsilon, per]
        found[f"convnet/{kernel}/{name}/eps{epsilon}/{per}"] = convnet, paper
    for percent, paper in CORRUPTED.items():

        def corrupted(percent: int = percent) -> Any:
            return other_cell("cifar10", 1, CIFAR_ROWS, corrupted=percent / 100)

        found[f"corrupted/eps1/{percent}"] = corrupted, paper
    for epsilon, clips in CLIPS.items():
        for clip, figure in clips.items():

            def clipped(clip: str = clip, epsilon: int = epsilon) -> Any:
                return other_cell("mnist", epsilon, None, clip=float(clip))

            found[f"clip/eps{epsilon}/{clip}"] = clipped, figure
    return found


def table_of(results: dict[str, Any]) -> str:
    lines = [
        "| cell | ConvNet | kernel regression | paper | processor minutes |",
        "|---|---|---|---|---|",
    ]
    for name, (_, paper) in cells().items():
        told = "" if paper is None else str(paper)
        if name not in results:
            lines.append(f"| {name} | *not run* | *not run* | {told} | |")
            continue
        entry = results[name]
        lines.append(
            f"| {name} | {entry.get('convnet', '')} | {entry['accuracy']:.1f} | {told} | "
            f"{entry['cpu_seconds'] / 60:.1f} |"
        )
    return "\n".join(lines) + NOTES


NOTES = f"""

Percentages of test images, one seed, the final iterate, the method's defaults. The paper's figure is of the ConvNet in
`convnet/` cells and of kernel regression in the others.

- `convnet/`: *reduced*, {WIDTH} filters a layer in place of 128, {EPOCHS} epochs, one network, no augmentation, hard labels. The papers'
  Fashion-MNIST figures, far above what as many real images teach the same network (74.4 with ten per class, the papers say), are
  not to be reached by anyone who does as the papers say.
- `corrupted/`: *reduced*, {CIFAR_ROWS:,} images of CIFAR-10 in place of 50,000, with the noise that so few need.
- `clip/`: MNIST, one per class, all images. Gradients are clipped in feature space, where most norms are between 0.1 and 20; below that
  every row's gradient has the same length whatever the clip is. The papers clip in pixels.
"""


def main() -> None:
    path = HERE / "kip_exhibits.json"
    verb, pattern = (*sys.argv[1:], "list", "")[:2]
    results = json.loads(path.read_text())["cells"] if path.exists() else {}
    for name, (made, _) in cells().items():
        wanted = verb in ("run", "again") and fnmatch.fnmatch(name, pattern)
        if wanted and (verb == "again" or name not in results):
            print(name, flush=True)
            load = round(os.getloadavg()[0], 1)
            found = made() | {"load_before": load}
            results = json.loads(path.read_text())["cells"] if path.exists() else {}
            results[name] = found
            keep("kip_exhibits", {"cells": results}, table_of(results))
    if verb == "list":
        print(table_of(results))


if __name__ == "__main__":
    main()
