"""Settings of methods for tables judged on training rows that were held back: no test row is looked at.

A fifth of a table's training rows (20,000 at most) are held back, others measured (all of them, or so many), and four
classifiers taught by the release are scored on those held back, beside the total variation of pairs of columns.

Usage: LIMBECK_DATA=... python benchmarks/held_back_tables.py TABLE EPSILON METHOD [rows=N] [seed=0] [SETTING=VALUE ...]
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from _measure import delta_for
from held_back import value_of
from tables import MOST_ROWS, rows, scores, total_variation

import limbeck as lk
from limbeck.run import make_method

MOST_HELD = 20_000


def main() -> None:
    name, epsilon, method, *more = sys.argv[1:]
    given = {key: value_of(text) for key, _, text in (word.partition("=") for word in more)}
    count, seed = given.pop("rows", None), given.pop("seed", 0)
    train = lk.datasets.load(name).train
    order = np.random.default_rng(0).permutation(len(train))
    held = order[: min(MOST_HELD, len(order) // 5)]
    some = order[len(held) :][:count]
    schema = replace(lk.datasets.load(name).schema, rows=len(some))
    begun = time.process_time()
    made = lk.distill(
        lk.read(train.iloc[some], schema),
        make_method(method, given),
        lk.Budget(float(epsilon), delta_for(len(some))),
        seed=seed,
        ledger=lk.Ledger(f"/tmp/limbeck-{time.time_ns()}.sqlite"),
        check=False,
    )
    told: dict[str, Any] = {"table": name, "epsilon": epsilon, "method": method} | given
    told |= {"rows": len(some), "seed": seed, "cpu": round(time.process_time() - begun, 1)}
    told["pairs"] = total_variation(
        schema, rows(made.data, schema, None), rows(train.iloc[some], schema, None)
    )
    found = scores(
        schema, rows(made.data, schema, MOST_ROWS), rows(train.iloc[held], schema, None), None
    )
    told |= {"mean": float(np.mean(list(found.values()))), "scores": found}
    if "choice of triples" in made.measurements:
        told["chosen"] = made.measurements["choice of triples"].tolist()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
