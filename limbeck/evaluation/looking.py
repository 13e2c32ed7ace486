"""`limbeck check`: the owner's own look at how the rows fit their schema, for the owner's eyes alone.

It is exact, so it is internal: shown in bands, noted in the ledger before a row is read, and told by
the certificates of later runs. `distill` has a noisy check of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..data import Dataset, bare_rows, bare_values, check_here, lines_left_out, rows_of_nobody
from ..errors import DataError
from ..ledger import Ledger
from ..schema import STATES, band_of, counted, far_fewer, fits_of, too_few

WORTH_A_WORD = 0.01
"""Share of unusable cells from which on a column is named."""
SPLIT = (
    "{} of the lines have more or fewer fields than the first, and are left out: decimal commas or delimiters within "
    "fields, without quotes?"
)
WITHOUT_ID = "{} of the rows have no id of a person, and count for nothing: is [person] right about column and kind?"
BROKEN = "rule '{}': {} of the rows break it. Is it right? Released rows will keep it."
MANY = ("over 10 %", "nearly all")
"""Bands of rows that break a rule from which on the rule is doubted."""


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
    too_few: bool
    """Whether `distill` would stop, since no row or less than a quarter of the declared ones could be read."""
    left_out: str
    """Roughly how many lines of a CSV file were left out, as they have more or fewer fields than the first."""
    without_id: str
    """Roughly how many rows have no id where persons are protected, so that they count for nothing."""
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
    rows, left_out, of_nobody = len(states), lines_left_out(data), rows_of_nobody(data)
    doubts = [
        text.format(band_of(count, whole))
        for text, count, whole in (
            (SPLIT, left_out, rows + left_out),
            (WITHOUT_ID, of_nobody, rows),
        )
        if count > WORTH_A_WORD * whole
    ]
    few = of_nobody == rows or far_fewer(fits, schema.units)
    if few:
        noun = "persons" if schema.person and rows > of_nobody else "rows"
        doubts.insert(0, too_few(noun, schema.units if rows > of_nobody else None))
    rules = _rules_broken(data)
    doubts += [f.words for f in fits if f.exceeds(WORTH_A_WORD)]
    doubts += [BROKEN.format(rule, band) for rule, band in rules.items() if band in MANY]
    return Look(
        dataset=schema.dataset,
        bands={f.column.name: {n: f.band(i) for i, n in enumerate(STATES)} for f in fits},
        declared={f.column.name: f.column.declared for f in fits},
        doubts=tuple(doubts),
        unusable=tuple(f.column.name for f in fits if f.stops),
        fits_nothing=all(f.mostly_unusable for f in fits),
        too_few=few,
        left_out=band_of(left_out, rows + left_out),
        without_id=band_of(of_nobody, rows),
        rules=rules,
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
