"""`BareRows`: the rows themselves, for methods that promise nothing; at epsilon = infinity only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...accounting import Charge
from ...data import Rows
from ...errors import LimbeckError
from ..measurement import Measurement
from ..question import (
    Charges,
    Mechanism,
    Question,
    RowAccess,
    Session,
    State,
    Streams,
    Unit,
)


@dataclass(frozen=True, kw_only=True)
class BareRows(Question):
    """All encoded rows, as they are.

    Privacy:
        None. Its charge says so: noise nothing, epsilon infinite, never for release.
    """

    kept: ClassVar[bool] = False
    persons: ClassVar[bool] = True

    name: str = "bare rows"

    def measured(self) -> tuple[Charge, ...]:
        return (Charge(name=self.name, sensitivity=1.0, coordinates=1),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> _Handed:
        (charge,) = charges
        if charge.noise_multiplier != 0:
            raise LimbeckError(
                "This method needs the bare rows, which only epsilon = infinity gives."
            )
        return _Handed((charge,))


@dataclass(frozen=True)
class _Handed(Mechanism):
    charges: tuple[Charge, ...]

    def zero(self) -> Rows:
        raise LimbeckError("law mode answers with noise alone, and bare rows have none.")

    def accumulate(self, partial: Any, batch: Rows, mapped: Any) -> Any:
        raise RuntimeError("bare rows are not added up")

    def session(self, access: RowAccess, row_map: Any) -> Session:
        return _AsTheyAre(access)

    def finish(self, partial: Rows, stream: Streams) -> tuple[Measurement, ...]:
        return (Measurement(partial, 0.0, "none"),)


class _AsTheyAre(Session):
    def __init__(self, access: RowAccess) -> None:
        self._access = access

    def partial(self, step: int, state: State) -> Rows:
        return self._access.rows
