"""How the database tells the cell of a column: by comparisons with numbers and texts that the schema gives.

Nothing is cast, so no row can make a query fail. The limits of cells are found by asking the encoding itself.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

import numpy as np

from ..errors import DataError
from ..features.cells import Cells
from ..schema import Category, Column, Numbers, Numeric, canonical, says_nothing

BLANKS = "".join(c for c in map(chr, range(0x10000)) if c.isspace())
"""What is taken off both ends of a text."""


def coded(column: Column, kind: str, where: str) -> Callable[[Cells | None], str]:
    """How a column's cell is told in SQL (of its state, for None); refuses what comparisons cannot tell."""
    spelled = kind in ("integer", "text", "boolean")
    if isinstance(column, Category) and spelled and not (column.boolean and kind == "text"):
        return lambda cells: _of_category(column, kind, cells is None)
    if isinstance(column, Numeric) and kind in ("integer", "float"):
        return lambda cells: _of_number(column, kind, cells)
    raise DataError(
        f"{where}: column '{column.name}' is declared as {column.kind}, which a database cannot count by "
        f"comparisons of its type {kind}. Make a view with a number or a text, or read the table here."
    )


def _of_category(column: Category, kind: str, state: bool) -> str:
    text = (
        f"trim({quoted(column.name)}, {_text(BLANKS)})" if kind == "text" else quoted(column.name)
    )
    if kind == "text":
        text += ' COLLATE "C"'
    absent = str(len(column.values)) if column.missing else "NULL"
    declared = column.outside not in (None, "missing")
    unknown = str(column.code(column.outside)) if declared else absent
    branches = [f"WHEN {quoted(column.name)} IS NULL THEN {1 if state else absent}"]
    for value in column.values:
        written = canonical(value)
        code = 0 if state else column.code(value)
        if kind == "text":
            branches.append(f"WHEN {text} = {_text(written)} THEN {code}")
        elif kind == "boolean" and column.code(value) in (column.code(True), column.code(False)):
            wanted = "TRUE" if column.code(value) == column.code(True) else "FALSE"
            branches.append(f"WHEN {text} = {wanted} THEN {code}")
        elif kind == "integer":
            numbers = (
                [n for n in (0, 1) if column.code(n) == column.code(value)]
                if column.boolean
                else []
            )
            if (
                not column.boolean
                and re.fullmatch(r"-?(0|[1-9]\d{0,17})", written)
                and written != "-0"
            ):
                numbers = [int(written)]
            branches += [f"WHEN {text} = {n} THEN {code}" for n in numbers]
    if state and kind == "text":
        words = [w for w in EMPTY if says_nothing(w) and column.code(w) is None]
        branches += [f"WHEN {text} IN ({', '.join(map(_text, words))}) THEN 1"]
    rest = ("3" if column.most is None else "0") if state else unknown
    return f"CASE {' '.join(branches)} ELSE {rest} END"


EMPTY = sorted(
    {
        "".join(letters)
        for word in ("", "nan", "na", "n/a", "<na>", "null", "none", "nat", "?")
        for letters in itertools.product(*({c.lower(), c.upper()} for c in word))
    }
)
"""Texts that stand for "no value", however they are written."""


def _of_number(column: Numeric, kind: str, cells: Cells | None) -> str:
    name, (low, high) = quoted(column.name), column.range
    whole = kind == "integer"
    if whole:
        bottom, top = str(math.ceil(low)), str(math.floor(high))
    else:
        bottom, top = _number(low), _number(high)
    none = f"{name} IS NULL" if whole else f"{name} IS NULL OR {name} = 'NaN'::float8"
    beyond = f"{name} < {bottom} OR {name} > {top}"
    if cells is None:
        return f"CASE WHEN {none} THEN 1 WHEN {beyond} THEN 2 ELSE 0 END"
    absent = str(int(_codes(column, cells, np.asarray([np.nan]))[0]))
    outside = f"WHEN {beyond} THEN {absent} " if column.outside == "missing" else ""
    steps = thresholds(column, cells, whole)
    return f"CASE WHEN {none} THEN {absent} {outside}ELSE {_tree(name, steps)} END"


def thresholds(column: Numeric, cells: Cells, whole: bool) -> list[tuple[str, int]]:
    """From which number on a cell begins, and which: found by asking the encoding itself, to the last bit."""
    low, high = column.range
    if whole:
        first, last = math.ceil(low), math.floor(high)
    else:
        first, last = (int(_ordered(np.asarray([v]))[0]) for v in (low, high))

    def of(places: np.ndarray) -> np.ndarray:
        values = places.astype(np.float64) if whole else _unordered(places)
        return _codes(column, cells, values)

    ends = of(np.asarray([first, last]))
    wanted = np.arange(int(ends[0]) + 1, int(ends[1]) + 1)
    below, reached = np.full(len(wanted), first, np.int64), np.full(len(wanted), last, np.int64)
    while len(wanted) and (np.abs(below - reached) > 1).any():
        middle = (below >> 1) + (reached >> 1) + (below & reached & 1)
        enough = of(middle) >= wanted
        below, reached = np.where(enough, below, middle), np.where(enough, middle, reached)
    found: dict[int, int] = {}
    for place, code in zip(reached.tolist(), of(reached).tolist(), strict=True):
        found[place] = code
    shown = (
        (lambda p: str(p)) if whole else (lambda p: _number(float(_unordered(np.asarray([p]))[0])))
    )
    return [("", int(ends[0]))] + [(shown(place), found[place]) for place in sorted(found)]


def _codes(column: Numeric, cells: Cells, values: np.ndarray) -> np.ndarray:
    return cells.codes(column.encode(Numbers(values, np.zeros(len(values), bool))))


def _ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of floats: neighbours are neighbours."""
    bits = (values + 0.0).astype(np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _unordered(places: np.ndarray) -> np.ndarray:
    return np.where(places < 0, np.int64(-(2**63)) - places, places).view(np.float64)


def _tree(name: str, steps: list[tuple[str, int]]) -> str:
    """The cell of a number, by halving."""
    if len(steps) == 1:
        return str(steps[0][1])
    half = len(steps) // 2
    return f"CASE WHEN {name} < {steps[half][0]} THEN {_tree(name, steps[:half])} ELSE {_tree(name, steps[half:])} END"


def quoted(name: str) -> str:
    """A name of a column or table, as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(value: float) -> str:
    return f"'{value!r}'::float8"
