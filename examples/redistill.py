"""Another set from the same measurements: other sizes and settings at no cost of privacy.

Usage: python examples/redistill.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import limbeck as lk


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"age": rng.integers(0, 99, 1000), "smokes": rng.choice(["no", "yes"], 1000)}
    )
    schema = lk.Schema(
        dataset="smokers",
        rows=1000,
        columns=(
            lk.Numeric(name="age", integer=True, min=0, max=99),
            lk.Category(name="smokes", values=("no", "yes"), label=True),
        ),
    )
    book = lk.Ledger(folder / "ledger.sqlite")
    first = lk.distill(
        lk.read(rows, schema),
        lk.Marginals(soft_rows=50, steps=20),
        lk.Budget(epsilon=1.0, delta=1e-5),
        out=folder / "first",
        ledger=book,
    )
    spent = book.accounts()[0].spent

    # From the release's folder alone, by whoever has it: no rows, no ledger, nothing spent.
    found = lk.Release.load(folder / "first")
    again = lk.redistill(found, {"steps": 80, "restraint": 0.1}, rows=5000)
    again.save(folder / "second")
    print(len(first.data), "rows, then", len(again.data), "from the same measurements")
    print("epsilon", lk.verify(folder / "second").epsilon, "for both together")
    assert book.accounts()[0].spent == spent


if __name__ == "__main__":
    main()
