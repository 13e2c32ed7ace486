"""`RowsOfPersons`: how many persons have one row, how many two, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data import Rows
from ...errors import LimbeckError
from ...schema import Person, Schema
from ..question import Charges, Unit
from ..questions.histogram import CountedRows, Histogram

ROWS_EACH = "rows per person"
PERSONS_SHARE = 0.02
"""Share of the budget that the histogram of rows per person gets: it has few bins, and only shapes ids."""


@dataclass(frozen=True, kw_only=True)
class RowsOfPersons(Histogram):
    """Noisy numbers of persons by how many of their rows are kept, (rows_at_most,). Persons without a
    row that has an id and a declared label count nowhere.

    Privacy:
        All rows of a person fall into one bin, and count for one together: a person changes one count
        by one at most. Discrete Gaussian noise.
    """

    @classmethod
    def of_person(cls, person: Person) -> RowsOfPersons:
        """Of the persons that a schema declares."""
        return cls(name=ROWS_EACH, bins=person.rows_at_most)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedPersons:
        if not unit.person:
            raise LimbeckError(f"'{self.name}' counts persons, and the schema has no [person].")
        return CountedPersons(*self.fitting(charges, unit, row_map))


@dataclass(frozen=True)
class CountedPersons(CountedRows):
    """Counts parts of persons by how many rows of theirs are kept."""

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> np.ndarray:
        assert batch.sharing is not None
        return np.where(batch.sharing.rank < 0, -1, batch.sharing.kept - 1)


def shares_of(counts: np.ndarray) -> tuple[float, ...]:
    """Shares of persons with one row, with two and so on, of noisy numbers: none below zero, and those at
    the end that are nothing left out.

    >>> shares_of(np.array([30.2, -2.0, 10.8, -0.5]))
    (0.7519, 0.0, 0.2481)
    """
    total = max(float(counts.sum()), 1.0)
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    kept = max(1, int((falling > excess).sum()))
    shares = np.round(np.maximum(counts - excess[kept - 1], 0.0) / total, 4)
    if not shares.any():
        return (1.0,)
    return tuple(float(share) for share in np.trim_zeros(shares, "b"))
