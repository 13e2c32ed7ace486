"""Triples of columns: a second round, for what counts of pairs cannot tell.

Soft rows fitted to pairs expect counts of every triple. A few triples whose real counts differ most from
these are chosen privately (`limbeck.privacy.Choice`), and counted, within each class. Of an exclusive or of
three columns every pair is independent, and the triple says it all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...errors import LimbeckError
from ...features import Cells, SingleColumns, joined_groups, most_cells
from ...features.cliques import CliqueCells, CliqueIndicators, ColumnGroups, cell_strides
from ...privacy import Asked, Choice, MapSpec, Measurement, Private, Sum
from ...schema import Schema
from .noisy_cells import count_error, numbered

CHOICE, TRIPLES = "choice of triples", "triples of columns"
CHOICE_SHARE, TRIPLE_SHARE = 0.02, 0.1
"""Shares of the budget for choosing triples and for counting them."""
TRIPLE_GROUPS = 6
"""Groups of a column in a triple, at most, "missing" apart."""
MOST_TRIPLES = 4000
"""Triples that may be chosen among, for memory's sake: those of 29 columns."""
EARLY_STEPS = 300
"""Updates of the soft rows that say what pairs make expect."""

Triple = tuple[int, ...]


class NoisyTriple(NamedTuple):
    """Counts of one triple's groups in each class."""

    joins: tuple[np.ndarray, ...]
    """For each of the three columns, which of its groups here each group of soft rows is in, (groups, own)."""
    counts: np.ndarray
    """Noisy counts, (classes, own, own, own)."""
    variance: float
    """Variance of the noise of a count."""


def asked_triples(schema: Schema, grid: int, picks: int) -> list[Asked]:
    """The choice of so many triples, and their counts, with their shares of the budget."""
    if not picks:
        return []
    triples = _all_triples(schema)
    if not picks <= len(triples) <= MOST_TRIPLES:
        raise LimbeckError(
            f"Expected triples from 0 to the {len(triples)} of '{schema.dataset}', of which there may be "
            f"{MOST_TRIPLES} to choose among; got triples = {picks}. Leave them out with triples = 0."
        )
    limits = [min(most_cells(c, grid), _limit(c, grid)) for c in schema.inputs]
    cells, classes = [math.prod(limits[i] for i in one) for one in triples], len(schema.classes)
    choice = Choice(name=CHOICE, candidates=len(cells), cells=sum(cells) * classes, picks=picks)
    size = picks * max(cells)
    counts = Sum(name=TRIPLES, bound=math.sqrt(picks), size=size, groups=classes)
    return [
        Asked(question=choice, share=CHOICE_SHARE),
        Asked(question=counts, share=TRIPLE_SHARE),
    ]


def measure_triples(
    private: Private,
    grid: int,
    picks: int,
    groups: Sequence[np.ndarray],
    own: Sequence[np.ndarray],
    soft: Float[np.ndarray, "classes rows groups"],
    rows: np.ndarray,
) -> dict[str, Measurement]:
    """Choose triples and count them.

    Args:
        private: Holds the rows.
        grid: Cells of a number.
        picks: Number of triples.
        groups: For each column the group of each cell, of which soft rows have chances.
        own: The same in triples: groups joined.
        soft: Soft rows by what is known so far.
        rows: Noisy number of rows of each class.
    """
    schema = private.schema
    triples, joins = _all_triples(schema), _joins(groups, own)
    expected, prices = [], []
    noise = count_error(private.noise_of(TRIPLES)) * math.sqrt(2 / math.pi)
    for one in triples:
        table = np.stack([_mixed(s, [joins[i] for i in one]) for s in soft], axis=-1) * rows
        expected.append(table.ravel())
        prices.append(table.size * noise)  # what noise alone makes of a distance
    settings = {"grid": grid}
    state = {
        "groups": list(own),
        "expected": np.concatenate(expected),
        "weights": np.ones(len(triples)),
        "penalties": np.asarray(prices),
    }
    spec = MapSpec(factory=f"{__name__}:candidate_map", settings=settings)
    chosen = private.ask(CHOICE, spec, state)
    spec = MapSpec(factory=f"{__name__}:triple_map", settings=settings)
    state = {"groups": list(own), "chosen": np.asarray(chosen.values)}
    return {CHOICE: chosen, TRIPLES: private.ask(TRIPLES, spec, state)}


