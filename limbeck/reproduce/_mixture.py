"""The mixture of paper 002, figure 2: 25 Gaussians in the plane, five to a class."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .._columns import Category, Numeric
from .._schema import Schema

SIDE, EACH, DEVIATION = 5, 4000, 0.2
"""A square of 5 x 5 means, rows per mean, deviation of each Gaussian."""
CLASSES = ("a", "b", "c", "d", "e")


def mixture_means() -> tuple[np.ndarray, np.ndarray]:
    """Means (25, 2) on the grid of whole numbers, and the class of each: every class once in every
    row and column. The paper draws its means; their places do not change the likelihood."""
    at = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2)
    return at.astype(np.float64), (at[:, 0] + 2 * at[:, 1]) % SIDE


def make_mixture() -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Schema, 90,000 training points and 10,000 test points, always the same."""
    means, classes = mixture_means()
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(len(means)), EACH)
    points = means[which] + DEVIATION * rng.standard_normal((len(which), 2))
    frame = pd.DataFrame(points, columns=["x", "y"])
    frame["label"] = np.asarray(CLASSES)[classes[which]]
    shuffled = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    training = len(shuffled) * 9 // 10
    schema = Schema(
        dataset="mixture",
        rows=training,
        columns=(
            Numeric(name="x", min=-1.0, max=float(SIDE)),
            Numeric(name="y", min=-1.0, max=float(SIDE)),
            Category(name="label", values=CLASSES, label=True),
        ),
    )
    return schema, shuffled[:training], shuffled[training:]
