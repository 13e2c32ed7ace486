"""Scores of a released model: how well it predicts real rows. For the owner's eyes, never part of the release."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..data import Dataset, bare_rows, check_here, read
from ..errors import LimbeckError
from ..release import Model, certificate_digest
from ..scores import FIGURE_NAMES, Score, Scores, score_chances


def predicted_scores(model: Model, test: object, *, more: Sequence[object] = ()) -> Scores:
    """What the model gets right of real rows with their labels: internal, as all scores on real rows are.

    Args:
        model: From `limbeck.classify` or `Model.load`.
        test: Real rows that it did not learn from.
        more: What else was wished, as scores of released rows take it: refused.
    """
    if any(wish is not None for wish in more):
        raise LimbeckError(
            "A model is scored by what it predicts: leave train, full, seeds and fid out."
        )
    tested = test if isinstance(test, Dataset) else read(test, model.schema.without_person())
    check_here(tested)
    rows = bare_rows(tested)
    known = np.flatnonzero(rows.labels >= 0)
    if not len(known):
        raise LimbeckError(f"No test row has one of the declared values of '{model.label}'.")
    slots = model.schema.expand(np.asarray(rows.cells)[known])
    figures = score_chances(rows.labels[known], model.classifier.chances(slots))
    epsilon = model.certificate["guarantee"]["epsilon"]
    name = model.certificate["method"]["name"]
    return Scores(
        dataset=model.schema.dataset,
        epsilon=None if isinstance(epsilon, str) or math.isinf(epsilon) else float(epsilon),
        certificate=certificate_digest(model.certificate),
        released_rows=0,
        test_rows=len(known),
        scores=tuple(
            Score(name=name, figure=FIGURE_NAMES.get(figure, figure), values=(value,))
            for figure, value in figures.items()
        ),
    )
