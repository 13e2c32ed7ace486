"""`FrequentValues`: which values of a category many rows hold, by noisy counts and a threshold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from ...accounting import Charge
from ...data import Rows
from ...errors import DataError
from ...schema import Category, Values, canonical
from ..grid import GridSum
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

OTHER = "(other)"
"""Catch-all value of a category whose frequent values were estimated."""


def values_name(column: Category) -> str:
    return f"values of {column.name}"


@dataclass(frozen=True, kw_only=True)
class FrequentValues(Question):
    """Values of a column whose noisy counts pass a threshold, the most frequent first. Rows without a
    declared label are not counted.

    Privacy:
        A row changes one count by one; neighbours differ in the counts of at most two values,
        however many there are. A value that only one row holds passes with probability at most
        `threshold_delta`; all else is the Gaussian mechanism. Noise is drawn only for values that
        occur, which the threshold covers. Of a person one row is counted, so one value.

    Args:
        column: Name of the column.
        most: Values at most; None: any number.
        threshold_delta: Probability that a lone value passes.
    """

    persons: ClassVar[bool] = True

    column: str
    most: int | None
    threshold_delta: float

    @classmethod
    def of_column(cls, column: Category, threshold_delta: float) -> FrequentValues:
        return cls(
            name=values_name(column),
            column=column.name,
            most=column.most,
            threshold_delta=threshold_delta,
        )

    def measured(self) -> tuple[Charge, ...]:
        delta = self.threshold_delta
        return (Charge(name=self.name, sensitivity=1.0, coordinates=2, threshold_delta=delta),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedValues:
        (charge,) = charges
        if charge.sensitivity != unit.factor:
            raise RuntimeError(f"'{self.name}' counts rows: its sensitivity is {unit.factor}")
        # Under replacement two values may be lone.
        return CountedValues(
            (charge,), self.column, self.most, charge.threshold_delta / unit.factor
        )


@dataclass(frozen=True)
class CountedValues(Mechanism):
    """Counts rows by the text of one column; its partial sums are counters."""

    charges: tuple[Charge, ...]
    column: str
    most: int | None
    chance: float
    """With which a lone value may pass."""

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a count

    @property
    def grid(self) -> GridSum:
        return GridSum(bound=1.0, noise=self.charges[0].noise, groups=1, size=1)

    def zero(self) -> Counter[str]:
        return Counter()

    def accumulate(self, partial: Counter[str], batch: Rows | None, raw: Any) -> Counter[str]:
        """A counter with raw values added; encoded rows no longer hold them."""
        assert isinstance(raw, Values)
        counts = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.distinct))
        for text, count in zip(raw.distinct, counts, strict=True):
            if count:  # a dictionary may hold texts that no row has
                partial[canonical(text)] += int(count)
        return partial

    def session(self, access: RowAccess, row_map: Any) -> Session:
        return _RawValues(self, access)

    def finish(self, partial: Counter[str], stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        grid = self.grid
        names = sorted(partial)
        true = np.asarray([partial[name] for name in names], np.int64)[:, None] * grid.unit
        noisy = grid.finalise(true, stream(charge))[:, 0]
        threshold = 1.0 if grid.noise == 0 else 1 - grid.noise * ndtri(self.chance)
        passed = np.flatnonzero(noisy >= threshold)
        best = passed[np.argsort(-noisy[passed], kind="stable")][: self.most]
        return (Measurement.under(charge, np.asarray([names[i] for i in best], dtype=str)),)


class _RawValues(Session):
    def __init__(self, mechanism: CountedValues, access: RowAccess) -> None:
        self._mechanism, self._access = mechanism, access

    def partial(self, step: int, state: State) -> Counter[str]:
        total, start, sharing = self._mechanism.zero(), 0, self._access.rows.sharing
        for raw in self._access.data._values(self._mechanism.column):
            if sharing is not None:
                assert isinstance(raw, Values)
                end = start + len(raw.codes)
                speaks = sharing.rank[start:end] == 0
                if len(speaks) != len(raw.codes):
                    raise DataError("The data changed while they were being read. Run again.")
                raw, start = Values(np.where(speaks, raw.codes, -1), raw.distinct), end
            total = self._mechanism.accumulate(total, None, raw)
        return total
