"""LEGACY: the scorer behind the papers' tables of tabular results. For comparison only.

It does what an honest score must not: for each classifier it keeps the best of several settings
as judged on the test rows, and it computes areas under curves from hard labels. Settings are those of
the DP-HP and DP-KIP scripts for two classes, translated to current scikit-learn and xgboost:
SAMME.R is gone (SAMME instead), and `max_features="auto"` meant "sqrt".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import LimbeckError
from .classifiers import _extra, average_precision, from_sklearn
from .logistic import roc_auc

Settings = tuple[dict[str, Any], ...]

_BALANCED_L1 = {"solver": "liblinear", "l1_ratio": 1.0, "class_weight": "balanced"}
_WEIGHTED_TREE = {"criterion": "entropy", "class_weight": "balanced"}

CANDIDATES: Mapping[str, tuple[str, str, Settings]] = {
    "logistic regression": ("linear_model", "LogisticRegression", (
        {},
        {"max_iter": 50_000, "tol": 1e-12},
        {"solver": "saga", "l1_ratio": 1.0, "tol": 1e-12},
        {**_BALANCED_L1, "C": 0.1},
        {**_BALANCED_L1, "C": 0.05},
    )),
    "gaussian naive Bayes": ("naive_bayes", "GaussianNB", (
        {}, {"var_smoothing": 1e-3, "priors": "reversed"},
    )),
    "bernoulli naive Bayes": ("naive_bayes", "BernoulliNB", (
        {}, {"alpha": 0.02}, {"alpha": 0.5}, {"alpha": 1.0},
        {"alpha": 1.0, "binarize": 0.4}, {"alpha": 1.0, "binarize": 0.5},
    )),
    "linear SVM": ("svm", "LinearSVC", (
        {"max_iter": 10_000},
        {"max_iter": 10_000, "loss": "hinge", "tol": 1e-8},
        {"max_iter": 10_000, "loss": "hinge", "tol": 1e-8, "class_weight": "balanced"},
        {"max_iter": 10_000, "loss": "hinge", "tol": 1e-12, "C": 0.01},
    )),
    "decision tree": ("tree", "DecisionTreeClassifier", (
        {}, {**_WEIGHTED_TREE, "max_features": "log2"}, {**_WEIGHTED_TREE, "max_features": "sqrt"},
    )),
    "discriminant analysis": ("discriminant_analysis", "LinearDiscriminantAnalysis", (
        {}, {"solver": "eigen", "shrinkage": "auto"},
        {"solver": "lsqr", "shrinkage": 0.6}, {"solver": "lsqr", "shrinkage": 0.75},
    )),
    "AdaBoost": ("ensemble", "AdaBoostClassifier", (
        {}, {"n_estimators": 100, "learning_rate": 0.8},
        {"n_estimators": 200, "learning_rate": 0.5}, {"n_estimators": 100, "learning_rate": 0.5},
    )),
    "bagging": ("ensemble", "BaggingClassifier", (
        {}, {"max_samples": 0.1, "n_estimators": 20},
    )),
    "random forest": ("ensemble", "RandomForestClassifier", tuple(
        {"n_estimators": n} for n in (100, 200, 70, 30, 10)
    )),
    "gradient boosting": ("ensemble", "GradientBoostingClassifier", (
        {"subsample": 0.1, "n_estimators": 50},
    )),
    "multi-layer perceptron": ("neural_network", "MLPClassifier", (
        {}, {"learning_rate": "adaptive", "alpha": 0.01},
        {"solver": "lbfgs", "alpha": 1e-3}, {"solver": "sgd", "alpha": 1e-3},
    )),
    "XGBoost": ("", "XGBClassifier", tuple(
        {"learning_rate": r, "disable_default_eval_metric": True} for r in (0.5, 0.7, 0.8, 1.0)
    )),
}  # fmt: skip
"""Classifier: module, class, and the settings among which the test rows decide."""


def legacy_scores(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    *,
    seed: int = 0,
    candidates: Mapping[str, tuple[str, str, Settings]] = CANDIDATES,
    progress: Callable[[float], None] = lambda done: None,
) -> dict[str, dict[str, float]]:
    """LEGACY. By classifier: roc_auc and average_precision of hard labels, best of its settings.

    Args:
        x: Slots of the rows to train on.
        y: Their class codes, 0 or 1.
        x_test: Slots of real rows, which also decide between settings.
        y_test: Their class codes.
        seed: Of the classifiers.
        candidates: Classifiers with their settings.
        progress: Called with the fraction done.
    """
    if set(np.unique(y)) != {0, 1} or set(np.unique(y_test)) != {0, 1}:
        raise LimbeckError("The legacy scorer needs two classes, both among the rows.")
    scores = {}
    for number, (name, (module, kind, settings)) in enumerate(candidates.items()):
        build = (
            from_sklearn(module, kind) if module else getattr(_extra("xgboost", "xgboost"), kind)
        )
        tried = []
        for setting in settings:
            model = build(**_filled(setting, build, y, seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hard = model.fit(x, y).predict(x_test).astype(np.float64)
            tried.append((roc_auc(y_test == 1, hard), average_precision(y_test == 1, hard)))
        # Each figure its own best, as the scripts did.
        scores[name] = {
            "roc_auc": max(t[0] for t in tried),
            "average_precision": max(t[1] for t in tried),
        }
        progress((number + 1) / len(candidates))
    return scores


def _filled(setting: Mapping[str, Any], build: Any, y: np.ndarray, seed: int) -> dict[str, Any]:
    filled = dict(setting)
    if filled.get("priors") == "reversed":
        filled["priors"] = [float((y == 1).mean()), float((y == 0).mean())]
    if "random_state" in build().get_params():
        filled["random_state"] = seed
    return filled
