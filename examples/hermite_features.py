"""Hermite against random Fourier features: how many does the Gaussian kernel need?

Two samples of 100 numbers, from N(0, 1) and N(1, 1). The error is the mean of |k(x, x') - phi(x) phi(x')|
over all pairs (DP-HP, figure 1). Hermite features come in order of importance, so a handful is
enough; random ones all weigh the same, and the error falls with the root of their number. For
private sums that matters: every feature is measured with the same noise.

Usage: python examples/hermite_features.py [picture.png]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from limbeck.features import Fourier, Hermite

LENGTH = 0.71
COUNTS = (2, 4, 6, 8, 10, 14, 20, 30, 50, 100, 200, 500)
REPEATS = 20
"""Draws of random features that are averaged."""
RANGE = 8.0
"""The numbers lie between about -4 and 4: units of the Hermite features."""


def samples(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, 100), rng.normal(1, 1, 100)


def hermite_error(x: np.ndarray, y: np.ndarray, count: int, stretch: Any) -> float:
    """Of `count` Hermite features; stretch "auto" chooses the best for the range, RANGE is none at all."""
    phi = Hermite(order=count - 1, length=LENGTH / RANGE, stretch=stretch)
    return _error(x, y, np.asarray(phi(jnp.asarray(x / RANGE))), phi(jnp.asarray(y / RANGE)))


def fourier_error(x: np.ndarray, y: np.ndarray, count: int, seed: int) -> float:
    """Of `count` random features, half of them sines."""
    phi = Fourier(slots=1, size=count, length_scales=(LENGTH,), key=jax.random.key(seed))
    return _error(x, y, np.asarray(phi(jnp.asarray(x)[:, None])), phi(jnp.asarray(y)[:, None]))


def _error(x: np.ndarray, y: np.ndarray, left: np.ndarray, right: jax.Array) -> float:
    kernel = np.exp(-((x[:, None] - y) ** 2) / (2 * LENGTH**2))
    return float(np.abs(kernel - left @ np.asarray(right).T).mean())


def errors() -> dict[str, list[float]]:
    x, y = samples()
    return {
        "Hermite": [hermite_error(x, y, n, RANGE) for n in COUNTS],
        "Hermite, axis stretched": [hermite_error(x, y, n, "auto") for n in COUNTS],
        "random Fourier": [
            float(np.mean([fourier_error(x, y, n, seed) for seed in range(REPEATS)]))
            for n in COUNTS
        ],
    }


def plot(path: Path, curves: dict[str, list[float]], width: int = 720, height: int = 440) -> None:
    """Error by number of features, both logarithmic."""
    canvas = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(canvas)
    lowest, highest = -7.0, 0.0  # powers of ten

    def place(count: float, error: float) -> tuple[float, float]:
        across = math.log(count / COUNTS[0]) / math.log(COUNTS[-1] / COUNTS[0])
        down = (highest - max(math.log10(max(error, 1e-9)), lowest)) / (highest - lowest)
        return 70 + across * (width - 100), 40 + down * (height - 100)

    draw.line([place(COUNTS[0], 1), place(COUNTS[0], 1e-9), place(COUNTS[-1], 1e-9)], fill="black")
    for count in (2, 6, 20, 50, 200, 500):
        draw.text((place(count, 1e-9)[0] - 8, height - 54), str(count), fill="black", font_size=13)
    for power in (0, -2, -4, -6):
        draw.text((14, place(2, 10.0**power)[1] - 8), f"1e{power}", fill="black", font_size=13)
    draw.text((width // 2 - 60, height - 30), "number of features", fill="black", font_size=14)
    draw.text((14, 10), "mean error of the kernel", fill="black", font_size=14)
    for number, (name, values) in enumerate(curves.items()):
        colour = ("#1f6feb", "#1a7f37", "#d1242f")[number]
        points = [place(n, e) for n, e in zip(COUNTS, values, strict=True)]
        draw.line(points, fill=colour, width=3)
        draw.text((width - 240, 160 + 20 * number), name, fill=colour, font_size=14)
    canvas.save(path)


def main() -> None:
    found = errors()
    print("features  " + "".join(f"{name:>26}" for name in found))
    for number, count in enumerate(COUNTS):
        print(f"{count:8d}  " + "".join(f"{values[number]:26.2e}" for values in found.values()))
    plot(Path(sys.argv[1] if len(sys.argv) > 1 else "hermite_features.png"), found)


if __name__ == "__main__":
    main()
