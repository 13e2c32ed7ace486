"""Graphical models of tables: cliques of columns are chosen privately one by one, and counted.

AIM, MST and PrivBayes are this algorithm with other rules of what may be chosen and another model. First all
columns are counted alone. Then, round after round: a model of what is known so far says which counts it expects in
the cells of every clique of columns; a clique whose real counts differ much from these is chosen privately
(`limbeck.privacy.Choice`), and its cells are counted with noise. What the model makes of the counts is free.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import LimbeckError, fraction, positive
from ...features import SingleColumns, most_cells
from ...features.cliques import CliqueCells, ColumnGroups, OneClique, cell_strides
from ...privacy import Asked, Choice, Histogram, Measurement, Private, Sum
from ...schema import Schema
from ..base import AbstractMeasureOnce, Product, Progress, values_of
from .conditional_tables import ConditionalTable
from .fit_model import NoisyTable
from .junction_tree import Clique
from .table_rows import TableRows
from .variables import Variables, cliques_within, expected_counts, group_limits

CLASSES, SINGLES = "class counts", "single columns"
MOST_TRIPLES = 4000
"""Number of cliques of three variables, above which only pairs may be chosen."""
NEVER = 1e12
"""What is taken off the utility of a clique that may not be chosen: more than any number of rows."""
MOST_CANDIDATE_CELLS = 1 << 24
"""Number of cells of all cliques that may be chosen, for memory's sake."""


@dataclass(frozen=True)
class Knowledge:
    """What is known in a round: variables, cliques, which of them were counted, and with what result."""

    variables: Variables
    cliques: Sequence[Clique]
    counted: tuple[NoisyTable, ...] = ()

    @property
    def known(self) -> tuple[Clique, ...]:
        return tuple(table.clique for table in self.counted)

    @property
    def cells(self) -> np.ndarray:
        """How many cells each clique has, (cliques,)."""
        sizes = self.variables.sizes
        return np.asarray([math.prod(sizes[v] for v in clique) for clique in self.cliques])


