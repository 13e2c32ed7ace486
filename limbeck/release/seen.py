"""The certificate's `check`: was the schema, or the decision to run, held against the rows before?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOT_SEEN = (
    "limbeck did not hold the schema against the rows before this run; what the owner looked at, it "
    "cannot know."
)


def seen_section(looks: Sequence[str] = ()) -> dict[str, Any]:
    """How the rows were looked at before a run.

    Args:
        looks: When the owner looked without noise (`limbeck check`), as the ledger has it.
    """
    nothing: dict[str, Any] = {"charges": [], "epsilon": None, "delta": None, "results": None}
    if not looks:
        return {"seen": "no", "statement": NOT_SEEN, **nothing}
    times = "once" if len(looks) == 1 else f"{len(looks)} times"
    statement = (
        f"Schema or decision to run seen against the rows: the owner looked without noise {times} "
        f"(`limbeck check`, last on {looks[-1][:10]}), which epsilon does not cover."
    )
    return {"seen": "without noise", "statement": statement, **nothing}
