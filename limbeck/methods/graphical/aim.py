"""AIM: cliques are chosen by how badly the model so far describes them (McKenna et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import positive
from ...schema import Schema
from ..base import Progress
from .conditional_tables import ConditionalTable
from .fit_model import fit_model
from .graphical import MOST_TRIPLES, AbstractGraphical, Knowledge
from .junction_tree import Clique, tree_cells


@dataclass(frozen=True, kw_only=True)
class AIM(AbstractGraphical):
    """AIM with a planned number of rounds: a graphical model of the pairs and triples it describes worst.

    The published algorithm anneals its noise while it runs, until the budget is spent. Here the number of
    rounds and their noise are planned, so that the charges are known before a row is read.

    Privacy:
        Measures class counts (a row changes one by 1), indicators of all columns' cells (norm at most the
        root of their number), and in each round a choice among cliques, whose utilities a row changes by
        at most 1, and the counts of the chosen one's cells (one changes by 1). Add/remove of one row;
        discrete Gaussian noise and permute-and-flip, calibrated jointly.
    """

    name: ClassVar[str] = "aim"
    good_for: ClassVar[str] = "tables of some ten to forty columns, where triples of columns matter"
    papers: ClassVar[tuple[str, ...]] = (
        "R. McKenna, B. Mullins, D. Sheldon, G. Miklau. AIM: An Adaptive and Iterative Mechanism for "
        "Differentially Private Synthetic Data. VLDB 2022.",
    )
    free: ClassVar[frozenset[str]] = frozenset({"last_steps"})

    rounds: int = 24
    """Number of cliques that are chosen."""
    model_cells: int = 100_000
    """Cells of the model, at most: time and memory grow with them."""
    round_steps: int = 40
    """Updates of the model after each round."""
    last_steps: int = 400
    """Updates of the model that rows are drawn from. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(rounds=self.rounds, model_cells=self.model_cells)
        positive(round_steps=self.round_steps, last_steps=self.last_steps)

    def degrees(self, schema: Schema) -> tuple[int, ...]:
        variables = len(schema.inputs) + 1
        return (2, 3) if math.comb(variables, 3) <= MOST_TRIPLES else (2,)

    def rounds_of(self, schema: Schema) -> int:
        return self.rounds

    def weights(self, cliques: Sequence[Clique]) -> np.ndarray:
        """How many variables a clique shares with all cliques, in units of the largest such number."""
        members = np.zeros((len(cliques), max(max(c) for c in cliques) + 1))
        for number, clique in enumerate(cliques):
            members[number, list(clique)] = 1
        shared = members @ members.sum(axis=0)
        return shared / shared.max()

    def cell_price(self, noise: float) -> float:
        return math.sqrt(2 / math.pi) * noise  # the mean size of a cell's noise

    def allowed(self, knowledge: Knowledge, schema: Schema, noise: float) -> np.ndarray:
        """Cliques with which the model stays small enough; it may grow from round to round."""
        sizes, known = knowledge.variables.sizes, knowledge.known
        cells = np.asarray([tree_cells(sizes, [*known, clique]) for clique in knowledge.cliques])
        limit = self.model_cells * (len(known) + 1) / self.rounds
        return cells <= max(limit, cells.min())

    def tables_of(
        self, knowledge: Knowledge, seed: int, *, last: bool, progress: Progress
    ) -> list[ConditionalTable]:
        variables = knowledge.variables
        model = fit_model(
            variables.sizes,
            [*variables.singles(), *knowledge.counted],
            variables.rows,
            steps=self.last_steps if last else self.round_steps,
            progress=lambda done: progress("graphical model", done),
        )
        return model.tables()
