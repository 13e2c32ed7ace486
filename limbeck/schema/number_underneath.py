"""What the kinds share that are stored as numbers: dates, dates with a time of day, durations."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .numeric import Numeric
from .raw import Raw


class NumberUnderneath:
    """A column whose values are encoded as those of a numeric column, `number`."""

    estimated: ClassVar[bool] = False

    @property
    def number(self) -> Numeric:
        raise NotImplementedError

    @property
    def slots(self) -> int:
        return self.number.slots

    def encode(self, raw: Raw) -> np.ndarray:
        return self.number.encode(raw)

    def states(self, raw: Raw) -> np.ndarray:
        return self.number.states(raw)

    def expand(self, cells: np.ndarray) -> np.ndarray:
        return self.number.expand(cells)

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.number.collapse(slots, rng)

    def decoded(self, cells: np.ndarray) -> np.ndarray:
        """The numbers underneath, NaN where there is no value."""
        return self.number.decode(cells).astype("Float64").to_numpy(np.float64, na_value=np.nan)
