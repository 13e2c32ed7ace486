"""Settings of measure-once judged on training images that were held back: no test image is looked at.

Some thousand training images are measured, at the epsilon at which noise is, relative to so many, what it is at
the asked epsilon relative to all of them; so a trial costs a fifth of the real thing, and sees its noise. Scores
are on 5,000 other training images: a ConvNet (64 filters, 150 epochs, final epoch) and kernel ridge.

Usage: LIMBECK_DATA=... python benchmarks/held_back.py DATA EPSILON [rows=10000] [seed=0] [width=64] [epochs=150]
[score=convnet|both|stored] [SETTING=VALUE ...]
Measurements are kept in /tmp/limbeck-held-back by their settings; free settings only redistill.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measureonce import AUGMENTED
from scipy.optimize import brentq
from scipy.stats import norm

import limbeck as lk
from limbeck.features import Scattering
from limbeck.scores import convnet_accuracy, feature_rows, ridge_accuracy

WORK = Path("/tmp/limbeck-held-back")
HELD_BACK, DELTA = 5000, 1e-5
TRIAL = {"rows": 10_000, "seed": 0, "width": 64, "epochs": 150, "score": "both"}


def delta_of(mu: float, epsilon: float) -> float:
    """Delta of mu-Gaussian differential privacy."""
    return float(
        norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    )


def epsilon_for(epsilon: float, factor: float) -> float:
    """The epsilon at which noise is so many times smaller."""
    mu = factor * brentq(lambda m: delta_of(m, epsilon) - DELTA, 1e-3, 50.0)
    return float(brentq(lambda e: delta_of(mu, e) - DELTA, 1e-3, 500.0))


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> None:
    data, epsilon, *more = sys.argv[1:]
    given = {name: value_of(text) for name, _, text in (word.partition("=") for word in more)}
    trial = TRIAL | {name: given.pop(name) for name in TRIAL if name in given}
    public = lk.datasets.load(data)
    order = np.random.default_rng(0).permutation(len(public.train.labels))
    some, held = order[: trial["rows"]], order[-HELD_BACK:]
    schema = replace(public.schema, rows=trial["rows"])
    budget = lk.Budget(epsilon_for(float(epsilon), len(order) / trial["rows"]), DELTA)
    free = {name: value for name, value in given.items() if name in lk.MeasureOnce.free}
    dear = {name: value for name, value in given.items() if name not in free}
    code = Path(lk.__file__).parent.parent.name
    known = json.dumps([code, data, epsilon, trial["rows"], trial["seed"], dear], sort_keys=True)
    source = WORK / hashlib.sha256(known.encode()).hexdigest()[:12]
    WORK.mkdir(exist_ok=True)
    told: dict[str, Any] = {"code": code, "data": data, "epsilon": epsilon} | trial | given
    if not source.exists():
        begun, worked = time.perf_counter(), time.process_time()
        lk.distill(
            lk.read((public.train.images[some], public.train.labels[some]), schema),
            lk.MeasureOnce(steps=1, **dear),
            budget,
            out=source,
            seed=trial["seed"],
            ledger=lk.Ledger(WORK / f"{source.name}.sqlite"),
            check=False,
        )
        told |= {"measured": round(time.perf_counter() - begun)}
        told |= {"measured cpu": round(time.process_time() - worked)}
    begun, worked = time.perf_counter(), time.process_time()
    usual = {name: getattr(lk.MeasureOnce(), name) for name in lk.MeasureOnce.free}
    made = lk.redistill(lk.Release.load(source), usual | free).source
    told |= {"distilled": round(time.perf_counter() - begun)}
    told |= {"distilled cpu": round(time.process_time() - worked)}
    np.savez(WORK / f"last-{os.getpid()}.npz", **made.arrays())
    shape = (-1, *schema.image.shape)
    rows = lk.read((public.train.images[held], public.train.labels[held]), schema)._encoded()
    x, y = schema.expand(np.asarray(rows.cells)).reshape(shape), rows.labels
    begun = time.perf_counter()
    sets = {"decoded": (made.slots, made.soft if made.soft is not None else made.labels)}
    stored = getattr(made, "stored", None)
    if stored is not None and trial["score"] == "stored":
        sets["stored"] = stored, np.repeat(np.arange(10), len(stored) // 10)
    for name, (slots, labels) in sets.items():
        told[f"convnet {name}"] = convnet_accuracy(
            slots.reshape(shape), labels, x, y, 10, seed=trial["seed"], augment=AUGMENTED[data],
            width=trial["width"], epochs=trial["epochs"],
        )  # fmt: skip
    told["scored"] = round(time.perf_counter() - begun)
    if trial["score"] == "both":
        height, width, channels = schema.image.shape
        phi = Scattering(height=height, width=width, channels=channels, normalisation="group")
        path = WORK / f"{data}.npy"
        if not path.exists():
            np.save(path, feature_rows(phi, x.reshape(len(x), -1)))
        features = feature_rows(phi, made.slots), made.labels
        told["ridge"] = ridge_accuracy(*features, np.load(path), y)
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
