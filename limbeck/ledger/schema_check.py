"""What the noisy check of the schema decides: whether a run stops, and what is warned of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..accounting import Cost
from ..errors import DataError, LimbeckWarning
from ..schema import Fit, Schema, can_tell, far_fewer, too_few

STOPPED = "stopped by its check"
"""What the ledger says of a run that ended so."""
WARNED = 0.05
"""Share of unusable cells from which on a column is warned of."""


def misfits(fits: Sequence[Fit], schema: Schema) -> list[str]:
    """What is said of all that stops a run, as far as noisy counts can tell: hardly any rows, or columns."""
    if far_fewer(fits, schema.units):
        return [too_few("persons" if schema.person else "rows", schema.units)]
    return [fit.words for fit in (fits if can_tell(fits) else ()) if fit.stops]


def warn_of_misfits(fits: Sequence[Fit]) -> None:
    """Warn of columns of which more than a few cells do not fit."""
    for fit in fits if can_tell(fits) else ():
        if fit.exceeds(WARNED):
            warnings.warn(f"By the noisy check, {fit.words}", LimbeckWarning, stacklevel=2)


def misfit(words: Sequence[str], price: Cost) -> DataError:
    """Why a run was stopped by its check."""
    reasons = " ".join(w[0].upper() + w[1:] for w in words)
    return DataError(
        f"Stopped by the noisy check, before anything else was paid for: the file does not fit its "
        f"schema. {reasons} Spent was the check alone, epsilon {price.epsilon:.2g}; nothing was written. "
        "Mend the schema or the file; to go on without a check: check=False."
    )
