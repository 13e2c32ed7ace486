"""Speed and memory of the foundation: noise, encoding, and a large CSV.

Peers are measured in the same run: OpenDP's discrete Gaussian, pandas' CSV reader.
Usage: python benchmarks/foundation.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from _measure import keep, run_measured

import limbeck as lk
from limbeck.privacy import Noise
from limbeck.privacy.discrete import SIGMA, discrete_gaussian

DRAWS = 6_000_000

PLAIN_SUM = """
import sys, numpy as np, limbeck as lk
schema = lk.Schema.load(sys.argv[2])
rows = lk.read(sys.argv[1], schema)._encoded()
total = np.zeros(schema.slots)
for chunk in rows.chunks(1 << 15):
    total += schema.expand(chunk.cells).sum(axis=0)
print(len(rows), total.sum())
"""


def best(function: Callable[[], object], times: int = 3) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return min(spent)


def opendp_rate() -> float:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    count = 100_000
    space = dp.vector_domain(dp.atom_domain(T=int), size=count), dp.l2_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=float(SIGMA))
    return count / best(lambda: noise([0] * count), 1)


def repeated(rows: int, path: Path) -> None:
    """Adult's training rows over and over, as a CSV of `rows` rows."""
    frame = lk.datasets.load("adult").train
    left = rows
    with open(path, "w") as file:
        while left:
            part = frame.iloc[: min(left, len(frame))]
            part.to_csv(file, index=False, header=left == rows)
            left -= len(part)


def main() -> None:
    ours = best(lambda: discrete_gaussian(Noise().stream("bench"), DRAWS), 2)
    theirs = DRAWS / opendp_rate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schema.toml").write_text(lk.datasets.schema("adult").toml())
        schema = lk.datasets.schema("adult")
        repeated(500_000, folder / "half.csv")

        def encode_and_sum() -> None:
            rows = lk.read(folder / "half.csv", schema)._encoded()
            total = np.zeros(schema.slots)
            for chunk in rows.chunks(1 << 15):
                total += schema.expand(chunk.cells).sum(axis=0)

        read_pandas = best(lambda: pd.read_csv(folder / "half.csv"))
        read_ours = best(encode_and_sum)
        repeated(5_000_000, folder / "large.csv")
        size = (folder / "large.csv").stat().st_size / 2**20
        plain = [
            sys.executable,
            "-c",
            PLAIN_SUM,
            str(folder / "large.csv"),
            str(folder / "schema.toml"),
        ]
        summed = run_measured(plain)
        distill = [sys.executable, "-c", "from limbeck.cli.main import main; main()", "distill"]
        recipe = folder / "recipe.toml"
        recipe.write_text('method = "dp-merf"\n[settings]\nfeatures = 200\nsteps = 50\n')
        words = [
            str(folder / "large.csv"),
            "--schema",
            str(folder / "schema.toml"),
            "--recipe",
            str(recipe),
        ]
        words += ["--epsilon", "1", "--out", str(folder / "release")]
        whole = run_measured([*distill, *words], LIMBECK_LEDGER=str(folder / "ledger.sqlite"))
    results = {
        "noise_seconds_for_6_million": ours,
        "noise_seconds_opendp_extrapolated_from_100000": theirs,
        "rows_500000_pandas_read_csv_seconds": read_pandas,
        "rows_500000_read_encode_sum_seconds": read_ours,
        "rows_5000000_csv_megabytes": size,
        "rows_5000000_read_encode_sum": vars(summed),
        "rows_5000000_distill": vars(whole) | {"output": ""},
    }
    table = f"""| what | ours | peer | ratio |
|---|---|---|---|
| 6 million discrete Gaussian draws | {ours:.2f} s | OpenDP {theirs:.0f} s (from 100,000 draws) | {theirs / ours:.0f}x |
| CSV of 500,000 rows (Adult): read, encoded, plainly summed | {read_ours:.2f} s | pandas only reads it: {read_pandas:.2f} s | {read_pandas / read_ours:.2f}x |

| CSV of 5 million rows ({size:.0f} MB) | seconds | peak memory |
|---|---|---|
| read, encoded, plainly summed | {summed.seconds:.1f} | {summed.peak_megabytes:.0f} MB |
| `limbeck distill`, 200 features, 50 steps, start to finish | {whole.seconds:.1f} | {whole.peak_megabytes:.0f} MB |
"""
    keep("foundation", results, table)


if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "import opendp"], check=True)
    main()
