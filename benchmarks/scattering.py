"""Scattering of 28 x 28 pictures against kymatio's torch back end, on all cores, in one run.

kymatio lives in an environment of its own, made here on first use (in LIMBECK_PEERS, or the
temporary folder). Each measurement is a process of its own; the two sides take turns.
Usage: python benchmarks/scattering.py [rounds]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from _measure import keep

BATCH, MANY = 500, 60_000
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PEER = ["torch==2.13.0", "kymatio==0.3.0", "scipy<1.17", "numpy<2.4"]

COMMON = """
import json, resource, sys, time
import numpy as np
x = np.random.default_rng(0).random(({batch}, 28, 28), dtype=np.float32)
w = np.random.default_rng(1).random(({batch}, 81, 7, 7), dtype=np.float32)

def report(function, count={batch}, times=5):
    function(), function()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({{"ms": 1e3 * float(np.median(spent)) / count, "peak": peak}}))
"""

OURS = """
import equinox, jax, jax.numpy as jnp
from limbeck.features import Scattering
phi = Scattering(height=28, width=28)
x, w = jnp.asarray(x), jnp.asarray(w)

@jax.jit
def forward(x):
    return phi.scatter(x)

@jax.jit
def both(x, w):
    y, pull = jax.vjp(phi.scatter, x)
    return y, pull(w)[0]

def chunked():
    parts = [both(x[i : i + phi.chunk], w[i : i + phi.chunk]) for i in range(0, len(x), phi.chunk)]
    return jax.block_until_ready(parts)
"""

THEIRS = """
import torch
from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D
scattering = ScatteringTorch2D(J=2, shape=(28, 28))
x, w = torch.from_numpy(x), torch.from_numpy(w)

def backward():
    leaf = x.clone().requires_grad_()
    y = scattering(leaf)
    y.backward(w)
    return y, leaf.grad
"""

JOBS = {
    "forward": (
        "report(lambda: forward(x).block_until_ready())",
        "torch.set_grad_enabled(False); report(lambda: scattering(x))",
    ),
    "forward and backward, one call": (
        "report(lambda: jax.block_until_ready(both(x, w)))",
        "report(backward)",
    ),
    "forward and backward, calls of `phi.chunk` pictures": ("report(chunked)", "report(backward)"),
}

EVERYTHING = f"""
pictures = np.random.default_rng(0).random(({MANY}, 784), dtype=np.float32)
phi = equinox.filter_jit(Scattering(height=28, width=28, normalisation="group"))
start = time.perf_counter()
total = sum(np.asarray(phi(pictures[i : i + {BATCH}])).sum() for i in range(0, {MANY}, {BATCH}))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{"seconds": seconds, "peak": peak}}))
"""


def peer() -> str:
    """The Python of an environment that has kymatio."""
    home = Path(os.environ.get("LIMBECK_PEERS", tempfile.gettempdir())) / "limbeck-kymatio"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEER], check=True)
        (home / "ready").touch()
    return str(python)


def measure(python: str, *code: str) -> dict[str, float]:
    script = "\n".join([COMMON.format(batch=BATCH), *code])
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    print(code[-1].strip().splitlines()[-1], done.stdout.strip(), flush=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    theirs = peer()
    results: dict[str, Any] = {"batch": BATCH, "rounds": ROUNDS}
    lines = [
        f"| 28 x 28, batches of {BATCH} | ours | kymatio {PEER[1][9:]}, torch | times faster | "
        "our peak memory | kymatio's |",
        "|---|---|---|---|---|---|",
    ]
    for job, (a, b) in JOBS.items():
        pairs = [
            (measure(sys.executable, OURS, a), measure(theirs, THEIRS, b)) for _ in range(ROUNDS)
        ]
        ms, peak = (
            [float(np.median([p[i][key] for p in pairs])) for i in (0, 1)] for key in ("ms", "peak")
        )
        ratio = float(np.median([q["ms"] / p["ms"] for p, q in pairs]))
        results[job] = {
            "ours": [p for p, _ in pairs],
            "kymatio": [q for _, q in pairs],
            "ratio": ratio,
        }
        lines.append(
            f"| {job} | {ms[0]:.3f} ms per picture | {ms[1]:.3f} ms | {ratio:.1f} | "
            f"{peak[0]:.0f} MB | {peak[1]:.0f} MB |"
        )
    every = results["60000 pictures"] = measure(sys.executable, OURS, EVERYTHING)
    lines += [
        "",
        f"All {MANY} pictures of MNIST's size, with group norm and unit norm, compilation included: "
        f"{every['seconds']:.1f} s, {every['peak']:.0f} MB.",
        "",
        f"Medians over {ROUNDS} round(s), the two sides in turns, each measurement in a process of its "
        "own after two warm-up calls. Memory is the process's peak, libraries included.",
    ]
    keep("scattering", results, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
