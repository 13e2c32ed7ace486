"""Marginals: counts of all columns and of all pairs of columns within each class; limbeck's own method.

A column is cut into fine cells. First the cells of every column alone are counted, within each class.
These noisy counts say which neighbouring cells or rare categories to join into groups, so that a group
holds more rows than the noise can hide. Then all pairs of two columns' groups are counted, in one
matrix product. What follows is free: soft rows (probabilities of groups, for every column) are fitted
to both, and rows drawn from them; within a group, cells come as often as the fine counts say.

Where there are few rows for the columns, noise would hide the pairs' counts: there the columns' correlations
are measured instead, one number for each pair, and of each class a few means that tilt the columns' shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import LimbeckError, choice, fraction, not_negative, positive, unless_auto
from ...features import (
    CellScores,
    ColumnPairs,
    ColumnScores,
    SingleColumns,
    most_cells,
)
from ...privacy import Asked, Histogram, Measurement, OuterSum, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from ..class_counts import COUNTS, class_weights
from ..part import Auto
from .class_shapes import class_chances, most_scores, pooled_scores, pooled_shares, scores_bound
from .factors import common_factors, factor_rows, normal_scores
from .noisy_cells import (
    chances_within,
    cleared_counts,
    count_error,
    filled_cells,
    in_filled_bins,
    numbered,
)
from .pair_counts import PAIRS, SINGLES, PairCounts, all_groups, groups_per_column, pair_groups
from .soft_fit import fit_soft_rows
from .soft_rows import SoftRows
from .triples import EARLY_STEPS, NoisyTriple, asked_triples, measure_triples, read_triples

CLASS_SCORES, CORRELATIONS = "scores of classes", "correlations of columns"
SOFT_ROWS_PER_NOISE = 4.0
"""Number of soft rows, in units of the rows over the noise of a pair's count: as many as noisy pairs can
tell apart."""
TELLING_SOFT_ROWS = 4000
"""Number of soft rows that noisy pairs can tell apart, above which a count errs more by the chance of
who is in the table than by noise."""
FEWEST_CELLS, MOST_CELLS = 16, 256
"""Number of cells of a numeric column, at least and at most, unless a user sets it."""
CELL_ROWS = 10.0
"""Rows of a class that a cell should hold on average, in units of the root of the columns: noise at
epsilon 1 is four to seven such units."""
CROWDED_ROWS = 50.0
"""Rows of a class for each column, below which noise hides most pairs: then pairs get a smaller share,
or their correlations are measured."""
SCORED_ROWS = 60.0
"""Rows of a class, in units of the root of the columns, from which on noise leaves the class's means of scores."""
SINGLE_SHARE, CROWDED_SINGLE_SHARE, CORRELATED_SINGLE_SHARE = 0.3, 0.8, 0.6
"""Share of the budget for single columns: by default, with few rows, and beside correlations."""
SCORED_SINGLE_SHARE, SCORE_SHARE = 0.2, 0.55
"""Shares of the budget for single columns of all classes together, and for what tells classes apart."""
RESTRAINT, UNLABELLED_RESTRAINT = 0.2, 0.02
"""Restraint by default, with a label and without: noise that differs between classes misleads learners."""


