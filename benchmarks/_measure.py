"""What benchmarks share: a measured child process, and results kept as JSON and Markdown."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def delta_for(rows: int | None, *, paper: float = 1e-5, part: float = 1.0) -> float:
    """The paper's delta, or a part of one over the rows where that is less: more than one over the rows
    is refused, and rightly."""
    return min(paper, part / (rows or 1))


@dataclass(frozen=True)
class Measured:
    seconds: float
    peak_megabytes: float
    output: str


def run_measured(command: Sequence[str], **world: str) -> Measured:
    """Run a command in a process of its own; wall time and peak resident memory."""
    start = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | world
    )
    output, problem = child.communicate()
    seconds = time.perf_counter() - start
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{problem}")
    # Linux counts in kilobytes; the largest child so far, so measure the hungry ones last.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Measured(seconds, peak, output)


def keep(name: str, results: dict[str, Any], table: str) -> None:
    """Write NAME.json and NAME.md beside the scripts."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    facts = {"machine": machine, "measured": time.strftime("%Y-%m-%d")} | results
    (HERE / f"{name}.json").write_text(json.dumps(facts, indent=2) + "\n")
    head = f"Measured on {facts['measured']}, {machine}, by `python benchmarks/{name}.py`.\n\n"
    (HERE / f"{name}.md").write_text(f"# {name}\n\n{head}{table}")
    print(table)
