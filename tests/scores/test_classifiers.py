"""Classifiers with fixed settings, their figures, and the legacy scorer kept apart."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import limbeck as lk
from limbeck.scores import (  # fmt: skip
    CREDIT,
    FOUR,
    TWELVE,
    Classifier,
    classifier_scores,
    legacy_scores,
    mean_scores,
)
from limbeck.scores.classifiers import average_precision, f1, score_chances
from limbeck.scores.legacy import CANDIDATES
from limbeck.scores.logistic import roc_auc

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


def blobs(count: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(count) % classes
    x = 0.5 + 0.1 * rng.standard_normal((count, 4))
    x[:, 0] += 0.15 * y
    return np.clip(x, 0, 1).astype(np.float32), y


def without_xgboost(classifiers: tuple[Classifier, ...]) -> list[Classifier]:
    try:
        import xgboost  # noqa: F401
    except ImportError:
        return [c for c in classifiers if c.name != "XGBoost"]
    return list(classifiers)


def test_figures_are_those_of_the_library() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 300), np.round(rng.random(300), 1)
    assert roc_auc(y == 1, scores) == pytest.approx(metrics.roc_auc_score(y, scores))
    wanted = metrics.average_precision_score(y, scores)
    assert average_precision(y == 1, scores) == pytest.approx(wanted)
    three, said = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    assert f1(three, said, 3) == pytest.approx(metrics.f1_score(three, said, average="weighted"))
    assert f1(y, said % 2, 2) == pytest.approx(metrics.f1_score(y, said % 2))


@pytest.mark.parametrize("classifiers", [FOUR, CREDIT], ids=["four", "credit"])
def test_sets_of_two_classes(classifiers: tuple[Classifier, ...]) -> None:
    scores = classifier_scores(*blobs(120, 0), *blobs(80, 1), 2, classifiers=classifiers)
    assert list(scores) == [c.name for c in classifiers]
    assert mean_scores(scores)["roc_auc"] > 0.8
    assert mean_scores(scores).keys() == {"accuracy", "f1", "roc_auc", "average_precision"}


def test_the_twelve_with_three_classes_of_which_one_is_missing() -> None:
    chosen = without_xgboost(TWELVE)
    quick = [
        Classifier(c.name, lambda s, k: _boosts(10)) if c.name == "AdaBoost" else c for c in chosen
    ]
    x, y = blobs(90, 0, 3)
    done: list[float] = []
    scores = classifier_scores(
        x[y != 1], y[y != 1], *blobs(60, 1, 3), 3, classifiers=quick, cap=40, progress=done.append
    )
    assert all(
        0.3 < s["accuracy"] < 0.7 and s.keys() == {"accuracy", "f1"} for s in scores.values()
    )
    assert done[-1] == 1.0 and len(scores) == len(chosen) >= 11


def _boosts(members: int) -> object:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(n_estimators=members)


def test_rows_of_one_class_give_a_constant() -> None:
    x, y = blobs(20, 0)
    scores = classifier_scores(x, np.zeros(20, int), x, y, 2, classifiers=FOUR[:1])
    assert (
        scores["logistic regression"]["accuracy"] == scores["logistic regression"]["roc_auc"] == 0.5
    )


def test_a_row_alone_in_its_class_stops_no_classifier() -> None:
    rng = np.random.default_rng(0)
    y = np.append(rng.integers(0, 2, 10_500), 2)  # from 10,000 rows on, boosting holds some back
    x = (y[:, None] + rng.normal(0, 0.1, (len(y), 2))) / 3
    boosting = [c for c in FOUR if "boosting" in c.name]
    found = classifier_scores(x, y, x[-500:], y[-500:], 3, classifiers=boosting)
    assert found[boosting[0].name]["accuracy"] > 0.95


def test_equal_chances_count_half() -> None:
    scores = score_chances(np.array([0, 1, 0, 1]), np.full((4, 2), 0.5))
    assert scores["roc_auc"] == scores["average_precision"] == 0.5


def test_the_legacy_scorer_takes_the_best_setting_of_hard_labels() -> None:
    few = {n: CANDIDATES[n] for n in ("gaussian naive Bayes", "decision tree", "linear SVM")}
    scores = legacy_scores(*blobs(120, 0), *blobs(80, 1), candidates=few)
    assert set(scores) == set(few)
    assert all(0.5 < s["roc_auc"] < 1 for s in scores.values())
    with pytest.raises(lk.LimbeckError, match="two classes"):
        legacy_scores(*blobs(30, 0, 3), *blobs(30, 1, 3))


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_legacy_setting_is_one_the_library_knows(name: str) -> None:
    module, kind, settings = CANDIDATES[name]
    if not module:
        pytest.importorskip("xgboost", reason="xgboost is not installed")
    x, y = blobs(30, 0)
    small = {name: (module, kind, tuple(s | _short(s) for s in settings))}
    assert 0 <= legacy_scores(x, y, x, y, candidates=small)[name]["roc_auc"] <= 1


def _short(setting: dict[str, object]) -> dict[str, object]:
    return {k: 5 for k in ("n_estimators", "max_iter") if k in setting}


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(lk.LimbeckError, match=r"pip install 'limbeck\[eval\]'"):
        classifier_scores(*blobs(20, 0), *blobs(20, 1), 2, classifiers=FOUR[:1])
