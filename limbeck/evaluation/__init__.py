"""Scores of a release: internal ones against real rows, and paid ones that may be published."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .internal import by_column as by_column
    from .internal import check_scores as check_scores
    from .internal import evaluate as evaluate
    from .internal import real_rows as real_rows
    from .internal import released_data as released_data
    from .internal import soft_labels_of as soft_labels_of
    from .learner import Linear as Linear
    from .learner import LinearNumber as LinearNumber
    from .learner import learn as learn
    from .looking import Look as Look
    from .looking import check as check
    from .measured import MeasuredScores as MeasuredScores
    from .measured import figures_of as figures_of
    from .measured import is_measured as is_measured
    from .measured import measure_scores as measure_scores
    from .measured import verify_scores as verify_scores
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "internal": "by_column check_scores evaluate real_rows released_data soft_labels_of",
            "learner": "Linear LinearNumber learn",
            "looking": "Look check",
            "measured": "MeasuredScores figures_of is_measured measure_scores verify_scores",
        },
    )
