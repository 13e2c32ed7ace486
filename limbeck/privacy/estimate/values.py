"""`FrequentValues`: which values of a category many rows hold, by noisy counts and a threshold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from ...accounting import Charge
from ...data import Sharing
from ...errors import DataError
from ...schema import Category, Schema, Values, canonical
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
    summed,
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

    engines: ClassVar[tuple[str, ...]] = ("local", "spark")
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


class Texts(NamedTuple):
    """Some rows' texts of a column, which encoded rows no longer hold, and whose the rows are."""

    texts: Values
    sharing: Sharing | None


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

    def evaluate(self, row_map: Any, batch: Any, schema: Schema) -> Values:
        """The texts of a batch of `Texts`; of a person's rows, one speaks."""
        texts, sharing = batch
        if sharing is None:
            return texts
        return Values(np.where(sharing.rank == 0, texts.codes, -1), texts.distinct)

    def accumulate(self, partial: Counter[str], batch: Any, mapped: Values) -> Counter[str]:
        counts = np.bincount(mapped.codes[mapped.codes >= 0], minlength=len(mapped.distinct))
        for text, count in zip(mapped.distinct, counts, strict=True):
            if count:  # a dictionary may hold texts that no row has
                partial[canonical(text)] += int(count)
        return partial

    @staticmethod
    def merge(left: Counter[str], right: Counter[str]) -> Counter[str]:  # type: ignore[override]
        return left + right

    @staticmethod
    def to_bytes(partial: Counter[str]) -> bytes:  # type: ignore[override]
        return json.dumps(partial).encode()

    @staticmethod
    def from_bytes(content: bytes) -> Counter[str]:  # type: ignore[override]
        return Counter(json.loads(content))

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

    def partial(self, step: int, state: State) -> Any:
        return summed(self._mechanism, None, self._access.schema, self._batches())

    def _batches(self) -> Iterator[Any]:
        start, sharing = 0, self._access.rows.sharing
        for texts in self._access.data._values(self._mechanism.column):
            assert isinstance(texts, Values)
            end = start + len(texts.codes)
            own = None if sharing is None else sharing[start:end]
            if own is not None and len(own.rank) != len(texts.codes):
                raise DataError("The data changed while they were being read. Run again.")
            yield Texts(texts, own)
            start = end
