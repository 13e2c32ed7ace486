"""The budget of a release, and the adjacency it speaks about."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass

from ..errors import LimbeckError, LimbeckWarning

ADJACENCIES = ("add-remove", "replace-one")
DELTA_MOST = 1e-3
"""Delta above which no private run is planned, however few rows are declared."""
DELTA_WARNED = 1e-5
"""Delta above which a run on an unknown number of rows is warned of."""


@dataclass(frozen=True)
class Budget:
    """How much one release may reveal about one record.

    >>> Budget(epsilon=1.0, delta=1e-5).private
    True
    >>> Budget(epsilon=-1)
    Traceback (most recent call last):
    ...
    limbeck.errors.LimbeckError: Expected epsilon > 0, got -1.
    """

    epsilon: float
    """Bound on the privacy loss; `math.inf` walks the same road without noise, never for release."""
    delta: float = 1e-5
    """Probability with which the bound may fail; keep it well below one over the number of rows."""
    adjacency: str = "add-remove"
    """Two data sets are neighbours when one record is added or removed, or ("replace-one")
    replaced. Replacing is add and remove at once: every sensitivity doubles."""

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise LimbeckError(f"Expected epsilon > 0, got {self.epsilon}.")
        if not 0 < self.delta < 1:
            raise LimbeckError(f"Expected 0 < delta < 1, got {self.delta}.")
        if self.adjacency not in ADJACENCIES:
            raise LimbeckError(
                f"Unknown adjacency '{self.adjacency}'. Use {' or '.join(ADJACENCIES)}."
            )

    @classmethod
    def of(cls, given: Budget | float, rows: int | None) -> Budget:
        """The budget that is meant: a number is an epsilon, whose delta suits the declared rows.

        >>> Budget.of(1.0, rows=45_000)
        Budget(epsilon=1.0, delta=1e-06, adjacency='add-remove')
        """
        if isinstance(given, Budget):
            return given
        if isinstance(given, bool) or not isinstance(given, numbers.Real):
            raise LimbeckError(
                f"Expected a budget, such as Budget(1.0, 1e-6), or an epsilon; got {given!r}."
            )
        return cls(float(given), default_delta(rows))

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def sensitivity_factor(self) -> float:
        """Records by which neighbouring data sets differ, as the mechanisms see it."""
        return 2.0 if self.adjacency == "replace-one" else 1.0

    def check_rows(self, rows: int | None, noun: str = "rows") -> None:
        """Refuse a delta that would allow whole records to be published, warn of one near it.

        Args:
            rows: As many as the schema declares; None where they are to be measured, which are
                taken for 1,000 at least, and for 10,000 in the warning.
            noun: What is counted: rows, or persons.
        """
        if not self.private:
            return
        if rows is not None and self.delta > 1.0 / rows:
            raise LimbeckError(
                f"Expected delta <= 1/{noun} = {1.0 / rows:.2g} for the {rows} {noun} the schema "
                f"declares, got {self.delta:g}: a larger one would allow publishing whole records."
            )
        if self.delta > DELTA_MOST:
            raise LimbeckError(
                f"Expected delta <= {DELTA_MOST:g}, got {self.delta:g}: a larger one would allow "
                "publishing whole records, whatever their number."
            )
        limit = 0.1 / rows if rows is not None else DELTA_WARNED
        if self.delta > limit * (1 + 1e-9):
            of = (
                f"the {rows} {noun} the schema declares" if rows else f"an unknown number of {noun}"
            )
            warnings.warn(
                f"delta {self.delta:g} is large for {of}: keep it to {limit:.2g}, a tenth of one "
                "over their number, or less.",
                LimbeckWarning,
                stacklevel=2,
            )


def default_delta(rows: int | None) -> float:
    """The delta of a run where nobody names one: a power of ten, at most a tenth of one over the
    declared rows, and 1e-5 where they are few or unknown.

    >>> default_delta(1_000), default_delta(60_000), default_delta(None)
    (1e-05, 1e-06, 1e-05)
    """
    power = 5 if rows is None else max(5, math.ceil(math.log10(10 * rows) - 1e-9))
    return float(f"1e-{power}")
