"""Marginals: all columns and all pairs of columns within each class, measured once; our own method.

Two rounds. First every column alone, finely cut, within each class. The noisy counts say which
neighbouring values or rare categories to join, so that each group holds more rows than the noise
can hide. Then all pairs of groups, in one matrix product. Soft rows are fitted to both, freely;
within a group, values are drawn as the fine counts say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import LimbeckError, fraction, not_negative, positive
from ...features import Pairs, Singles, group_cells, most_cells
from ...privacy import Asked, Histogram, Measurement, OuterSum, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from ..mean_embedding.embedding import COUNTS, class_weights
from .soft_fit import NoisyMarginals, fit_soft_rows, to_simplex
from .soft_rows import SoftRows

SINGLES, PAIRS = "single columns", "pairs of columns"
FOR_EACH = 4.0
"""Soft rows for each time that the rows outnumber the noise of a pair's count."""
WELL_TOLD = 4000
"""Soft rows that pairs could tell apart, above which errors are not the noise's but chance's."""
FLOOR = 4.0
"""Rows that a group should hold, in units of the noise of a pair count over all classes."""
FEWEST, MOST = 16, 256
"""Cells of a number, unless a user says how many."""
TOLD_APART = 10.0
"""Rows of a class that a cell should hold on average, in units of the root of the columns: noise at
epsilon 1 is four to seven such units."""
CROWDED = 50.0
"""Rows of a class for each column, below which noise hides most pairs: then pairs get less."""
MOST_COUNTS = 1 << 25
"""Pair counts of a run, for memory's sake: 256 MB as float64."""


