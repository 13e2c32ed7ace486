"""Rows drawn under conditions, against rows drawn plainly of which those were kept that meet them.

    python benchmarks/owners_sampling.py RELEASE --where "cut=Ideal" --where "price>=5000" --like cut --never "carat>=7"

RELEASE is a folder with a release of a table by marginals. Each condition is drawn alone and all together; and
100,000 rows are completed from each value of the column of --like. Compared is the total variation of every column,
numbers in twentieths; that of the halves of the plain rows, which are fewer, shows how much of it is chance. Then a
condition that no row can meet. Results: owners_sampling.json and owners_sampling.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measure import keep

COMMAND = str(Path(sys.executable).with_name("limbeck"))
ROWS, PLAIN = 100_000, 2_000_000


def draw(release: Path, folder: Path, rows: int, *more: str, seed: int = 0) -> pd.DataFrame:
    file = folder / "drawn.parquet"
    count = [] if "--like" in more else ["--rows", str(rows)]
    where = ["--out", str(file), "--force", "--seed", str(seed)]
    command = [COMMAND, "sample", str(release), *count, *more, *where]
    subprocess.run(command, check=True, capture_output=True)
    return pd.read_parquet(file)


def shares(rows: pd.Series, edges: np.ndarray | None) -> pd.Series:
    if edges is not None:
        rows = pd.Series(np.searchsorted(edges, rows.astype(float))).where(
            rows.notna().to_numpy(), -1
        )
    return rows.astype(str).value_counts(normalize=True)


def variation(one: pd.DataFrame, two: pd.DataFrame) -> tuple[float, str]:
    """The largest total variation of a column, and which."""
    found = {}
    for name in one:
        many = pd.api.types.is_numeric_dtype(two[name]) and two[name].nunique() > 20
        edges = two[name].quantile(np.arange(0.05, 1, 0.05)).to_numpy(float) if many else None
        apart = shares(one[name], edges).sub(shares(two[name], edges), fill_value=0)
        found[str(name)] = float(apart.abs().sum() / 2)
    worst = max(found, key=lambda name: found[name])
    return found[worst], worst


def meets(rows: pd.DataFrame, condition: str) -> pd.Series:
    """Written apart from limbeck's own reading of conditions, to check it."""
    for sign in (">=", "<", "="):
        if sign in condition:
            name, value = condition.split(sign, 1)
            if sign == "=":
                return rows[name].astype(str) == value
            return rows[name] >= float(value) if sign == ">=" else rows[name] < float(value)
    raise SystemExit(f"{condition}: not read here")


def compared(name: str, drawn: pd.DataFrame, plain: pd.DataFrame) -> dict[str, Any]:
    half = len(plain) // 2
    apart, worst = variation(drawn, plain)
    chance, _ = variation(plain[half:], plain[:half])
    return {
        "of": name, "drawn": len(drawn), "plain": len(plain), "worst column": worst,
        "total variation": round(apart, 4), "of the halves of the plain rows": round(chance, 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("release", type=Path)
    parser.add_argument("--where", action="append", required=True)
    parser.add_argument("--like", required=True)
    parser.add_argument("--never", required=True, help="a condition that no row can meet")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sampling-"))
    plain = draw(given.release, folder, PLAIN, seed=1)
    found = []
    for conditions in [[one] for one in given.where] + [given.where]:
        words = [word for one in conditions for word in ("--where", one)]
        kept = plain[np.logical_and.reduce([meets(plain, one) for one in conditions])]
        drawn = draw(given.release, folder, ROWS, *words)
        assert all(meets(drawn, one).all() for one in conditions)
        found.append(compared(" and ".join(conditions), drawn, kept))
        print(found[-1], flush=True)
    for value in sorted(plain[given.like].dropna().unique()):
        partial = pd.DataFrame({given.like: [value] * ROWS})
        partial.to_parquet(folder / "partial.parquet", index=False)
        drawn = draw(given.release, folder, ROWS, "--like", str(folder / "partial.parquet"))
        kept = plain[plain[given.like] == value]
        found.append(compared(f"completed from {given.like}={value}", drawn, kept))
        print(found[-1], flush=True)
    command = ["sample", "release", "--rows", "10", "--where", given.never, "--out", "none.csv"]
    never = subprocess.run(
        [COMMAND, command[0], str(given.release.absolute()), *command[2:]],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    said = (never.stdout + never.stderr).strip()
    lines = [
        "| rows | drawn | plain | worst column | total variation | of the halves of the plain rows |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(map(str, one.values())) + " |" for one in found]
    lines += [
        "",
        f"`limbeck {' '.join(command)}`: exit {never.returncode}",
        "",
        "```text",
        said,
        "```",
        "",
    ]
    keep(
        "owners_sampling",
        {"found": found, "never": {"command": command, "code": never.returncode, "said": said}},
        "\n".join(lines),
    )


if __name__ == "__main__":
    main()
