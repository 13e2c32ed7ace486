"""Regressors trained on released rows and tested on real ones, each with one fixed setting.

Where models predict a number: the share of its variance that they explain (R2), and by how much they
err. scikit-learn is the optional extra `limbeck[eval]`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LimbeckError
from .classifiers import CAP, from_sklearn


@dataclass(frozen=True)
class Regressor:
    """A name and how to build the model, given a seed."""

    name: str
    build: Callable[[int], Any]
    slow: bool = False
    """Whether its training rows are capped."""


def _ensemble(kind: str, **settings: Any) -> Callable[[int], Any]:
    return lambda seed: from_sklearn("ensemble", kind)(random_state=seed, **settings)


THREE: tuple[Regressor, ...] = (
    Regressor("linear regression", lambda seed: from_sklearn("linear_model", "Ridge")(alpha=1.0)),
    Regressor("random forest", _ensemble("RandomForestRegressor", n_estimators=50), slow=True),
    Regressor("hist gradient boosting", _ensemble("HistGradientBoostingRegressor")),
)
"""Three of different kinds, quick enough for every evaluation."""


def regressor_scores(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    *,
    regressors: Sequence[Regressor] = THREE,
    seed: int = 0,
    cap: int | None = CAP,
    progress: Callable[[float], None] = lambda done: None,
) -> dict[str, dict[str, float]]:
    """Scores of each regressor on real test rows, by its name: R2 and the mean absolute error.

    Args:
        x: Slots of the rows to train on, without those of the target, (rows, slots).
        y: Their targets.
        x_test: Slots of real rows.
        y_test: Their targets.
        regressors: Which to train.
        seed: Of all of them, and of the rows a cap keeps.
        cap: Most rows for slow regressors; None for no limit.
        progress: Called with the fraction done.
    """
    if not (len(x) == len(y) > 0 and len(x_test) == len(y_test) > 0):
        raise LimbeckError("Expected rows with a target each, to train on and to test on.")
    some = np.sort(np.random.default_rng(seed).permutation(len(x))[:cap])
    scores = {}
    for number, regressor in enumerate(regressors):
        rows = some if regressor.slow else slice(None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = regressor.build(seed).fit(x[rows], y[rows]).predict(x_test)
        scores[regressor.name] = {
            "R2": r_squared(y_test, predicted),
            "mean absolute error": float(np.abs(predicted - y_test).mean()),
        }
        progress((number + 1) / len(regressors))
    return scores


def r_squared(y_test: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the variance that predictions explain; of a constant, 1 if it is predicted and else 0.

    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    spread = float(((y_test - y_test.mean()) ** 2).sum())
    left = float(((y_test - predicted) ** 2).sum())
    return 1 - left / spread if spread > 0 else float(left == 0)
