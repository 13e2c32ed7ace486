"""MST: the pairs of columns that make up a spanning tree (McKenna, Miklau and Sheldon 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import positive
from ...schema import Schema
from ..base import Progress
from .conditional_tables import ConditionalTable
from .fit_model import fit_model
from .graphical import AbstractGraphical, Knowledge


@dataclass(frozen=True, kw_only=True)
class MST(AbstractGraphical):
    """MST: a graphical model that is a tree, of the pairs of columns that depend on each other most.

    Privacy:
        Measures class counts (a row changes one by 1), indicators of all columns' cells (norm at most the
        root of their number), and for each branch of the tree a choice among pairs of columns, whose
        utilities a row changes by at most 1, and the counts of the chosen pair's cells (one changes by 1).
        Add/remove of one row; discrete Gaussian noise and permute-and-flip, calibrated jointly.
    """

    name: ClassVar[str] = "mst"
    good_for: ClassVar[str] = "tables of many columns in which each depends on one other"
    papers: ClassVar[tuple[str, ...]] = (
        "R. McKenna, G. Miklau, D. Sheldon. Winning the NIST Contest: A Scalable and General Approach to "
        "Differentially Private Synthetic Data. Journal of Privacy and Confidentiality, 2021.",
    )
    free: ClassVar[frozenset[str]] = frozenset({"last_steps"})

    single_share: float = 0.3
    choice_share: float = 0.3
    last_steps: int = 200
    """Updates of the model. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(last_steps=self.last_steps)

    def degrees(self, schema: Schema) -> tuple[int, ...]:
        return (2,)

    def rounds_of(self, schema: Schema) -> int:
        """One less than there are variables to connect."""
        return sum(size > 1 for size in self._limits(schema)) - 1

    def allowed(self, knowledge: Knowledge, schema: Schema, noise: float) -> np.ndarray:
        """Pairs of which the tree so far connects no two."""
        part = list(range(len(knowledge.variables.sizes)))
        for one, other in knowledge.known:
            part = [part[one] if p == part[other] else p for p in part]
        return np.asarray([part[one] != part[other] for one, other in knowledge.cliques])

    def tables_of(
        self, knowledge: Knowledge, seed: int, *, last: bool, progress: Progress
    ) -> list[ConditionalTable]:
        """Pairs are compared with what is expected of independent columns, in every round."""
        variables = knowledge.variables
        if not last:
            return variables.independent()
        model = fit_model(
            variables.sizes,
            [*variables.singles(), *knowledge.counted],
            variables.rows,
            steps=self.last_steps,
            progress=lambda done: progress("graphical model", done),
        )
        return model.tables()
