"""Draft a schema: names and kinds from the source, bounds and values left to the owner.

A draft never holds a value from a row. Kinds are guessed from the first rows; they are the owner's
to confirm, which is why a draft stays `confirmed = false`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..errors import DataError, LimbeckWarning
from ..schema import UNFILLED, Category, Image, Schema, Values, check_encoding, toml_value
from . import csv_files, images, tables
from .bare import lines_of
from .cells import family
from .column_names import check_names
from .guess import guess, guess_decimal, guess_thousands

_HEAD = """\
# A draft. Fill in every "{unfilled}" from what you know about the data (documentation, the
# questionnaire, physical limits), not from looking at the rows; then set confirmed = true.

dataset = "{unfilled}"   # a name for these people's data: the ledger books all spending under it
rows = "measure"   # better: a public, approximate number such as 10000
unit = "one row"   # what one row stands for, such as "one patient"
confirmed = false
ignore = {ignore}   # columns to leave out, such as ["id"]; they need not be filled in
{facts}
[lifetime]   # what may ever be spent on this data set, over all runs
epsilon = 10.0
delta = 1e-4
"""


def draft_schema(source: object, *, names_are_right: bool = False, encoding: str = "utf-8") -> str:
    """A schema file to edit, for any source that `limbeck.read` takes.

    Args:
        source: Whatever `limbeck.read` takes.
        names_are_right: Take column names that look like values (numbers, dates) for names. Else
            they are refused: a file without a line of column names has its first record there.
        encoding: How the texts of a CSV file are written, where that is not UTF-8.
    """
    from .reading import open_source

    check_encoding(encoding)
    opened = open_source(source, encoding)
    if isinstance(opened, images.ArraySource | images.ImageFolderSource):
        return _head([], {}) + _draft_images(opened)
    names, nested = _column_names(opened)
    check_names([*names, *nested], _where(source), names_are_right=names_are_right)
    probe = Schema(dataset="draft", columns=tuple(Category(name=n, most=1) for n in names))
    first = next(iter(islice(opened.chunks(probe), 1)), None)
    raws = {} if first is None else {n: raw for n, raw in first.items() if isinstance(raw, Values)}
    if not raws:
        _say_that_none_was_read(opened, _where(source))
    facts: dict[str, object] = {"names_are_right": True} if names_are_right else {}
    delimiter, decimal, thousands = getattr(opened, "delimiter", ","), ".", None
    if isinstance(opened, csv_files.CsvSource):
        decimal = guess_decimal(raws)
        thousands = guess_thousands(raws, decimal)
    if delimiter != ",":
        facts["delimiter"] = delimiter
    if decimal != ".":
        facts["decimal"] = decimal
    if thousands is not None:
        facts["thousands"] = thousands
    if encoding != "utf-8":
        facts["encoding"] = encoding
    elif any("\ufffd" in text for raw in raws.values() for text in raw.distinct):
        facts["encoding"] = UNFILLED
    marks = replace(probe, decimal=decimal, thousands=thousands).number_marks
    zones = _zones(opened)
    columns = "".join(_draft(n, raws.get(n), marks, zones.get(n, UNFILLED)) for n in names)
    return _head(nested, facts) + columns + _LABEL_HINT


def _say_that_none_was_read(opened: object, where: str) -> None:
    """A file of column names alone may be drafted; one whose lines are all left out has other names."""
    if isinstance(opened, csv_files.CsvSource) and lines_of(opened):
        raise DataError(
            f"{where}: none of its lines has as many fields as its first one ({len(opened.names)}). Does something else "
            "stand before the line of column names, or are there delimiters within fields, without quotes?"
        )
    warnings.warn(
        f"{where}: no row was read, so the kinds of its columns are not known.",
        LimbeckWarning,
        stacklevel=3,
    )


def _head(ignore: list[str], facts: Mapping[str, object]) -> str:
    hints = {
        "names_are_right": "column names that look like values are names, and no one's values",
        "delimiter": "what stands between the fields of a CSV file; the release has it, too",
        "decimal": "what numbers of a CSV file have before their fractions",
        "thousands": "what they have between thousands, which the release has not",
        "encoding": 'how texts are written, such as "cp1252", "latin-1" or "utf-8"',
    }
    lines = "".join(f"{k} = {toml_value(v)}   # {hints[k]}\n" for k, v in facts.items())
    return _HEAD.format(unfilled=UNFILLED, ignore=toml_value(ignore), facts=lines)


def _where(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else "the frame"


def _draft(name: str, raw: Values | None, marks: tuple[str, str], zone: str) -> str:
    guessed = guess(name, raw, marks)
    fields = "".join(f"{line}\n" for line in guessed.lines)
    fields = fields.replace(f'zone = "{UNFILLED}"', f"zone = {toml_value(zone)}")
    return f'\n[[column]]\nname = {toml_value(name)}\nkind = "{guessed.kind}"   # {guessed.hint}\n{fields}'


_LABEL_HINT = """
# One column may be what models will predict. A category: kind = "label" with values = [...] and no
# `missing`. A number: target = true, and no `missing`.

# May a person have several rows? Then protect persons: take the [[column]] of their ids out, and say
# [person]
# column = "..."      # with an id per person
# rows_at_most = 8    # of a person that are kept
# persons = 1000      # about how many there are
"""


def _column_names(source: object) -> tuple[list[str], list[str]]:
    """Names of the columns that can be read, and of those whose cells are lists or the like."""
    if isinstance(source, csv_files.CsvSource):
        return source.names, []
    if isinstance(source, tables.ParquetSource | tables.FrameSource):
        nested = [f.name for f in source.schema if family(f.type) == "nested"]
        return [n for n in source.schema.names if n not in nested], nested
    raise DataError(f"Cannot draft a schema for {type(source).__name__}.")


def _zones(source: object) -> dict[str, str]:
    """Time zones that the types of a table's columns name: part of its structure, like their names."""
    if not isinstance(source, tables.ParquetSource | tables.FrameSource):
        return {}
    return {f.name: f.type.tz for f in source.schema if getattr(f.type, "tz", None)}


def _draft_images(source: images.ArraySource | images.ImageFolderSource) -> str:
    if isinstance(source, images.ArraySource):
        height, width, channels = source._images.shape[1:]
        size = f"height = {height}\nwidth = {width}\nchannels = {channels}\n"
        label = source._labels is not None
    else:
        size = f'height = "{UNFILLED}"\nwidth = "{UNFILLED}"\nchannels = 1   # 1 grey, 3 colour\n'
        size += '# fit = "crop"   # pictures of other sizes are cut to this shape, and brought to this size\n'
        label = True
    image = Image(height=1, width=1)
    text = f'\n[[column]]\nname = "{image.name}"\nkind = "image"\n{size}min = 0\nmax = 255\n'
    if label:
        text += f'\n[[column]]\nname = "label"\nkind = "label"\nvalues = "{UNFILLED}"   # such as [0, 1]\n'
    return text
