"""`Histogram`: how many rows fall into each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ...accounting import Charge
from ...data import Rows
from ...schema import Schema
from ..grid import GridSum
from ..maps import chunk_rows, evaluated
from ..measurement import Measurement
from ..question import Charges, Mechanism, Question, Streams, Unit


@dataclass(frozen=True, kw_only=True)
class Histogram(Question):
    """Noisy numbers of rows in bins, (bins,): the classes, or what a map of slots and label says.

    Rows without a declared label count in none.

    Privacy:
        A row counts in at most one bin, so it changes one count by one; a person changes several, by
        one in all. Discrete Gaussian noise.

    Args:
        bins: Number of bins, at most.
    """

    engines: ClassVar[tuple[str, ...]] = ("local", "spark", "jax", "sql")
    persons: ClassVar[bool] = True

    bins: int

    @classmethod
    def of_classes(cls, name: str, schema: Schema, **more: Any) -> Self:
        """How many rows each class has."""
        return cls(name=name, bins=len(schema.classes), **more)

    def measured(self) -> tuple[Charge, ...]:
        return (Charge(name=self.name, sensitivity=1.0, coordinates=self.bins),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedRows:
        return CountedRows(*self.fitting(charges, unit, row_map))

    def fitting(self, charges: Charges, unit: Unit, row_map: Any) -> tuple[Any, int, bool]:
        """The charges, if they price counts; the bins, if they are not more than planned; and whether
        persons are counted."""
        bins = self.bins if row_map is None else row_map.bins
        if bins > self.bins:
            raise RuntimeError(f"'{self.name}' measures more coordinates than were planned")
        (charge,) = charges
        if charge.sensitivity != unit.factor:
            raise RuntimeError(f"'{self.name}' counts rows: its sensitivity is {unit.factor}")
        return (charge,), bins, unit.person


@dataclass(frozen=True)
class CountedRows(Mechanism):
    """Counts rows, in whole numbers; or persons, whose rows count for whole parts of them."""

    charges: tuple[Charge, ...]
    bins: int
    person: bool

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a count

    @property
    def grid(self) -> GridSum:
        return GridSum(bound=1.0, noise=self.charges[0].noise, groups=self.bins, size=1)

    @property
    def whole(self) -> int:
        """What a count grows by: one for a row, grid steps for all rows of a person together."""
        return self.grid.unit if self.person else 1

    def zero(self) -> np.ndarray:
        return np.zeros(self.bins, np.int64)

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        if row_map is None:
            return super().rows_at_once(schema, row_map)
        return getattr(row_map, "chunk", 0) or chunk_rows(1, schema.slots)

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> np.ndarray:
        """The bin of each row; -1 for none."""
        if row_map is None:
            return batch.labels
        size = self.rows_at_once(schema, row_map)
        bins = evaluated(row_map, size, schema.expand(batch.cells), batch.labels)
        return np.where(batch.labels < 0, -1, bins)

    def accumulate(self, partial: np.ndarray, batch: Rows, bins: Any) -> np.ndarray:
        counts = (bins >= 0) & (bins < self.bins)
        if not self.person:
            return partial + np.bincount(bins[counts], minlength=self.bins)
        assert batch.sharing is not None
        parts = self.whole // np.maximum(batch.sharing.kept, 1).astype(np.int64)
        total = partial.copy()
        np.add.at(total, bins[counts], np.where(batch.sharing.rank < 0, 0, parts)[counts])
        return total

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        if charge.noise == 0:
            return (Measurement.under(charge, partial / self.whole),)
        steps = partial[:, None] * (self.grid.unit // self.whole)
        noisy = self.grid.finalise(steps, stream(charge))[:, 0]
        return (Measurement.under(charge, noisy),)