@dataclass(frozen=True, kw_only=True)
class AbstractGraphical(AbstractMeasureOnce):
    """A method that chooses cliques of columns; those that derive from it say which may be chosen."""

    data_kinds: ClassVar[tuple[str, ...]] = ("tables",)
    family: ClassVar[str] = "graphical models"

    count_share: float = 0.01
    """Share of the budget for the class counts."""
    single_share: float = 0.15
    """Share of the budget for single columns."""
    choice_share: float = 0.1
    """Share of the budget for choosing cliques; the rest is for counting them."""
    grid: int = 64
    """Cells of a number with more values than that."""
    groups: int = 16
    """Groups that the cells of a column are joined into, at most."""
    clique_cells: int = 5000
    """Cells of a clique, at most."""

    def __post_init__(self) -> None:
        fraction(count_share=self.count_share, single_share=self.single_share)
        fraction(choice_share=self.choice_share, all_shares=self._measured_before)
        positive(grid=self.grid, clique_cells=self.clique_cells)
        if self.groups < 2:
            raise LimbeckError(f"Expected groups > 1, got {self.groups}.")

    @property
    def _measured_before(self) -> float:
        return self.count_share + self.single_share + self.choice_share

    # ---- what differs between methods ---------------------------------------------------------------

    @abc.abstractmethod
    def degrees(self, schema: Schema) -> tuple[int, ...]:
        """Numbers of variables that a clique may have."""

    @abc.abstractmethod
    def rounds_of(self, schema: Schema) -> int:
        """Number of cliques that are chosen: from public knowledge alone."""

    @abc.abstractmethod
    def allowed(self, knowledge: Knowledge, schema: Schema, noise: float) -> np.ndarray:
        """Which cliques may be chosen now, (cliques,); where none is, all are.

        Args:
            knowledge: What is known.
            schema: The settled schema.
            noise: Standard deviation of the noise that each cell of the chosen one will have.
        """

    @abc.abstractmethod
    def tables_of(
        self, knowledge: Knowledge, seed: int, *, last: bool, progress: Progress
    ) -> list[ConditionalTable]:
        """The model by what is known, as tables that draw every variable, the class first.

        Args:
            knowledge: What is known.
            seed: Public.
            last: Whether rows will be released from it, so that it is worth its time.
            progress: Called with a phase and a fraction done.
        """

    def weights(self, cliques: Sequence[Clique]) -> np.ndarray:
        """What a row of difference counts for in each clique, in [0, 1]."""
        return np.ones(len(cliques))

    def cell_price(self, noise: float) -> float:
        """What each cell of a clique takes off its utility, in rows.

        Args:
            noise: Standard deviation of the noise that its count will have.
        """
        return 0.0

    # ---- questions ----------------------------------------------------------------------------------

    def questions(self, schema: Schema) -> list[Asked]:
        if schema.image:
            raise LimbeckError(f"{self.name} is a method for tables; choose another for images.")
        limits, rounds = self._limits(schema), self.rounds_of(schema)
        cliques = self._cliques(schema)
        if not cliques or rounds < 1:
            raise LimbeckError(
                f"{self.name} chooses among pairs of columns, of which '{schema.dataset}' has none with at "
                f"most clique_cells = {self.clique_cells} cells."
            )
        columns = schema.inputs
        cells = sum(most_cells(c, self.grid) for c in columns)
        single = Sum(name=SINGLES, bound=math.sqrt(len(columns)), size=cells, groups=1, by="all")
        count = _cells(cliques, limits)
        each = (1 - self._measured_before) / rounds
        asked = [
            Asked(question=Histogram.of_classes(CLASSES, schema), share=self.count_share),
            Asked(question=single, share=self.single_share),
        ]
        for number in range(rounds):
            choice = Choice(name=_choice(number), candidates=len(cliques), cells=count)
            counts = Histogram(name=_counts(number), bins=self.clique_cells)
            asked.append(Asked(question=choice, share=self.choice_share / rounds))
            asked.append(Asked(question=counts, share=each))
        return asked

    def _limits(self, schema: Schema) -> tuple[int, ...]:
        return group_limits(schema, self.grid, self.groups)

    def _cliques(self, schema: Schema) -> list[Clique]:
        """What may be chosen: from the schema alone."""
        limits = self._limits(schema)
        cliques = cliques_within(limits, self.degrees(schema), self.clique_cells)
        if _cells(cliques, limits) > MOST_CANDIDATE_CELLS:
            raise LimbeckError(
                f"{len(schema.inputs)} columns have too many cliques for {self.name}. Use fewer groups "
                f"than {self.groups}, or marginals."
            )
        return cliques

    # ---- asking them --------------------------------------------------------------------------------

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        schema = private.schema
        answers = {
            CLASSES: private.ask(CLASSES),
            SINGLES: private.ask(SINGLES, self.map_spec("single_columns", seed)),
        }
        knowledge = self._begun(schema, answers)
        groups = {"groups": list(knowledge.variables.groups)}
        rounds = self.rounds_of(schema)
        for number in range(rounds):
            progress("model", number / rounds)
            tables = self.tables_of(knowledge, seed, last=False, progress=_quietly)
            state = groups | self._utilities(
                knowledge, tables, schema, private.noise_of(_counts(number)), seed
            )
            spec = self.map_spec("clique_cells_map", seed)
            answers[_choice(number)] = private.ask(_choice(number), spec, state)
            clique = knowledge.cliques[int(answers[_choice(number)].values[0])]
            state = groups | {"clique": np.asarray(clique)}
            answers[_counts(number)] = private.ask(
                _counts(number), self.map_spec("one_clique_map", seed), state
            )
            knowledge = _counted(knowledge, clique, answers[_counts(number)])
        return answers

    def _utilities(
        self,
        knowledge: Knowledge,
        tables: Sequence[ConditionalTable],
        schema: Schema,
        noise: float,
        seed: int,
    ) -> dict[str, np.ndarray]:
        """What is expected of every clique, its weight, and what is taken off: public."""
        variables, cliques = knowledge.variables, knowledge.cliques
        sizes, weights = variables.sizes, self.weights(cliques)
        expected = expected_counts(tables, cliques, sizes, variables.rows, seed)
        allowed = self.allowed(knowledge, schema, noise)
        price = weights * knowledge.cells * self.cell_price(noise)
        never = np.where(allowed | ~allowed.any(), 0.0, NEVER)
        return {"expected": expected, "weights": weights, "penalties": price + never}

    def single_columns(self, schema: Schema, seed: int) -> SingleColumns:
        """The map of a row to indicators of its cell in every column."""
        return SingleColumns(schema, grid=self.grid)

    def clique_cells_map(
        self, schema: Schema, seed: int, groups: list[np.ndarray], **utilities: np.ndarray
    ) -> CliqueCells:
        """The map of a row to its cell in every clique."""
        sizes = (*(int(g.max()) + 1 for g in groups), len(schema.classes))
        strides, members, cells = cell_strides(sizes, self._cliques(schema))
        columns = ColumnGroups(self.single_columns(schema, seed), groups)
        return CliqueCells(
            columns=columns, strides=strides, members=members, sizes=cells, **utilities
        )

    def one_clique_map(
        self, schema: Schema, seed: int, groups: list[np.ndarray], clique: np.ndarray
    ) -> OneClique:
        """The map of a row to its cell in one clique."""
        sizes = (*(int(g.max()) + 1 for g in groups), len(schema.classes))
        strides, _, (cells,) = cell_strides(sizes, [tuple(map(int, clique))])
        columns = ColumnGroups(self.single_columns(schema, seed), groups)
        return OneClique(columns=columns, strides=strides[:, 0], bins=cells)

    # ---- what is made of the answers ----------------------------------------------------------------

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        knowledge = self._begun(schema, measured)
        for number in range(self.rounds_of(schema)):
            clique = knowledge.cliques[int(measured[_choice(number)].values[0])]
            knowledge = _counted(knowledge, clique, measured[_counts(number)])
        tables = self.tables_of(knowledge, seed, last=True, progress=progress)
        variables = knowledge.variables
        return Product(
            source=TableRows(
                tables=tuple(t for t in tables if t.new != (len(variables.columns),)),
                class_weights=variables.classes / variables.rows,
                grid=self.grid,
                **variables.arrays(),
            ),
            rows=schema.rows or max(1, round(variables.rows)),
            measurements=values_of(measured),
        )

    def _begun(self, schema: Schema, answers: Mapping[str, Measurement]) -> Knowledge:
        singles, classes = answers[SINGLES], answers[CLASSES]
        counts = np.ravel(singles.values), classes.values
        variables = Variables.of_counts(schema, self.grid, self.groups, *counts, singles.noise)
        return Knowledge(variables, self._cliques(schema))


def _cells(cliques: Sequence[Clique], sizes: Sequence[int]) -> int:
    return sum(math.prod(sizes[v] for v in clique) for clique in cliques)


def _counted(knowledge: Knowledge, clique: Clique, answer: Measurement) -> Knowledge:
    sizes = [knowledge.variables.sizes[v] for v in clique]
    table = NoisyTable(clique, answer.values.reshape(sizes), answer.noise)
    return Knowledge(knowledge.variables, knowledge.cliques, (*knowledge.counted, table))


def _choice(number: int) -> str:
    return f"choice {number + 1}"


def _counts(number: int) -> str:
    return f"counts {number + 1}"


def _quietly(phase: str, done: float) -> None:
    """No progress: a round's model is a part of a step."""