@dataclass(frozen=True, kw_only=True)
class Marginals(AbstractMeasureOnce):
    """Noisy counts of all columns and column pairs per class, and soft rows fitted to them.

    Privacy:
        Measures class counts (a row changes one by 1); indicators of each of k columns within the
        row's class (norm at most sqrt k); indicators of each pair of columns' groups, both ways
        round, within the class (norm at most k). How cells are grouped is read off the noisy
        answers before. Add/remove of one row, discrete Gaussian noise calibrated jointly.
        Events: three Gaussians.

    >>> from limbeck import Category
    >>> pair = tuple(Category(name=n, values=("a", "b")) for n in "xy")
    >>> [asked.question.name for asked in Marginals().questions(Schema(dataset="d", columns=pair))]
    ['class counts', 'single columns', 'pairs of columns']
    """

    name: ClassVar[str] = "marginals"
    data_kinds: ClassVar[tuple[str, ...]] = ("tables",)
    good_for: ClassVar[str] = (
        "tables of any kind, their default: rows true in columns and pairs of columns"
    )
    papers: ClassVar[tuple[str, ...]] = ()

    free: ClassVar[frozenset[str]] = frozenset({"soft_rows", "steps", "learning_rate", "restraint"})

    count_share: float = 0.01
    """Share of the budget for the class counts."""
    single_share: float = 0.0
    """Share of the budget for single columns; the rest is for pairs. 0: 0.3, and 0.8 where there are
    fewer than 50 rows of a class for each column."""
    grid: int = 0
    """Cells of a number with more values than that. 0: 256, and fewer where there are few rows for the
    columns and classes."""
    groups: int = 16
    """Groups of cells in pairs, at most, for each column."""
    soft_rows: int = 4000
    """Soft rows to fit where there is little noise, over all classes; with much, half as many. Free."""
    steps: int = 800
    """Updates of the soft rows. Free."""
    learning_rate: float = 0.1
    restraint: float = 0.0
    """What a soft row's knowledge costs against errors in units of noise. 0: 0.2 with a label, for noise that
    differs between classes misleads learners; 0.02 without. Free."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share)
        not_negative(single_share=self.single_share)
        fraction(count_share_and_single_share=self.count_share + self.single_share)
        not_negative(grid=self.grid, restraint=self.restraint)
        positive(soft_rows=self.soft_rows, steps=self.steps, learning_rate=self.learning_rate)
        if self.groups < 2:
            raise LimbeckError(f"Expected groups > 1, got {self.groups}.")

    def questions(self, schema: Schema) -> list[Asked]:
        if schema.image:
            raise LimbeckError("marginals is a method for tables; choose another for images.")
        classes, columns = len(schema.classes), len(schema.inputs)
        cells = sum(most_cells(c, self._grid(schema)) for c in schema.inputs)
        groups = self._widest(schema, self._most_groups(schema))
        singles = Sum(name=SINGLES, bound=math.sqrt(columns), size=cells, groups=classes)
        blocks = ((groups, groups),)
        pairs = OuterSum(name=PAIRS, bound=float(columns), blocks=blocks, groups=classes)
        share = self._single_share(schema)
        fraction(count_share_and_single_share=self.count_share + share)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=singles, share=share),
            Asked(question=pairs, share=1 - self.count_share - share),
        ]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        counts = private.ask(COUNTS)
        singles = private.ask(SINGLES, self.map_spec("single_cells", seed))
        noise = private.noise_of(PAIRS)
        groups = self._groups(private.schema, counts.values, singles.values, noise)
        pairs = private.ask(PAIRS, self.map_spec("grouped_pairs", seed), {"groups": groups})
        matrices = pairs.values.reshape(len(counts.values), *Pairs.shape_of(groups))
        return {COUNTS: counts, SINGLES: singles, PAIRS: pairs._replace(values=matrices)}

    def single_cells(self, schema: Schema, seed: int) -> Singles:
        """The map of a row to its cell in every column."""
        return Singles(schema, grid=self._grid(schema))

    def grouped_pairs(self, schema: Schema, seed: int, groups: list[np.ndarray]) -> Pairs:
        """The map of a row to its groups of cells, times themselves."""
        return Pairs(self.single_cells(schema, seed), groups)

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        counts, singles, pairs = (measured[name].values for name in (COUNTS, SINGLES, PAIRS))
        noise = {name: answer.noise for name, answer in measured.items()}
        weights, size = class_weights(counts)
        groups = self._groups(schema, counts, singles, noise[PAIRS])
        marginals = _marginals(groups, np.maximum(weights * size, 1.0), singles, pairs, noise)
        # As many soft rows as the measured pairs can tell apart.
        told = FOR_EACH * size / _spread(noise[PAIRS])
        restraint = self.restraint or (0.2 if schema.label else 0.02)
        soft = fit_soft_rows(
            marginals,
            soft_rows=round(float(np.clip(told, (self.soft_rows + 1) // 2, self.soft_rows))),
            steps=self.steps,
            learning_rate=self.learning_rate,
            # Below the rows' own chance, noise is no measure of errors: counts are not truer than that.
            restraint=restraint * max(1.0, told / WELL_TOLD),
            seed=seed,
            progress=lambda done: progress("soft rows", done),
        )
        numbered = _numbered(groups)
        source = SoftRows(
            soft=soft,
            groups=numbered,
            within=_within(numbered, singles, marginals.best_singles()[0], _spread(noise[SINGLES])),
            class_weights=weights,
            grid=self._grid(schema),
        )
        return Product(
            source=source, rows=schema.rows or max(1, round(size)), measurements=values_of(measured)
        )

    # ---- from the schema alone: what noise will leave of the counts -------------------------------

    def _single_share(self, schema: Schema) -> float:
        if self.single_share:
            return self.single_share
        return 0.8 if _rows_per_class(schema) < CROWDED * len(schema.inputs) else 0.3

    def _grid(self, schema: Schema) -> int:
        """Cells of a number: so few that each holds more rows than the noise hides."""
        if self.grid:
            return self.grid
        told = _rows_per_class(schema) / (TOLD_APART * math.sqrt(len(schema.inputs)))
        return int(min(MOST, max(FEWEST, told)))

    def _widest(self, schema: Schema, most: int) -> int:
        """Groups of all columns together, at most."""
        grid = self._grid(schema)
        cells = Singles(schema, grid=grid).cells
        return sum(min(most_cells(c.column, grid), most + c.missing) for c in cells)

    def _most_groups(self, schema: Schema) -> int:
        """Groups of a column, at most: fewer in wide tables, so that the counts fit in memory."""
        limit = math.sqrt(MOST_COUNTS / len(schema.classes))
        for most in range(self.groups, 1, -1):
            if self._widest(schema, most) <= limit:
                return most
        raise LimbeckError(
            f"{len(schema.inputs)} columns and {len(schema.classes)} classes make too many pair "
            "counts for marginals; use another method."
        )

    def _groups(
        self,
        schema: Schema,
        counts: np.ndarray,
        singles: np.ndarray,
        noise: float,
    ) -> list[np.ndarray]:
        """For each column the group of each cell: from noisy numbers, so the same ones ever after."""
        most, classes = self._most_groups(schema), len(counts)
        floor = FLOOR * noise * math.sqrt(classes / 2)
        rows = class_weights(counts)[1]
        start, groups = 0, []
        for cells in Singles(schema, grid=self._grid(schema)).cells:
            pooled = to_simplex(singles[:, start : start + cells.count].sum(axis=0), rows)
            groups.append(group_cells(cells, pooled, most=most, floor=floor))
            start += cells.count
        return groups


def _rows_per_class(schema: Schema) -> float:
    """As declared; without a declaration as many as it takes."""
    return math.inf if schema.rows is None else schema.rows / len(schema.classes)


def _marginals(
    groups: list[np.ndarray],
    rows: np.ndarray,
    singles: np.ndarray,
    pairs: np.ndarray,
    noise: Mapping[str, float],
) -> NoisyMarginals:
    """All counts by groups; each pair is measured twice, and single groups on the diagonal too."""
    sizes = tuple(int(g.max()) + 1 for g in groups)
    into = np.eye(sum(sizes))[_numbered(groups)]  # (cells, groups)
    fine, pair = _spread(noise[SINGLES]) ** 2, _spread(noise[PAIRS]) ** 2
    variance = fine * into.sum(axis=0)
    precision = 1 / variance + 1 / pair
    diagonal = np.einsum("cgg->cg", pairs)
    return NoisyMarginals(
        sizes=sizes,
        rows=rows,
        single=(singles @ into / variance + diagonal / pair) / precision,
        single_variance=1 / precision,
        pair=(pairs + pairs.transpose(0, 2, 1)) / 2,
        pair_variance=pair / 2,
    )


def _within(
    groups: np.ndarray, singles: np.ndarray, totals: np.ndarray, noise: float
) -> np.ndarray:
    """Chances of cells within their group: a class's own counts, drawn to those of all classes.

    How far, the counts themselves say: where classes differ by no more than the noise, not at all.
    """
    chances = np.zeros_like(singles)
    for group in range(int(groups.max()) + 1):
        cells = np.flatnonzero(groups == group)
        own = singles[:, cells]
        common = to_simplex(own.sum(axis=0), max(float(own.sum()), 1.0))
        for label, total in enumerate(np.maximum(totals[:, group], 1e-6)):
            expected = total * common / common.sum()
            differing = max(float(((own[label] - expected) ** 2).mean()) - noise**2, 0.0)
            trust = differing / (differing + noise**2)
            mixed = to_simplex(trust * own[label] + (1 - trust) * expected, total)
            chances[label, cells] = mixed / total
    return chances


def _numbered(groups: list[np.ndarray]) -> np.ndarray:
    """The group of each cell, numbered through all columns."""
    starts = np.cumsum([0] + [int(g.max()) + 1 for g in groups[:-1]])
    return np.concatenate([g + start for g, start in zip(groups, starts, strict=True)])


def _spread(noise: float) -> float:
    """Noise of a count; never nothing, for a row more or less is no difference to fit."""
    return math.hypot(noise, 1.0)
