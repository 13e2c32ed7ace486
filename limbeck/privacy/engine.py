"""Where sums over rows are computed: in this process, or wherever the rows are.

An engine gives partial sums, in whole numbers, and nothing else: charges, noise and what is kept of a run
stay with `Private`. Other engines than this process are optional parts (`limbeck.engines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from ..schema import Schema
from .map_spec import build_map
from .question import Mechanism, Planned, RowAccess, Session, State, Unit, summed


@dataclass(frozen=True, kw_only=True)
class Work:
    """A planned question made ready to be summed, here or by any process that is sent it."""

    planned: Planned
    unit: Unit
    schema: Schema
    spec: Any
    state: State = field(repr=False)

    @cached_property
    def row_map(self) -> Any:
        return build_map(self.spec, self.schema, self.state)

    @cached_property
    def mechanism(self) -> Mechanism:
        return self.planned.question.calibrated(self.planned.charges, self.unit, self.row_map)

    def partial(self, batches: Iterable[Any], state: State) -> Any:
        """The sum over some of the rows at a step; batches of the kind and size that the mechanism wants."""
        return summed(self.mechanism.at(state), self.row_map, self.schema, batches)

    def __getstate__(self) -> dict[str, Any]:
        """What another process makes mechanism and map anew from."""
        names = ("planned", "unit", "schema", "spec", "state")
        return {name: getattr(self, name) for name in names}


class Engine(Protocol):
    """Computes sums where the rows are."""

    name: str

    def facts(self) -> Mapping[str, Any]:
        """What a certificate says of it: `name`, `version`; `processors`, where they are not this one."""

    def prepare(
        self,
        planned: Planned,
        unit: Unit,
        schema: Schema,
        spec: Any,
        state: State,
        access: RowAccess,
    ) -> Session:
        """A question at work on the rows, for all its steps."""
