"""The data-dependent bound of votes: right, and for analysis only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limbeck.accounting import Charge, analyse_votes, gnmax_rdp, log_chance_of_another


def test_the_data_dependent_bound_is_for_analysis_only() -> None:
    """P7: it is far below the honest one where teachers agree, and stamped."""
    agreed, split = np.full((50, 10), 0), np.full((50, 10), 400)
    agreed[:, 3] = 4000
    facts: dict[str, Any] = {
        "vote_noise": 100.0, "largest_noise": 600.0, "threshold": 2000.0, "delta": 1e-5,
    }  # fmt: skip
    one, two = analyse_votes([agreed], **facts), analyse_votes([split], **facts | {"threshold": 0})
    assert one.epsilon < 0.5 * one.data_independent_epsilon
    assert math.isclose(two.epsilon, two.data_independent_epsilon)
    assert "not for release" in one.stamp and not one.releasable
    fields = set(Charge.__dataclass_fields__)
    assert not {"votes", "histogram", "data_dependent"} & fields


def test_theorem_seven_bounds_the_true_divergence() -> None:
    """Two bins, so that the outcome's probabilities are known exactly."""
    noise, order = 20.0, 5.0
    for gap in (10, 40, 80, 120):
        counts = np.array([100 + gap, 100.0])
        p = 1 - math.exp(log_chance_of_another(counts, noise))
        moved = math.exp(log_chance_of_another(counts + np.array([-1.0, 1.0]), noise))
        q = 1 - moved
        true = math.log(p**order * q ** (1 - order) + (1 - p) ** order * moved ** (1 - order))
        true /= order - 1
        bound = gnmax_rdp(math.log(1 - p), noise, order)
        assert true <= bound * (1 + 1e-6) + 1e-12 <= order / noise**2 * (1 + 1e-6) + 1e-11
