"""`Fit`: how well the rows fit what a column declares, by counts of its cells' states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .columns import Column
from .states import MISSING, OUTSIDE, STATES, UNKNOWN, unusable

SURE = 4.0
"""Standard deviations of the noise by which more cells must be unusable than usable, to say so."""

_BANDS = ((0.01, "under 1 %"), (0.1, "1 to 10 %"), (0.9, "over 10 %"))
_DOUBTS = {
    (
        "numbers",
        UNKNOWN,
    ): 'are no numbers: decimal commas (say decimal = ","), units or separators?',
    (
        "days",
        UNKNOWN,
    ): 'are no days such as 2024-12-31: say how they are written, such as format = "%d.%m.%Y".',
    (
        "seconds",
        UNKNOWN,
    ): "are no such moments: written in another order (`format`), or with or without a time zone (`zone`)?",
    ("spans", UNKNOWN): "are no durations such as 1:30, 90 minutes or PT1H30M.",
    (
        "values",
        UNKNOWN,
    ): "are none of the declared values: are these spelled as in the rows? Capitals count.",
    (
        "pixels",
        OUTSIDE,
    ): "have most pixels beyond the declared bounds: are min and max of another scale?",
}
_ANY = {
    UNKNOWN: "cannot be read: are they written in another way?",
    OUTSIDE: "are beyond the declared bounds: other units, or bounds too narrow?",
    MISSING: "are empty, and the column says missing = false: declare missing = true, or fill them in.",
}


@dataclass(frozen=True)
class Fit:
    """Numbers of a column's cells in each of the four states, exact or noisy."""

    column: Column
    counts: tuple[float, ...]
    """Of the states, in the order of `STATES`."""
    noise: float = 0.0
    """Standard deviation of the noise in each count."""

    @property
    def rows(self) -> float:
        return sum(self.counts)

    @property
    def unusable(self) -> float:
        """Number of cells that do not hold what was declared."""
        return sum(self.counts[state] for state in unusable(self.column.missing))

    @property
    def mostly_unusable(self) -> bool:
        """Whether surely more cells are unusable than not."""
        spread = math.sqrt(len(STATES)) * self.noise
        return self.unusable - (self.rows - self.unusable) > SURE * spread

    def exceeds(self, share: float) -> bool:
        """Whether more than a share of the cells is unusable, by more than noise would often make it."""
        states = unusable(self.column.missing)
        bad, rest = len(states), len(STATES) - len(states)
        spread = self.noise * math.sqrt(bad * (1 - share) ** 2 + rest * share**2)
        return self.unusable - share * self.rows > SURE / 2 * spread

    def band(self, state: int) -> str:
        """Roughly how many cells are in a state."""
        return band_of(self.counts[state], self.rows)

    @property
    def words(self) -> str:
        """What most of the unusable cells may be, by what was declared; of no cell's content."""
        state = max(unusable(self.column.missing), key=lambda s: self.counts[s])
        doubt = _DOUBTS.get((self.column.reads, state), _ANY[state])
        much = band_of(self.unusable, self.rows)
        return (
            f"column '{self.column.name}': {much} of its cells do not fit its declaration as "
            f"{self.column.kind} ({self.column.declared}). Most of these {doubt}"
        )


def band_of(count: float, rows: float) -> str:
    """Roughly how large a part of the rows is.

    >>> band_of(0, 100), band_of(5, 100), band_of(95, 100)
    ('none', '1 to 10 %', 'nearly all')
    """
    if rows <= 0 or count <= 0:
        return "none"
    return next((name for limit, name in _BANDS if count / rows <= limit), "nearly all")


def fits_of(
    columns: Sequence[Column], counts: Iterable[Iterable[float]], noise: float = 0.0
) -> tuple[Fit, ...]:
    """The fit of every column, from counts (columns, states)."""
    return tuple(
        Fit(column, tuple(float(c) for c in row), noise)
        for column, row in zip(columns, counts, strict=True)
    )