def read_triples(
    schema: Schema,
    measured: Mapping[str, Measurement],
    groups: Sequence[np.ndarray],
    own: Sequence[np.ndarray],
) -> tuple[NoisyTriple, ...]:
    """The counts of the chosen triples, if any were."""
    if CHOICE not in measured:
        return ()
    joins, sums = _joins(groups, own), measured[TRIPLES]
    chosen = [_all_triples(schema)[int(number)] for number in measured[CHOICE].values]
    sizes = [[joins[i].shape[1] for i in one] for one in chosen]
    widest = max(math.prod(size) for size in sizes)
    counts = sums.values.reshape(len(sums.values), len(chosen), -1)[:, :, :widest]
    return tuple(
        NoisyTriple(
            tuple(joins[i] for i in one),
            counts[:, number, : math.prod(size)].reshape(-1, *size),
            count_error(sums.noise) ** 2,
        )
        for number, (one, size) in enumerate(zip(chosen, sizes, strict=True))
    )


def triple_groups(
    columns: Sequence[Cells], groups: Sequence[np.ndarray], pooled: np.ndarray
) -> list[np.ndarray]:
    """For each column the group of each cell in triples: groups of pairs, joined until they are few.

    Args:
        columns: The cells of each column.
        groups: For each column the group of each cell.
        pooled: Noisy, non-negative counts of all columns' cells.
    """
    ends = np.cumsum([c.count for c in columns])
    return [
        joined_groups(cells, group, pooled[end - cells.count : end], most=TRIPLE_GROUPS)
        for cells, group, end in zip(columns, groups, ends, strict=True)
    ]


# ---- the maps that are measured ------------------------------------------------------------------


def candidate_map(
    schema: Schema, seed: int, grid: int, groups: list[np.ndarray], **utilities: np.ndarray
) -> CliqueCells:
    """The map of a row to its cell in every triple, its class included."""
    sizes = (*(int(g.max()) + 1 for g in groups), len(schema.classes))
    label = len(groups)
    strides, members, cells = cell_strides(sizes, [(*t, label) for t in _all_triples(schema)])
    columns = ColumnGroups(SingleColumns(schema, grid=grid), groups)
    return CliqueCells(columns=columns, strides=strides, members=members, sizes=cells, **utilities)


def triple_map(
    schema: Schema, seed: int, grid: int, groups: list[np.ndarray], chosen: np.ndarray
) -> CliqueIndicators:
    """The map of a row to indicators of its cell in the chosen triples."""
    triples = _all_triples(schema)
    sizes = (*(int(g.max()) + 1 for g in groups), len(schema.classes))
    strides, members, cells = cell_strides(sizes, [triples[int(number)] for number in chosen])
    columns = ColumnGroups(SingleColumns(schema, grid=grid), groups)
    return CliqueIndicators(columns=columns, strides=strides, members=members, cells=max(cells))


# ---- parts ---------------------------------------------------------------------------------------


def _all_triples(schema: Schema) -> list[Triple]:
    """Numbers of the columns of every triple."""
    return list(itertools.combinations(range(len(schema.inputs)), 3))


def _limit(column: object, grid: int) -> int:
    return TRIPLE_GROUPS + Cells(column=column, grid=grid).missing  # type: ignore[arg-type]


def _joins(groups: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> list[np.ndarray]:
    """For each column, which of its joined groups each group of all columns is in, (groups, joined)."""
    numbers = numbered(list(groups))
    size, starts = int(numbers.max()) + 1, np.cumsum([0, *(len(g) for g in groups)])
    joins = []
    for start, joined in zip(starts, own, strict=False):
        join = np.zeros((size, int(joined.max()) + 1), np.float32)
        join[numbers[start : start + len(joined)], joined] = 1.0
        joins.append(join)
    return joins


def _mixed(soft: Float[np.ndarray, "rows groups"], joins: Sequence[np.ndarray]) -> np.ndarray:
    """The chances of a triple's cells under a mixture of soft rows."""
    first, second, third = (soft @ join for join in joins)
    both = (first[:, :, None] * second[:, None, :]).reshape(len(soft), -1)
    table = both.T @ third / len(soft)
    return np.asarray(table).reshape(*(join.shape[1] for join in joins))
