"""Cells of a private classifier trained on the real rows: the papers' DP-SGD rows."""

from __future__ import annotations

from ..accounting import Budget
from ..ledger import Ledger
from ..methods import LinearHead
from ..progress import Progress
from ..run import classify
from ..scores import score_chances
from .bench import Bench, delta_of
from .code import code_digest
from .exhibit import Cell
from .keep import Keep

REMARK = "ours is linear on scattering features, the paper's a ConvNet"


def classifier_identity(cell: Cell, seed: int) -> dict[str, object]:
    return {
        "kind": "classifier",
        "data": cell.data,
        "given": {},
        "epsilon": cell.epsilon,
        "delta": delta_of(cell.data, cell.delta),
        "seed": seed,
    }


def classifier_code() -> list[str]:
    return [code_digest(LinearHead.__module__), code_digest(score_chances.__module__)]


def score_classifier(
    cell: Cell, stand: Bench, *, seed: int, keep: Keep, progress: Progress
) -> dict[str, float]:
    """Accuracy and further figures of a classifier that spends the cell's budget on the real rows."""
    ledger = Ledger(keep.ledger(classifier_identity(cell, seed) | {"code": classifier_code()}))
    budget = Budget(cell.epsilon, delta_of(cell.data, cell.delta))
    trained = classify(
        stand.train, LinearHead(), budget, ledger=ledger, seed=seed, progress=progress, check=False
    )
    x_test, y_test = stand.rows("test")
    return score_chances(y_test, trained.classifier.chances(x_test))
