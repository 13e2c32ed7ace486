"""A CSV file: declare a schema, make a release, look at it.

Usage: python examples/csv_file.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import limbeck as lk

SCHEMA = """\
dataset = "clinic"        # the ledger's key: the same for all files about these people
rows = 2000               # public and approximate
unit = "one patient"
confirmed = true

[[column]]
name = "age"
kind = "integer"
min = 0
max = 100

[[column]]
name = "ward"
kind = "category"
values = ["north", "south", "west"]

[[column]]
name = "ill"
kind = "label"
values = ["no", "yes"]
"""


def people(count: int) -> pd.DataFrame:
    """Made-up rows in place of yours: the old are ill more often."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, count)
    ill = np.where(rng.random(count) < age / 120, "yes", "no")
    return pd.DataFrame(
        {"age": age, "ward": rng.choice(["north", "south", "west"], count), "ill": ill}
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    people(2000).to_csv(folder / "people.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)

    data = lk.read(folder / "people.csv", lk.Schema.load(folder / "schema.toml"))
    release = lk.distill(
        data,
        lk.Marginals(soft_rows=200, steps=100),  # small, for speed; the defaults are better
        lk.Budget(epsilon=1.0, delta=1e-6),
        out=folder / "release",
        ledger=lk.Ledger(folder / "ledger.sqlite"),  # for practice; leave it out with real data
    )
    print(release.data.groupby("ill")["age"].mean())
    print("epsilon", lk.verify(folder / "release").epsilon, "in", folder / "release")


if __name__ == "__main__":
    main()
