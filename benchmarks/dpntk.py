"""DP-NTK: an iteration in closed form against loops over rows, and CIFAR-10 beside DP-MERF.

speed          one training iteration of 5000 images at width 800: the closed form, a Python loop over
               rows whose gradients are compiled once, and one that differentiates row by row as
               published. Loops are timed on some rows and extrapolated. Gradients are compared.
cifar10/NAME   a release at (10, 1e-5) by `recipes/NAME-images.toml#cifar10-reduced`: Frechet distance of
               scattering features, and a picture of samples.

Accuracies, and those by width, are cells of `generators.py`.
Resumable: finished cells are kept in dpntk.json. Usage: LIMBECK_DATA=... python benchmarks/dpntk.py [PATTERN ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _measure import HERE, keep
from jax.flatten_util import ravel_pytree

import limbeck as lk
from limbeck.features import Scattering, mismatch, split_blocks
from limbeck.nets import build_generator
from limbeck.run import Recipe
from limbeck.scores import frechet_distance

STATE = HERE / "dpntk.json"
CELLS = ("speed", "cifar10/dp-ntk", "cifar10/dp-merf")
COMPILED, PLAIN = 400, 20
"""Rows that the two loops are timed on."""
ROWS = 2000
"""Images on either side of a Frechet distance."""


def timed(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The quickest of a few, after one that compiles."""
    found, took = jax.block_until_ready(work()), []
    for _ in range(times):
        start = time.perf_counter()
        found = jax.block_until_ready(work())
        took.append(time.perf_counter() - start)
    return min(took), found


def speed() -> dict[str, Any]:
    schema = lk.datasets.schema("mnist")
    method = lk.DPNTK(widths=(800,), outputs=1, batch=5000, code=5, hidden=(200,))
    features = method.feature_map(schema, 0)
    generator = build_generator(schema, {"code": 5, "hidden": [200]}, key=jax.random.key(0))
    means = 1e-3 * jax.random.normal(jax.random.key(1), (10, features.size))
    target = means, jnp.full(10, 0.1), features
    weights, rest = eqx.partition(generator, eqx.is_inexact_array)

    @jax.jit
    def iteration(weights: Any, key: Any, target: Any) -> Any:
        return jax.grad(lambda w: method._loss(eqx.combine(w, rest), key, target))(weights)

    closed, _ = timed(lambda: iteration(weights, jax.random.key(2), target))
    images = method._rows(generator, jax.random.key(2), 10)
    backward = jax.jit(
        lambda w, change: jax.vjp(
            lambda w: method._rows(eqx.combine(w, rest), jax.random.key(2), 10), w
        )[1](change)
    )
    around, _ = timed(lambda: backward(weights, images))

    # The loss's part alone, by the images: class after class.
    alone = jax.jit(
        jax.grad(lambda rows: sum(
            mismatch(features(part), split_blocks(mean, features.blocks))
            for part, mean in zip(rows.reshape(10, 500, -1), means, strict=True)
        ))
    )  # fmt: skip
    matching, _ = timed(lambda: alone(images))

    # The same loss of some images of one class, its gradient by the images; closed, and in loops.
    some, mean = images[:COMPILED], means[0]
    phi = lambda row: unit(ravel_pytree(gradient(features, row))[0])  # noqa: E731
    blocks = split_blocks(mean, features.blocks)
    wanted = flat_like(blocks)

    exact = jax.jit(jax.grad(lambda rows: mismatch(features(rows), blocks)))(some)
    row_phi = jax.jit(phi)
    row_back = jax.jit(lambda row, change: jax.vjp(phi, row)[1](change)[0])

    def loop(rows: Any, forward: Any, back: Any) -> Any:
        total = sum(forward(row) for row in rows) / len(rows)
        # Norms are one, so the mean's square over different rows is its plain one but for a factor.
        change = 2 * (total * len(rows) / (len(rows) - 1) - wanted) / len(rows)
        return jnp.stack([back(row, change) for row in rows])

    compiled, made = timed(lambda: loop(some, row_phi, row_back), times=1)
    error = float(jnp.abs(made - exact).max() / jnp.abs(exact).max())
    plain, _ = timed(
        lambda: loop(some[:PLAIN], phi, lambda row, change: jax.vjp(phi, row)[1](change)[0]), 1
    )
    loops = {"compiled": compiled / COMPILED, "plain": plain / PLAIN}
    return {
        "seconds": closed,
        "generator_seconds": around,
        "matching_seconds": matching,
        "loop_matching_seconds": {name: 5000 * each for name, each in loops.items()},
        "loop_seconds": {name: around + 5000 * each for name, each in loops.items()},
        "times_faster": {name: (around + 5000 * each) / closed for name, each in loops.items()},
        "gradient_error": error,
    }


