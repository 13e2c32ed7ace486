"""`Run`: what the ledger books."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..accounting import Charge
from ..errors import LimbeckError

if TYPE_CHECKING:
    from ..planning import Plan


@dataclass(frozen=True)
class Run:
    """One entry of the ledger."""

    id: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    adjacency: str
    charges: tuple[Charge, ...]
    private: bool
    status: str
    started: str
    unit: str = "row"
    """Whose presence the run hid: "row", or "person by" the column of their ids."""

    def facts(self) -> dict[str, Any]:
        """Plain values for JSON, but for the data set, which has a column of its own."""
        values = {k: v for k, v in vars(self).items() if k != "dataset"}
        epsilon = self.epsilon if self.private else None
        return values | {"epsilon": epsilon, "charges": [c.facts() for c in self.charges]}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Run:
        try:
            charges = tuple(Charge(**c) for c in facts["charges"])
            epsilon = math.inf if facts["epsilon"] is None else facts["epsilon"]
            return cls(**{**facts, "charges": charges, "epsilon": epsilon})
        except (KeyError, TypeError):
            raise LimbeckError(
                "An entry of the ledger cannot be read. `limbeck ledger check` tells whether it was "
                "edited."
            ) from None


def planned_run(planned: Plan) -> Run:
    """A plan as the ledger would book it: at what it costs, for whose presence it hides."""
    schema, cost = planned.schema, planned.cost
    private = math.isfinite(cost.epsilon)
    return Run(
        id=uuid.uuid4().hex,
        dataset=schema.dataset,
        method=planned.method.name,
        epsilon=cost.epsilon,
        delta=cost.delta,
        adjacency=planned.budget.adjacency,
        charges=planned.charges,
        private=private,
        status="running" if private else "never released",
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        unit=f"person by {schema.person.column}" if schema.person else "row",
    )
