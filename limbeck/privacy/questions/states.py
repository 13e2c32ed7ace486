"""`StateCounts`: how many cells of each column are usable, missing, outside, unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data import Rows
from ...schema import STATES, Schema
from ..question import Charges, Unit
from .sum import Sum, SummedFeatures


@dataclass(frozen=True, kw_only=True)
class StateCounts(Sum):
    """Noisy numbers of cells in each state, (1, columns x states): does the file fit its schema?

    Every row counts, one without a declared label too: that may be what is wrong.

    Privacy:
        A row counts once per column, so it moves the answer by the square root of their number in L2.
        Discrete Gaussian noise.
    """

    @classmethod
    def of_schema(cls, name: str, schema: Schema) -> StateCounts:
        """Of all columns, the label's too."""
        columns = len(schema.columns)
        size = columns * len(STATES)
        return cls(name=name, bound=math.sqrt(columns), size=size, groups=1, by="all")

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> CountedStates:
        summed = super().calibrated(charges, unit, row_map)
        return CountedStates(summed.charges, summed.grid, summed.by)


@dataclass(frozen=True)
class CountedStates(SummedFeatures):
    """Adds up each row's states, one of four per column."""

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> tuple[Any, np.ndarray]:
        """A one in the state of each column; all rows are of one group."""
        if batch.states is None:
            raise RuntimeError("these rows were read without their states")
        states = batch.states[:, :, None] == np.arange(len(STATES), dtype=np.uint8)
        return states.reshape(len(batch), -1), np.zeros(len(batch), np.int64)
