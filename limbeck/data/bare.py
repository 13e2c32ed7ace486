"""The one door to rows in clear outside `Private`.

For rows that are public already (released ones, named public data), and for scores against real
rows, which are stamped "internal: not covered by epsilon". A test lists who may use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import DataError
from ..schema import Raw
from .csv_files import CsvSource, cleaned, records
from .dataset import Dataset, Rows


def check_here(data: Dataset) -> None:
    """Refuse rows that are elsewhere: no engine sends any here."""
    if data.engine is not None:
        raise DataError(
            f"The rows of '{data.schema.dataset}' are elsewhere (engine '{data.engine_name}'), and this looks "
            "at rows in clear, on this machine. Give it a part of them, as a file or a frame."
        )


def bare_rows(data: Dataset) -> Rows:
    """The encoded rows of a data set, as they are."""
    check_here(data)
    return data._encoded()


def lines_left_out(data: Dataset) -> int:
    """How many lines of a CSV file have more or fewer fields than its first, so that they are left out."""
    source = data._source
    return lines_of(source) - len(data._encoded()) if isinstance(source, CsvSource) else 0


def lines_of(source: CsvSource) -> int:
    """How many lines a CSV file has after the first, blank ones aside."""
    blocks = (cleaned(lines, source.delimiter, source.encoding) for lines in records(source.path))
    return sum(bool(line) for block in blocks for line in block.split(b"\n"))


def rows_of_nobody(data: Dataset) -> int:
    """How many rows have no id, where persons are protected: they count for nothing."""
    check_here(data)
    data._encoded()
    return 0 if data._persons is None else int((~data._persons.any(axis=1)).sum())


def persons_in_both(one: Dataset, other: Dataset) -> int:
    """How many persons have rows in both of two data sets, where persons are protected."""
    known: list[set[bytes]] = []
    for data in (one, other):
        bare_rows(data)
        persons = () if data._persons is None else data._persons[data._persons.any(axis=1)]
        known.append({person.tobytes() for person in persons})
    return len(known[0] & known[1])


def bare_values(data: Dataset) -> Iterator[Mapping[str, Raw]]:
    """The raw columns of a data set, some thousands of rows at a time."""
    check_here(data)
    return data._source.chunks(data.schema)
