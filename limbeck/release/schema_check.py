"""The certificate's `check`: was the schema, or the decision to run, held against the rows before?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..planning import Plan
from ..schema import STATES, Fit
from .arithmetic import as_json

NOT_SEEN = (
    "limbeck did not hold the schema against the rows before this run; what the owner looked at, it "
    "cannot know."
)
SEEN_WITH_NOISE = (
    "Before anything else, cells that do not fit the schema were counted with noise, per column; the run "
    "would have stopped where by these counts a column was mostly unusable, or over a tenth of it empty "
    "without gaps declared, or where far fewer rows were read than declared. Their charge is among the release's, so epsilon covers them."
)


def schema_check_section(
    plan: Plan, looks: Sequence[str] = (), fits: Sequence[Fit] = ()
) -> dict[str, Any]:
    """How the rows were looked at before a run.

    Args:
        plan: Of the run.
        looks: When the owner looked without noise (`limbeck check`), as the ledger has it.
        fits: What the noisy check found, if there was one.
    """
    said = [SEEN_WITH_NOISE] if fits else []
    if looks:
        times = "once" if len(looks) == 1 else f"{len(looks)} times"
        said.append(
            f"Schema or decision to run seen against the rows: the owner looked without noise {times} "
            f"(`limbeck check`, last on {looks[-1][:10]}), which epsilon does not cover."
        )
    seen = "without noise" if looks else "with noise" if fits else "no"
    return {"seen": seen, "statement": " ".join(said) or NOT_SEEN, **_noisy(plan, fits)}


def _noisy(plan: Plan, fits: Sequence[Fit]) -> dict[str, Any]:
    """What the noisy check measured, and its price."""
    if plan.check is None or not fits:
        return {"charges": [], "epsilon": None, "delta": None, "results": None}
    counts = {
        fit.column.name: {
            state: round(count, 1) for state, count in zip(STATES, fit.counts, strict=True)
        }
        for fit in fits
    }
    price = plan.check_cost
    return {
        "charges": [charge.facts() for charge in plan.check.charges],
        "epsilon": as_json(price.epsilon),
        "delta": price.delta,
        "results": {"noise": fits[0].noise, "columns": counts},
    }
