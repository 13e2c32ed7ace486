"""Verify in continuous integration: refuse a release that was changed or claims too little.

A pipeline needs no data for this, only the release's folder:

    limbeck verify release --json

does the same at the command line and ends with exit code 0 or 2. This script also sets a limit of its own.

Usage: python examples/verify_in_ci.py [RELEASE [LARGEST EPSILON]]
without a release it makes one, changes it, and shows that the change is found.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import limbeck as lk


def check(release: Path, largest: float) -> int:
    """The exit code of the pipeline's step."""
    try:
        found = lk.verify(release)
    except lk.LimbeckError as error:
        print(f"refused: {error}")
        return 2
    if not json.loads((release / "certificate.json").read_text())["releasable"]:
        print("refused: made with a seed, or without noise")
        return 2
    if found.epsilon > largest * (1 + 1e-6):
        print(f"refused: epsilon {found.epsilon:g}, at most {largest:g} is allowed here")
        return 2
    print(f"verified: epsilon {found.epsilon:g}, delta {found.delta:g}")
    return 0


def main() -> int:
    if len(sys.argv) > 1:
        return check(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
    folder = Path(tempfile.mkdtemp())
    schema = lk.Schema(
        dataset="ages", rows=500, columns=(lk.Numeric(name="age", integer=True, min=0, max=99),)
    )
    rows = pd.DataFrame({"age": np.random.default_rng(0).integers(0, 99, 500)})
    book = lk.Ledger(folder / "ledger.sqlite")
    method = lk.Marginals(soft_rows=50, steps=20)
    budget = lk.Budget(epsilon=1.0, delta=1e-5)
    lk.distill(lk.read(rows, schema), method, budget, out=folder / "release", ledger=book)
    good = check(folder / "release", largest=1.0)
    strict = check(folder / "release", largest=0.5)
    with open(folder / "release" / "data.csv", "a") as file:
        file.write("17\n")
    changed = check(folder / "release", largest=1.0)
    return 0 if (good, strict, changed) == (0, 2, 2) else 1


if __name__ == "__main__":
    sys.exit(main())
