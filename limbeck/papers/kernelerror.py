"""Paper 002, figures 1 and 5: how fast features approach the Gaussian kernel in one dimension."""

from __future__ import annotations

import numpy as np

from .exhibit import Cell
from .result import DONE, Result

ORDERS = (2, 5, 10, 20)
RANDOM = (10, 50, 100, 500)
LENGTHS = (0.71, 7.07)
POINTS = 100


def kernel_errors() -> list[Result]:
    """Mean absolute errors between points of N(0, 1) and of N(1, 1), at two length scales."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(POINTS), 1 + rng.standard_normal(POINTS)
    results = []
    for length in LENGTHS:
        true = np.exp(-((x[:, None] - y) ** 2) / (2 * length**2))
        ways = [(f"Hermite features of order {n}", _hermite(n, length)) for n in ORDERS]
        ways += [(f"{n} random features", _random(n, length, rng)) for n in RANDOM]
        for name, phi in ways:
            error = float(np.abs(true - phi(x) @ phi(y).T).mean())
            cell = Cell(row=f"length scale {length}", column=name, figure="mean absolute error")
            results.append(
                Result(cell=cell, status=DONE, values=(error,), note="drawn in the paper")
            )
    return results


def _hermite(order: int, length: float):  # type: ignore[no-untyped-def]
    """Features whose products sum to the kernel (Mehler), scaled orders 0 to `order`.

    With exp(-a (x - y)^2), a = rho / (1 - rho^2): phi_n(x) = sqrt((1 - rho^2)^(1/2) rho^n / (2^n n!))
    H_n(x) exp(-rho x^2 / (1 + rho)).
    """
    a = 1 / (2 * length**2)
    rho = (-1 + np.sqrt(1 + 4 * a * a)) / (2 * a)

    def phi(x: np.ndarray) -> np.ndarray:
        # Orthonormal recurrence of H_n / sqrt(2^n n!), which never overflows.
        terms = [np.ones_like(x), np.sqrt(2.0) * x]
        for n in range(1, order):
            terms.append(np.sqrt(2 / (n + 1)) * x * terms[n] - np.sqrt(n / (n + 1)) * terms[n - 1])
        powers = rho ** (np.arange(order + 1) / 2)
        scale = (1 - rho**2) ** 0.25 * np.exp(-rho * x**2 / (1 + rho))
        return scale[:, None] * powers * np.stack(terms[: order + 1], axis=1)

    return phi


def _random(count: int, length: float, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    frequencies = rng.standard_normal(count // 2) / length

    def phi(x: np.ndarray) -> np.ndarray:
        angles = x[:, None] * frequencies
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(count / 2)

    return phi
