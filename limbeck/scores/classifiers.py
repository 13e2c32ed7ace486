"""Classifiers trained on released rows and tested on real ones, each with one fixed setting.

Nothing is chosen on test data. Areas under curves come from probabilities (or decision values),
never from hard labels. scikit-learn and xgboost are the optional extra `limbeck[eval]`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LimbeckError
from .logistic import roc_auc

CAP = 20_000
"""Rows that slow classifiers are trained on at most, real or released alike."""


@dataclass(frozen=True)
class Classifier:
    """A name and how to build the model, given a seed and the number of classes."""

    name: str
    build: Callable[[int, int], Any]
    slow: bool = False
    """Whether its training rows are capped."""


def from_sklearn(module: str, name: str) -> Any:
    """A class of scikit-learn, or an error that says how to install it."""
    return getattr(_extra(f"sklearn.{module}", "scikit-learn"), name)


def _extra(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise LimbeckError(
            f"This score needs {package}, which is not installed. Run: pip install 'limbeck[eval]'"
        ) from None


def _xgboost(seed: int, classes: int) -> Any:
    # The papers gave "multi:softprob"; with two classes that is the same model as this one.
    objective = "binary:logistic" if classes == 2 else "multi:softprob"
    return _extra("xgboost", "xgboost").XGBClassifier(
        n_estimators=50, colsample_bytree=0.1, objective=objective, random_state=seed
    )


def _svm(seed: int, classes: int) -> Any:
    return from_sklearn("svm", "LinearSVC")(
        loss="hinge", tol=1e-8, max_iter=10_000, random_state=seed
    )


def _discriminant(seed: int, classes: int) -> Any:
    return from_sklearn("discriminant_analysis", "LinearDiscriminantAnalysis")(
        solver="eigen", n_components=min(9, classes - 1), tol=1e-8, shrinkage=0.5
    )


def _tree(seed: int, classes: int) -> Any:
    return from_sklearn("tree", "DecisionTreeClassifier")(
        class_weight="balanced", random_state=seed
    )


def _forest(trees: int, weight: str | None) -> Callable[[int, int], Any]:
    return lambda seed, classes: from_sklearn("ensemble", "RandomForestClassifier")(
        n_estimators=trees, class_weight=weight, random_state=seed
    )


def _ensemble(kind: str, **settings: Any) -> Callable[[int, int], Any]:
    return lambda seed, classes: from_sklearn("ensemble", kind)(random_state=seed, **settings)


def _logistic(**settings: Any) -> Callable[[int, int], Any]:
    return lambda seed, classes: from_sklearn("linear_model", "LogisticRegression")(
        random_state=seed, **settings
    )


def _mlp(**settings: Any) -> Callable[[int, int], Any]:
    return lambda seed, classes: from_sklearn("neural_network", "MLPClassifier")(
        random_state=seed, **settings
    )


def _over_logistic(kind: str, members: int) -> Callable[[int, int], Any]:
    return lambda seed, classes: from_sklearn("ensemble", kind)(
        estimator=_logistic(max_iter=1000)(seed, classes), n_estimators=members, random_state=seed
    )


TWELVE: tuple[Classifier, ...] = (
    Classifier("logistic regression", _logistic(max_iter=5000)),
    Classifier("gaussian naive Bayes", lambda s, c: from_sklearn("naive_bayes", "GaussianNB")()),
    Classifier(
        "bernoulli naive Bayes",
        lambda s, c: from_sklearn("naive_bayes", "BernoulliNB")(binarize=0.5),
    ),
    Classifier("linear SVM", _svm, slow=True),
    Classifier("decision tree", _tree),
    Classifier("discriminant analysis", _discriminant),
    # The papers' SAMME.R is gone from scikit-learn; its successor SAMME is what remains.
    Classifier(
        "AdaBoost", _ensemble("AdaBoostClassifier", n_estimators=1000, learning_rate=0.7), slow=True
    ),
    Classifier("bagging", _ensemble("BaggingClassifier", n_estimators=20, max_samples=0.1)),
    Classifier("random forest", _forest(100, "balanced")),
    Classifier(
        "gradient boosting",
        _ensemble("GradientBoostingClassifier", n_estimators=50, subsample=0.1),
        slow=True,
    ),
    Classifier("multi-layer perceptron", _mlp(), slow=True),
    Classifier("XGBoost", _xgboost),
)
"""The twelve of papers 002 and 004, in their published single setting."""

FOUR: tuple[Classifier, ...] = (
    Classifier("logistic regression", _logistic(max_iter=5000)),
    Classifier("random forest", _forest(200, None)),
    Classifier("hist gradient boosting", _ensemble("HistGradientBoostingClassifier")),
    Classifier("multi-layer perceptron", _mlp(hidden_layer_sizes=(100,)), slow=True),
)
"""Four of different kinds, quick enough for every evaluation."""

CREDIT: tuple[Classifier, ...] = (
    Classifier(
        "logistic regression (L1)",
        _logistic(solver="liblinear", l1_ratio=1.0, class_weight={0: 1, 1: 350}),
    ),
    Classifier("AdaBoost of logistic regressions", _over_logistic("AdaBoostClassifier", 200)),
    Classifier("bagged logistic regressions", _over_logistic("BaggingClassifier", 100)),
    Classifier(
        "multi-layer perceptron (3 x 18 tanh)",
        _mlp(hidden_layer_sizes=(18, 18, 18), activation="tanh"),
    ),
)
"""The four of paper 003 for the Credit data (two classes)."""


def classifier_scores(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    classes: int,
    *,
    classifiers: Sequence[Classifier] = FOUR,
    seed: int = 0,
    cap: int | None = CAP,
    progress: Callable[[float], None] = lambda done: None,
) -> dict[str, dict[str, float]]:
    """Scores of each classifier on real test rows.

    Args:
        x: Slots of the rows to train on, (rows, slots) within [0, 1]; images flattened.
        y: Their class codes.
        x_test: Slots of real rows.
        y_test: Their class codes.
        classes: Number of declared classes.
        classifiers: Which to train.
        seed: Of all of them, and of the rows a cap keeps.
        cap: Most rows for slow classifiers; None for no limit.
        progress: Called with the fraction done.

    Returns:
        By classifier: accuracy, f1 (weighted by class beyond two classes), and for two classes
        roc_auc and average_precision of the second one.
    """
    if not (len(x) == len(y) > 0 and len(x_test) == len(y_test) > 0):
        raise LimbeckError("Expected rows with a label each, to train on and to test on.")
    kept = np.sort(np.random.default_rng(seed).permutation(len(x))[:cap])
    scores = {}
    for number, classifier in enumerate(classifiers):
        rows = kept if classifier.slow else slice(None)
        chances = class_chances(classifier, x[rows], y[rows], x_test, classes, seed=seed)
        scores[classifier.name] = score_chances(y_test, chances)
        progress((number + 1) / len(classifiers))
    return scores


def class_chances(
    classifier: Classifier,
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    classes: int,
    *,
    seed: int,
) -> np.ndarray:
    """Probabilities (or decision values) of all declared classes, (test rows, classes)."""
    present, codes = np.unique(y, return_inverse=True)
    model = classifier.build(seed, len(present))
    chances = np.full((len(x_test), classes), -np.inf if _decides(model) else 0.0)
    if len(present) == 1:  # released rows of one class teach nothing else
        chances[:, present[0]] = 1.0
        return chances
    # Some classifiers hold rows back, class by class: a row that is alone in its class comes twice.
    alone = np.flatnonzero(np.bincount(codes)[codes] == 1)
    x, codes = np.concatenate([x, x[alone]]), np.concatenate([codes, codes[alone]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "did not converge" is part of a fixed setting
        model.fit(x, codes)
        got = model.decision_function(x_test) if _decides(model) else model.predict_proba(x_test)
    chances[:, present] = np.stack([-got, got], axis=1) if got.ndim == 1 else got
    return chances


def score_chances(y_test: np.ndarray, chances: np.ndarray) -> dict[str, float]:
    """Accuracy, F1, and for two classes the areas under the ROC and precision-recall curves."""
    predicted = chances.argmax(axis=1)
    scores = {
        "accuracy": float((predicted == y_test).mean()),
        "f1": f1(y_test, predicted, chances.shape[1]),
    }
    if chances.shape[1] == 2 and 0 < (y_test == 1).sum() < len(y_test):
        scores["roc_auc"] = roc_auc(y_test == 1, chances[:, 1])
        scores["average_precision"] = average_precision(y_test == 1, chances[:, 1])
    return scores


def mean_scores(by_classifier: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Each score's mean over the classifiers."""
    names = next(iter(by_classifier.values())).keys()
    return {n: float(np.mean([s[n] for s in by_classifier.values()])) for n in names}


def f1(y_test: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """F1 of the second of two classes; beyond two, of all of them, weighted by their test rows.

    >>> f1(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), 2)
    0.8
    """
    each, weights = [], []
    for code in range(classes):
        hits = ((predicted == code) & (y_test == code)).sum()
        said, there = (predicted == code).sum(), (y_test == code).sum()
        each.append(2 * hits / max(said + there, 1))
        weights.append(there)
    if classes == 2:
        return float(each[1])
    return float(np.average(each, weights=weights))


def average_precision(positive: np.ndarray, scores: np.ndarray) -> float:
    """Area under the precision-recall curve as a sum of steps; equal scores are one step.

    >>> round(average_precision(np.array([0, 0, 1, 1], bool), np.array([0.1, 0.4, 0.35, 0.8])), 4)
    0.8333
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    steps = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    precision, recall = hits[steps] / (steps + 1), hits[steps] / hits[-1]
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def _decides(model: Any) -> bool:
    return not hasattr(model, "predict_proba")
