"""25 Gaussians in five classes at (1, 1e-5): DP-HP and DP-MERF, likelihood under the truth, and a plot.

Resumable cells METHOD/VARIANT/SEED of the recipes `*-mixture.toml`, kept in mixture.json; the plot shows
the first seed. The likelihood is that of the density in two dimensions; the papers' code divides by
the constant of one dimension only, so 90,000 x 0.69 has to be taken from their figures to compare.
Usage: python benchmarks/mixture.py [PATTERN ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _measure import HERE, keep
from _plot import scatter

import limbeck as lk
from limbeck.datasets.mixture import Mixture
from limbeck.datasets.registry import entry
from limbeck.run import Recipe
from limbeck.scores import mixture_nll

STATE = HERE / "mixture.json"
POINTS = Path(tempfile.gettempdir()) / "limbeck-mixture"
PAPER = {"data": 3.1e5, "dp-hp": 3.7e5, "dp-merf": 4.1e5}
CELLS = [f"{method}/ours/{seed}" for method in ("dp-hp", "dp-merf") for seed in range(3)]
CELLS += [f"{method}/published/0" for method in ("dp-hp", "dp-merf")]
TRUTH = Mixture.from_options(entry("gaussian-mixture").sources[0].options)
SHIFT = 90_000 * float(np.log(np.sqrt(2 * np.pi) * TRUTH.deviation))


def scores(points: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Of points with their classes: likelihood, modes that are there, and points in no mode."""
    nll = mixture_nll(
        points, TRUTH.means, deviation=TRUTH.deviation, labels=labels, mean_labels=TRUTH.labels
    )
    near = ((points[:, None] - TRUTH.means) ** 2).sum(axis=2) < (3 * TRUTH.deviation) ** 2
    near &= labels[:, None] == TRUTH.labels
    shares = near.mean(axis=0) * len(TRUTH.means)
    return {
        "nll": nll,
        "modes": int((shares > 0.25).sum()),  # at least a quarter of its due
        "least_mode": float(shares.min()),
        "outside": float(1 - near.any(axis=1).mean()),
    }


def measure(cell: str) -> dict[str, Any]:
    method, variant, seed = cell.split("/")
    public = lk.datasets.load("gaussian-mixture")
    recipe = Recipe.load(HERE.parent / "recipes" / f"{method}-mixture.toml#{variant}")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        release = lk.distill(
            lk.read(public.train, public.schema), recipe.method, lk.Budget(1.0, 1e-5), rows=90_000,
            seed=int(seed), ledger=lk.Ledger(Path(folder) / "ledger.sqlite"),
            settings_source=recipe.settings_source,
        )  # fmt: skip
        seconds = time.perf_counter() - start
    points, labels = release.data[["x", "y"]].to_numpy(), release.data["class"].to_numpy()
    POINTS.mkdir(exist_ok=True)
    np.savez(POINTS / f"{cell.replace('/', '-')}.npz", points=points[:5000], labels=labels[:5000])
    return scores(points, labels) | {"seconds": round(seconds, 1)}


def plot(state: dict[str, Any]) -> None:
    train = lk.datasets.load("gaussian-mixture").train.sample(5000, random_state=0)
    panels = {"the data": (train[["x", "y"]].to_numpy(), train["class"].to_numpy())}
    for cell in (c for c in CELLS if c in state and c.endswith("ours/0")):
        path = POINTS / f"{cell.replace('/', '-')}.npz"
        if path.exists():
            held = np.load(path)
            title = f"{cell.split('/')[0]}, epsilon 1, NLL {state[cell]['nll']:.3g}"
            panels[title] = held["points"], held["labels"]
    if len(panels) > 2:
        scatter(HERE / "mixture.png", panels, -0.8, 4.8)


def table(state: dict[str, Any], real: dict[str, float]) -> str:
    told = ["| rows | seeds | NLL of 90,000 | modes of 25 | least mode | in no mode | paper 002 |"]
    told += ["|---|---|---|---|---|---|---|"]
    told += [
        f"| the data | | {real['nll']:.4g} | 25 | | {real['outside']:.3f} | {PAPER['data'] + SHIFT:.3g} |"
    ]
    for prefix in dict.fromkeys(c.rsplit("/", 1)[0] for c in CELLS):
        found = [v for k, v in state.items() if k.startswith(prefix + "/")]
        if found:
            mean = {k: float(np.mean([f[k] for f in found])) for k in found[0]}
            spread = float(np.std([f["nll"] for f in found]))
            fewest = min(f["modes"] for f in found)
            told.append(
                f"| {prefix} | {len(found)} | {mean['nll']:.4g} ± {spread:.2g} | {fewest} | "
                f"{mean['least_mode']:.2f} | {mean['outside']:.3f} | {PAPER[prefix.split('/')[0]] + SHIFT:.3g} |"
            )
    told += [
        "\nEpsilon 1, delta 1e-5. A mode is there if it holds at least a quarter of its due within three"
    ]
    told += [
        "deviations, in the right class (fewest over seeds). The papers' figures are less 90,000 x 0.69,"
    ]
    told += [
        "for their density lacks a dimension's constant. `ours`: 18,000 steps of DP-HP, as published, and 9,000",
        "of DP-MERF, which take several times as long; after 9,000 steps DP-HP has 3.04e5, so more steps make",
        "the difference. DP-HP's length scale was tried on this public mixture with another seed (0.07, 0.1,",
        "0.14: 3.36e5, 3.21e5, 3.40e5 after 3,000 steps), DP-MERF's were not.",
    ]
    told += ["\n![mixture](mixture.png)"]
    return "\n".join(told) + "\n"


def main() -> None:
    state = json.loads(STATE.read_text())["cells"] if STATE.exists() else {}
    train = lk.datasets.load("gaussian-mixture").train
    real = scores(train[["x", "y"]].to_numpy(), train["class"].to_numpy())
    for cell in CELLS:
        if cell not in state and any(p in cell for p in sys.argv[1:]):
            state[cell] = measure(cell)
            print(cell, state[cell], flush=True)
            keep("mixture", {"cells": state}, table(state, real))
    plot(state)
    keep("mixture", {"cells": state}, table(state, real))


if __name__ == "__main__":
    main()
