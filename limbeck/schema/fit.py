"""`Fit`: how well the rows fit what a column declares, by counts of its cells' states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .category import Category
from .columns import Column
from .numeric import Numeric
from .states import MISSING, OUTSIDE, STATES, UNKNOWN, unusable

SURE = 4.0
"""Standard deviations of the noise by which a share must be exceeded, to say so."""
MOST = 0.5
"""Share of unusable cells from which on a file is not this schema's."""
FILLED_IN = 0.1
"""Share of cells without a value from which on a column cannot have been meant to have none of these."""

FEW = 0.25
"""Share of the declared rows below which most of a file cannot have been read."""

_BANDS = ((0.01, "under 1 %"), (0.1, "1 to 10 %"), (0.9, "over 10 %"))
_DOUBTS = {
    (
        "numbers",
        UNKNOWN,
    ): 'are no numbers: decimal commas (say decimal = ","), separators of thousands (say thousands = ","), or units?',
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
        return self._surely_over(MOST, unusable(self.column.missing))

    @property
    def stops(self) -> bool:
        """Whether nothing should be paid for this column: most of it is unusable, or more than a tenth would
        be filled in, since its cells hold nothing and no gaps are declared."""
        return self.mostly_unusable or any(self._has_gaps(states) for states in self._filled_in)

    def exceeds(self, share: float) -> bool:
        """Whether surely more than a share of the cells is unusable for one and the same reason."""
        return any(self._surely_over(share, (s,)) for s in unusable(self.column.missing))

    def _has_gaps(self, states: Sequence[int]) -> bool:
        """Whether cells in these states are there, beyond noise, and more than a tenth by what is seen. That the
        tenth itself is exceeded beyond noise would be too much to ask: a sixth of 5,000 cells would pass."""
        seen = sum(self.counts[state] for state in states)
        return seen > FILLED_IN * self.rows and self._surely_over(0.0, states)

    def _surely_over(self, share: float, states: Sequence[int]) -> bool:
        """Whether the cells in these states are a larger share, by more than noise."""
        own = len(states)  # each count has its noise, and so has their total
        spread = self.noise * math.sqrt(own * (1 - share) ** 2 + (len(STATES) - own) * share**2)
        over = sum(self.counts[state] for state in states) - share * self.rows
        return over > SURE * spread

    @property
    def _filled_in(self) -> tuple[tuple[int, ...], ...]:
        """States of cells that hold nothing and would pass for some value, alone and together (fewer
        counts have less noise). Rows without a label or target count as nothing instead."""
        if self.column.missing or self._predicted:
            return ()
        if self.column.reads == "values":  # what is declared may leave values out on purpose
            return ((MISSING,),)
        return (MISSING,), (UNKNOWN,), (MISSING, UNKNOWN)

    @property
    def _predicted(self) -> bool:
        column = self.column
        return (isinstance(column, Category) and column.label) or (
            isinstance(column, Numeric) and column.target
        )

    def band(self, state: int) -> str:
        """Roughly how many cells are in a state."""
        return band_of(self.counts[state], self.rows)

    @property
    def words(self) -> str:
        """What most of the unusable cells may be, by what was declared; of no cell's content."""
        state = max(unusable(self.column.missing), key=lambda s: self.counts[s])
        doubt = _DOUBTS.get((self.column.reads, state), _ANY[state])
        if state == MISSING and self._predicted:
            doubt = "are empty; rows without what is to be predicted count as nothing."
        much = band_of(self.unusable, self.rows)
        return (
            f"column '{self.column.name}': {much} of its cells do not fit its declaration as "
            f"{self.column.kind} ({self.column.declared}). Most of these {doubt}"
        )


def can_tell(fits: Sequence[Fit]) -> bool:
    """Whether there are enough rows, by all columns together, for noisy counts to say anything."""
    rows = sum(fit.rows for fit in fits) / len(fits)
    return rows >= enough_rows(fits[0].noise)


def far_fewer(fits: Sequence[Fit], declared: int | None) -> bool:
    """Whether surely fewer than a quarter of the declared rows (or persons) were read, by all columns together."""
    rows = sum(fit.rows for fit in fits) / len(fits)
    spread = fits[0].noise * math.sqrt(len(STATES) / len(fits))
    return declared is not None and rows + SURE * spread < FEW * declared


def enough_rows(noise: float) -> float:
    """From how many rows on it shows, with this noise in the counts, that all of a column is unusable."""
    return SURE * math.sqrt(len(STATES)) * noise


def enough_for_gaps(noise: float) -> float:
    """From how many rows on it shows, in 97 of 100 runs, that a column without declared gaps has a fifth of them."""
    return (SURE + 2.0) * noise / 0.2


def too_few(noun: str, declared: int | None) -> str:
    """What is said of a file of which hardly anything was read; of no line's content.

    Args:
        noun: What is counted, rows or persons.
        declared: How many the schema says there are; None: no row was read at all.
    """
    much = (
        f"no {noun} could be read."
        if declared is None
        else f"less than a quarter of the {declared:,} {noun} that the schema declares could be read."
    )
    ids = (
        " Is the column of ids empty, or that of what is to be predicted?"
        if noun == "persons"
        else ""
    )
    return (
        f"{much} Is this another file, or an empty one? Have most lines more or fewer fields than the first (another "
        f"delimiter, decimal commas without quotes)?{ids}"
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
