"""A first score: logistic regression trained on released rows, tested on real ones.

Such a score is computed on real rows without noise: it is for the owner's eyes, not covered by
epsilon, and is never written into a release.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import rankdata

from ..data import Dataset, bare_rows


def logistic_score(released: Dataset, test: Dataset, *, penalty: float = 1e-4) -> dict[str, float]:
    """Accuracy on real test rows, and for two classes the area under the ROC curve.

    Args:
        released: Rows to train on.
        test: Real rows of the same schema.
        penalty: L2 penalty per training row.
    """
    x, y = _arrays(released)
    weights = logistic_weights(x, y, len(released.schema.classes), penalty=penalty)
    x_test, y_test = _arrays(test)
    chances = softmax(x_test @ weights[:-1] + weights[-1], axis=1)
    scores = {"accuracy": float((chances.argmax(axis=1) == y_test).mean())}
    if chances.shape[1] == 2:
        scores["roc_auc"] = roc_auc(y_test == 1, chances[:, 1])
    return scores


def roc_auc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Probability that a positive row scores above a negative one, ties counting half.

    >>> roc_auc(np.array([False, False, True, True]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    ranks, count = rankdata(scores), int(positive.sum())
    below = ranks[positive].sum() - count * (count + 1) / 2
    return float(below / (count * (len(positive) - count)))


def _arrays(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    rows = bare_rows(data)
    kept = rows.labels >= 0
    return data.schema.expand(rows.cells[kept]), rows.labels[kept]


def logistic_weights(
    x: np.ndarray, y: np.ndarray, classes: int, *, penalty: float = 1e-4
) -> np.ndarray:
    """Weights (slots + 1, classes) of a logistic regression, the intercepts last."""
    target = np.eye(classes, dtype=np.float32)[y]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(x.shape[1] + 1, classes).astype(np.float32)
        logits = x @ weights[:-1] + weights[-1]
        error = softmax(logits, axis=1) - target
        value = (logsumexp(logits, axis=1) - (logits * target).sum(axis=1)).mean()
        slope = np.vstack([x.T @ error, error.sum(axis=0)]) / len(x) + penalty * weights
        return float(value + penalty / 2 * (weights**2).sum()), slope.ravel().astype(np.float64)

    start = np.zeros((x.shape[1] + 1) * classes)
    minimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return minimum.x.reshape(x.shape[1] + 1, classes)
