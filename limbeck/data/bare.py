"""The one door to rows in clear outside `Private`.

For rows that are public already (released ones, named public data), and for scores against real
rows, which are stamped "internal: not covered by epsilon". A test lists who may use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..schema import Raw
from .dataset import Dataset, Rows


def bare_rows(data: Dataset) -> Rows:
    """The encoded rows of a data set, as they are."""
    return data._encoded()


def bare_values(data: Dataset) -> Iterator[Mapping[str, Raw]]:
    """The raw columns of a data set, some thousands of rows at a time."""
    return data._source.chunks(data.schema)
