"""`Run`: what the ledger books."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..accounting import Charge, Cost
from ..errors import LimbeckError


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


def new_run(
    dataset: str,
    method: str,
    charges: Sequence[Charge],
    cost: Cost,
    adjacency: str,
    unit: str = "row",
) -> Run:
    """A run to be booked, at what its plan costs."""
    private = math.isfinite(cost.epsilon)
    return Run(
        id=uuid.uuid4().hex,
        dataset=dataset,
        method=method,
        epsilon=cost.epsilon,
        delta=cost.delta,
        adjacency=adjacency,
        charges=tuple(charges),
        private=private,
        status="running" if private else "never released",
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        unit=unit,
    )