def gradient(features: Any, row: Any) -> Any:
    """By automatic differentiation: each layer's weights, then its biases."""
    found = eqx.filter_grad(lambda net: net.outputs(row).sum())(features)
    return [(layer.weight, layer.bias) for layer in (*found.layers, found.head)]


def unit(vector: Any) -> Any:
    return vector / jnp.linalg.norm(vector)


def flat_like(blocks: list[Any]) -> Any:
    """Blocks, biases beside weights, as the gradient is laid out."""
    return ravel_pytree([(block[:, :-1], block[:, -1]) for block in blocks])[0]


def cifar10(name: str) -> dict[str, Any]:
    public = lk.datasets.load("cifar10")
    recipe = Recipe.load(HERE.parent / "recipes" / f"{name}-images.toml#cifar10-reduced")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        release = lk.distill(
            lk.read((public.train.images, public.train.labels), public.schema),
            recipe.method, lk.Budget(10.0, 1e-5), seed=0, rows=ROWS,
            ledger=lk.Ledger(Path(folder) / "ledger.sqlite"),
            settings_source=recipe.settings_source,
        )  # fmt: skip
        seconds = time.perf_counter() - start
    picture(release, HERE / f"dpntk-cifar10-{name}.png")
    scattering = Scattering(height=32, width=32, channels=3)
    real = public.test.images[:ROWS]

    def distance(images: np.ndarray) -> float:
        return frechet_distance(images, real, features=scattering)

    return {
        "frechet": distance(release.data.images),
        "frechet_of_real_training_images": distance(public.train.images[:ROWS]),
        "steps": recipe.method.settings()["steps"],
        "seconds": seconds,
    }


def picture(release: Any, path: Path) -> None:
    """Twelve samples of each class in a line."""
    from PIL import Image

    labels = np.asarray(release.data.labels)
    lines = [
        np.concatenate(release.data.images[labels == c][:12], axis=1) for c in np.unique(labels)
    ]
    Image.fromarray(np.concatenate(lines)).save(path)


def table(state: dict[str, Any]) -> str:
    lines = []
    if "speed" in state:
        found = state["speed"]
        lines += [
            "| 5000 images, width 800 | whole iteration, s | faster | without the generator, s | faster |",
            "|---|---|---|---|---|",
            f"| closed form | {found['seconds']:.2f} | | {found['matching_seconds']:.2f} | |",
        ]
        for name, seconds in found["loop_matching_seconds"].items():
            lines.append(
                f"| loop over rows, {name} | {found['loop_seconds'][name]:.0f} | "
                f"{found['times_faster'][name]:.0f} | {seconds:.0f} | "
                f"{seconds / found['matching_seconds']:.0f} |"
            )
        lines += [
            "",
            f"The generator's own part, the same for all, is {found['generator_seconds']:.2f} s. Loops are "
            f"extrapolated from {COMPILED} rows (gradients compiled once) and {PLAIN} (differentiated row by row, "
            "as published). Largest error of the closed form's gradient: "
            f"{found['gradient_error']:.1e} of its largest entry.",
            "",
        ]
    pictures = [cell for cell in CELLS[1:] if cell in state]
    if pictures:
        lines += [
            "| CIFAR-10 at (10, 1e-5) | Frechet, scattering | steps | seconds |",
            "|---|---|---|---|",
        ]
        for cell in pictures:
            found = state[cell]
            name = cell.partition("/")[2]
            lines.append(
                f"| [{name}](dpntk-cifar10-{name}.png) | {found['frechet']:.2g} | {found['steps']} | "
                f"{found['seconds']:.0f} |"
            )
        real = state[pictures[0]]["frechet_of_real_training_images"]
        lines += [f"| real training images | {real:.2g} | | |", ""]
        lines += [
            f"{ROWS} images on either side; smaller is better; not comparable with Inception's."
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    for cell in CELLS:
        if cell not in state and any(pattern in cell for pattern in sys.argv[1:]):
            name = cell.partition("/")[2]
            state[cell] = cifar10(name) if name else speed()
            keep("dpntk", {k: v for k, v in state.items() if k in CELLS}, table(state))
    keep("dpntk", {k: v for k, v in state.items() if k in CELLS}, table(state))


if __name__ == "__main__":
    main()