@dataclass(frozen=True, kw_only=True)
class Marginals(AbstractMeasureOnce):
    """Noisy counts of all columns and column pairs per class, and soft rows fitted to them.

    Privacy:
        Measures class counts (a row changes one by 1); indicators of each of k columns within the
        row's class (norm at most sqrt k); indicators of each pair of columns' groups, both ways
        round, within the class (norm at most k); or, where rows are few for the columns, products of
        two columns' scores, all together clipped to norm k, instead; with a label, indicators are then those of all
        classes together, and one to a few scores of each column are summed within the row's class, clipped to about
        root 2k; and, if triples are asked for, a choice among all triples of columns, whose utilities a row changes by
        at most 1, and indicators of the chosen ones' cells within the class (norm the root of their number). How cells are grouped, and their scores, are read off the noisy answers before. Add/remove
        of one row, discrete Gaussian noise and permute-and-flip, calibrated jointly. Events: three or four Gaussians; with
        triples one more, and a pure one for the choice.

    >>> from limbeck import Category
    >>> pair = tuple(Category(name=n, values=("a", "b")) for n in "xy")
    >>> [asked.question.name for asked in Marginals().questions(Schema(dataset="d", columns=pair))]
    ['class counts', 'single columns', 'pairs of columns']
    """

    only_counts: ClassVar[bool] = True
    name: ClassVar[str] = "marginals"
    version: ClassVar[int] = 5
    data_kinds: ClassVar[tuple[str, ...]] = ("tables",)
    good_for: ClassVar[str] = (
        "tables of any kind, their default: rows true in columns and pairs of columns"
    )
    papers: ClassVar[tuple[str, ...]] = ()

    free: ClassVar[frozenset[str]] = frozenset({"soft_rows", "steps", "learning_rate", "restraint"})

    count_share: float = 0.01
    """Share of the budget for the class counts."""
    single_share: float | Auto = "auto"
    """Share of the budget for single columns; the rest is for pairs. "auto": 0.3, and 0.8 where there
    are fewer than 50 rows of a class for each column; 0.6 where correlations are measured, with a label 0.2, beside
    0.55 for scores of classes."""
    pairs: str = "auto"
    """What is measured of two columns: "counts" of their groups within each class, or their "correlations" alone,
    over all classes. "auto": correlations where there are fewer than 50 rows of a class for each column; with a
    label only if there are 60 times the root of the columns."""
    grid: int | Auto = "auto"
    """Cells of a number with more values than that. "auto": 256, and fewer where there are few rows for
    the columns and classes."""
    groups: int = 16
    """Groups that the cells of a column are joined into for pairs, at most."""
    triples: int = 0
    """Triples of columns that are counted beside pairs: those that pairs describe worst, by a private choice. Worth
    its share of the budget where three columns depend on each other and no two do."""
    soft_rows: int = 4000
    """Number of soft rows where there is little noise, over all classes; with much, half as many. Free."""
    steps: int = 800
    """Updates of the soft rows. Free."""
    learning_rate: float = 0.1
    restraint: float | Auto = "auto"
    """Price of the information in soft rows, beside squared errors in units of noise: with more, columns
    stay independent unless counts clearly say otherwise. "auto": 0.2 with a label, 0.02 without. Free."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share)
        share = unless_auto(single_share=self.single_share)
        if share is not None:
            fraction(single_share=share)
            fraction(count_share_and_single_share=self.count_share + share)
        grid, restraint = unless_auto(grid=self.grid), unless_auto(restraint=self.restraint)
        positive(**{} if grid is None else {"grid": grid})
        not_negative(**{} if restraint is None else {"restraint": restraint})
        choice(pairs=(self.pairs, ("auto", "counts", "correlations")))
        positive(soft_rows=self.soft_rows, steps=self.steps, learning_rate=self.learning_rate)
        not_negative(triples=self.triples)
        if self.groups < 2:
            raise LimbeckError(f"Expected groups > 1, got {self.groups}.")

    def questions(self, schema: Schema) -> list[Asked]:
        if schema.image:
            raise LimbeckError("marginals is a method for tables; choose another for images.")
        classes, columns = len(schema.classes), len(schema.inputs)
        grid = self._cells(schema)
        cells = sum(most_cells(c, grid) for c in schema.inputs)
        groups, by = (1, "all") if self._scored(schema) else (classes, "label")
        singles = Sum(name=SINGLES, bound=math.sqrt(columns), size=cells, groups=groups, by=by)
        bound = float(columns)
        if self._correlated(schema):
            blocks = ((columns, columns),)
            pairs = OuterSum(name=CORRELATIONS, bound=bound, blocks=blocks, labelled=True)
        else:
            groups = all_groups(schema, grid, groups_per_column(schema, grid, self.groups))
            pairs = OuterSum(name=PAIRS, bound=bound, blocks=((groups, groups),), groups=classes)
        share, scores = self._single_share(schema), self._asked_scores(schema)
        triples = asked_triples(schema, grid, self._picks(schema))
        rest = 1 - self.count_share - share - sum(one.share for one in (*scores, *triples))
        fraction(count_share_and_single_share=1 - rest)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=self.count_share),
            Asked(question=singles, share=share),
            *scores,
            Asked(question=pairs, share=rest),
            *triples,
        ]

    def _asked_scores(self, schema: Schema) -> list[Asked]:
        if not self._scored(schema):
            return []
        grid, classes = self._cells(schema), len(schema.classes)
        size = sum(most_scores(column, grid) for column in schema.inputs)
        bound = scores_bound(SingleColumns(schema, grid=grid).cells)
        question = Sum(name=CLASS_SCORES, bound=bound, size=size, groups=classes)
        return [Asked(question=question, share=SCORE_SHARE)]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        counts = private.ask(COUNTS)
        rows = in_filled_bins(private.schema, counts)
        singles = private.ask(SINGLES, self.map_spec("single_columns", seed))
        if self._correlated(private.schema):
            measured = {COUNTS: rows, SINGLES: singles}
            if self._scored(private.schema):
                spec = self.map_spec("class_scores", seed)
                measured[CLASS_SCORES] = private.ask(
                    CLASS_SCORES, spec, {"singles": singles.values}
                )
            chances = self._chances(private.schema, measured)
            spec, state = self.map_spec("column_scores", seed), {"chances": chances}
            correlations = private.ask(CORRELATIONS, spec, state)
            return measured | {COUNTS: counts, CORRELATIONS: correlations}
        noise = private.noise_of(PAIRS)
        groups = self._groups(private.schema, rows.values, singles, noise)
        pairs = private.ask(PAIRS, self.map_spec("column_pairs", seed), {"groups": groups})
        matrices = pairs.values.reshape(len(counts.values), *ColumnPairs.shape_of(groups))
        measured = {COUNTS: counts, SINGLES: singles, PAIRS: pairs._replace(values=matrices)}
        known = measured | {COUNTS: rows}
        return measured | self._measured_triples(private, known, seed, progress)

    def _measured_triples(
        self, private: Private, measured: dict[str, Measurement], seed: int, progress: Progress
    ) -> dict[str, Measurement]:
        schema, picks = private.schema, self._picks(private.schema)
        if not picks:
            return {}
        counts = self._read_counts(schema, measured)
        soft = self._fitted(schema, measured, counts, EARLY_STEPS, seed, progress)
        known = (counts.groups, counts.triple_groups, soft, counts.marginals.rows)
        return measure_triples(private, self._cells(schema), picks, *known)

    def single_columns(self, schema: Schema, seed: int) -> SingleColumns:
        """The map of a row to indicators of its cell in every column."""
        return SingleColumns(schema, grid=self._cells(schema))

    def column_pairs(self, schema: Schema, seed: int, groups: list[np.ndarray]) -> ColumnPairs:
        """The map of a row to indicators of its group in every column, times themselves."""
        return ColumnPairs(self.single_columns(schema, seed), groups)

    def class_scores(self, schema: Schema, seed: int, singles: np.ndarray) -> CellScores:
        """The map of a row to a few scores of every column, by what is known of the columns over all classes."""
        columns = self.single_columns(schema, seed)
        scores = pooled_scores(columns.cells, pooled_shares(columns.cells, singles))
        return CellScores(columns, scores, scores_bound(columns.cells))

    def column_scores(self, schema: Schema, seed: int, chances: np.ndarray) -> ColumnScores:
        """The map of a row to its scores in every column, times themselves."""
        singles = self.single_columns(schema, seed)
        return ColumnScores(singles, normal_scores(singles.cells, chances))

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        counts = in_filled_bins(schema, measured[COUNTS])
        _, size = class_weights(counts.values)
        fitted = self._by_correlations if self._correlated(schema) else self._by_pairs
        return Product(
            source=fitted(schema, {**measured, COUNTS: counts}, seed, progress),
            rows=schema.rows or max(1, round(size)),
            measurements=values_of(measured),
        )

    def _by_correlations(
        self, schema: Schema, measured: Mapping[str, Measurement], seed: int, progress: Progress
    ) -> SoftRows:
        """Soft rows from factors that columns have in common; every cell is a group."""
        counts, products = measured[COUNTS].values, measured[CORRELATIONS]
        cells = self.single_columns(schema, seed).cells
        chances = self._chances(schema, measured)
        loadings = common_factors(products.values.reshape(len(cells), -1), products.noise)
        soft = factor_rows(cells, chances, loadings, soft_rows=self.soft_rows, seed=seed)
        return SoftRows(
            soft=soft,
            groups=np.arange(chances.shape[1]),
            within=np.ones_like(chances),
            class_weights=class_weights(counts)[0],
            grid=self._cells(schema),
        )

    def _by_pairs(
        self, schema: Schema, measured: Mapping[str, Measurement], seed: int, progress: Progress
    ) -> SoftRows:
        """Soft rows fitted to the counts of pairs, and of triples where there are some."""
        counts = self._read_counts(schema, measured)
        triples = read_triples(schema, measured, counts.groups, counts.triple_groups)
        soft = self._fitted(schema, measured, counts, self.steps, seed, progress, triples)
        return SoftRows(
            soft=soft,
            groups=numbered(counts.groups),
            within=chances_within(
                numbered(counts.groups),
                counts.cleared,
                counts.marginals.best_singles()[0],
                count_error(measured[SINGLES].noise),
                counts.filled,
            ),
            class_weights=class_weights(measured[COUNTS].values)[0],
            grid=self._cells(schema),
        )

    def _read_counts(self, schema: Schema, measured: Mapping[str, Measurement]) -> PairCounts:
        """What the noisy counts of columns and pairs say."""
        columns = self.single_columns(schema, 0).cells
        groups = self._groups(
            schema, measured[COUNTS].values, measured[SINGLES], measured[PAIRS].noise
        )
        cleared = self._cleared(schema, measured[SINGLES])
        return PairCounts.of_answers(schema, columns, groups, cleared, measured)

    def _fitted(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        counts: PairCounts,
        steps: int,
        seed: int,
        progress: Progress,
        triples: tuple[NoisyTriple, ...] = (),
    ) -> np.ndarray:
        """Chances of groups, (classes, soft rows, groups)."""
        # As many soft rows as the measured pairs can tell apart.
        size = class_weights(measured[COUNTS].values)[1]
        telling = SOFT_ROWS_PER_NOISE * size / count_error(measured[PAIRS].noise)
        soft = fit_soft_rows(
            counts.marginals,
            soft_rows=round(float(np.clip(telling, (self.soft_rows + 1) // 2, self.soft_rows))),
            steps=steps,
            learning_rate=self.learning_rate,
            # Below the rows' own chance, noise is no measure of errors: counts are not truer than that.
            restraint=self._restraint(schema) * max(1.0, telling / TELLING_SOFT_ROWS),
            seed=seed,
            progress=lambda done: progress("soft rows", done),
            triples=triples,
        )
        return counts.of_met_groups(soft)

    # ---- from the schema alone: what noise will leave of the counts -------------------------------

    def _single_share(self, schema: Schema) -> float:
        share = unless_auto(single_share=self.single_share)
        if share is not None:
            return share
        if self._scored(schema):
            return SCORED_SINGLE_SHARE
        if self._correlated(schema):
            return CORRELATED_SINGLE_SHARE
        return CROWDED_SINGLE_SHARE if _crowded(schema) else SINGLE_SHARE

    def _correlated(self, schema: Schema) -> bool:
        """Whether correlations are measured instead of pairs' counts."""
        if self.pairs != "auto":
            return self.pairs == "correlations"
        enough = _rows_per_class(schema) >= SCORED_ROWS * math.sqrt(len(schema.inputs))
        return _crowded(schema) and (schema.label is None or enough)

    def _scored(self, schema: Schema) -> bool:
        """Whether classes are told apart by their means of scores."""
        return self._correlated(schema) and schema.label is not None

    def _picks(self, schema: Schema) -> int:
        """Number of triples to choose: none beside correlations."""
        return 0 if self._correlated(schema) else self.triples

    def _restraint(self, schema: Schema) -> float:
        restraint = unless_auto(restraint=self.restraint)
        if restraint is not None:
            return restraint
        return RESTRAINT if schema.label else UNLABELLED_RESTRAINT

    def _cells(self, schema: Schema) -> int:
        """Cells of a number: so few that each holds more rows than the noise hides."""
        grid = unless_auto(grid=self.grid)
        if grid is not None:
            return int(grid)
        wanted = _rows_per_class(schema) / (CELL_ROWS * math.sqrt(len(schema.inputs)))
        return int(min(MOST_CELLS, max(FEWEST_CELLS, wanted)))

    def _groups(
        self, schema: Schema, counts: np.ndarray, singles: Measurement, noise: float
    ) -> list[np.ndarray]:
        """For each column the group of each cell, by the noise that pair counts will have."""
        cleared = self._cleared(schema, singles)
        return pair_groups(schema, self._cells(schema), self.groups, counts, cleared, noise)

    def _chances(self, schema: Schema, measured: Mapping[str, Measurement]) -> np.ndarray:
        """Probability of each cell of a column, (classes, cells), from noisy answers alone."""
        columns = SingleColumns(schema, grid=self._cells(schema)).cells
        counts, singles = measured[COUNTS].values, measured[SINGLES]
        weights, size = class_weights(counts)
        rows = np.maximum(weights * size, 1.0)
        if self._scored(schema):
            return class_chances(columns, singles.values, measured[CLASS_SCORES], rows)
        column_of = np.repeat(np.arange(len(columns)), [c.count for c in columns])
        totals = np.repeat(rows[:, None], len(columns), axis=1)
        cleared, error = self._cleared(schema, singles), count_error(singles.noise)
        filled = filled_cells(schema, columns, cleared)
        return chances_within(column_of, cleared, totals, error, filled)

    def _cleared(self, schema: Schema, singles: Measurement) -> np.ndarray:
        """Noisy counts of cells, with nothing where no rows seem to be."""
        columns = SingleColumns(schema, grid=self._cells(schema)).cells
        return cleared_counts(schema, columns, singles.values, count_error(singles.noise))


def _rows_per_class(schema: Schema) -> float:
    """Declared rows for each class; infinitely many where none are declared."""
    return math.inf if schema.units is None else schema.units / len(schema.classes)


def _crowded(schema: Schema) -> bool:
    return _rows_per_class(schema) < CROWDED_ROWS * len(schema.inputs)
