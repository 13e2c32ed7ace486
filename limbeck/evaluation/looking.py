"""`limbeck check`: the owner's own look at how the rows fit their schema, for the owner's eyes alone.

It is exact, so it is internal: shown in bands, noted in the ledger before a row is read, and told by
the certificates of later runs. `distill` has a noisy check of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..data import Dataset, bare_rows, bare_values, check_here
from ..errors import DataError
from ..ledger import Ledger
from ..schema import STATES, band_of, counted, fits_of

WORTH_A_WORD = 0.01
"""Share of unusable cells from which on a column is named."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was seen of how rows fit their schema: parts of a column in bands, never counts."""

    stamp: ClassVar[str] = "internal: not covered by epsilon"

    dataset: str
    bands: dict[str, dict[str, str]]
    """Of each column: roughly how many cells are usable, missing, outside, unknown."""
    declared: dict[str, str]
    """Of each column, what a cell may hold."""
    doubts: tuple[str, ...]
    """What may be wrong, of columns that do not fit everywhere."""
    unusable: tuple[str, ...]
    """Columns for which `distill` would stop: most cells do not fit, or over a tenth is empty where no gaps
    are declared."""
    fits_nothing: bool
    """Whether no column fits: the schema is another file's, or a draft that was filled in blindly."""
    rules: dict[str, str]
    """Of each rule between columns: roughly how many rows break it."""

    def facts(self) -> dict[str, Any]:
        """Plain data, with the stamp."""
        return {"stamp": self.stamp, **vars(self)}


def check(data: Dataset, *, ledger: Ledger | None = None) -> Look:
    """Look whether the rows fit their schema: per column, roughly how many cells are usable, missing,
    outside the bounds, unknown; per rule, roughly how many rows break it.

    No noise and no budget: for the owner alone. The look is noted in the ledger, and the certificates
    of later runs on this data set say that the schema was seen against the rows.

    Args:
        data: The rows with their schema, from `limbeck.read`.
        ledger: Where the look is noted; by default the user's own ledger.
    """
    if not isinstance(data, Dataset):
        came = type(data).__name__
        raise DataError(f"Expected rows with their schema, from limbeck.read; got {came}.")
    check_here(data)
    schema = data.schema
    (ledger or Ledger()).note_look(schema.dataset, schema.digest)
    states = bare_rows(data).states
    assert states is not None
    fits = fits_of(schema.columns, counted(states))
    return Look(
        dataset=schema.dataset,
        bands={f.column.name: {n: f.band(i) for i, n in enumerate(STATES)} for f in fits},
        declared={f.column.name: f.column.declared for f in fits},
        doubts=tuple(f.words for f in fits if f.exceeds(WORTH_A_WORD)),
        unusable=tuple(f.column.name for f in fits if f.stops),
        fits_nothing=all(f.mostly_unusable for f in fits),
        rules=_rules_broken(data),
    )


def _rules_broken(data: Dataset) -> dict[str, str]:
    """Of each rule, roughly how many rows break it; those with a missing cell in it do not."""
    if not data.schema.rules:
        return {}
    learned, rows = data.schema.learned, 0
    counts = dict.fromkeys(data.schema.rules, 0)
    for raw in bare_values(data):
        broken = learned.broken(learned.values_of(raw))
        for text, marks in broken.items():
            counts[text] += int(marks.sum())
            rows += len(marks) if text == data.schema.rules[0] else 0
    return {text: band_of(count, rows) for text, count in counts.items()}
