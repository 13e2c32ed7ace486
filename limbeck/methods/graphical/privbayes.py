"""PrivBayes: a Bayesian network of columns, each given a few others (Zhang et al. 2014, 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import positive, unless_auto
from ...schema import Schema
from ..base import Progress
from ..marginals.soft_fit import to_simplex
from ..part import Auto
from .conditional_tables import ConditionalTable
from .fit_model import NoisyTable
from .graphical import MOST_TRIPLES, AbstractGraphical, Knowledge
from .junction_tree import axes_without, onto
from .variables import Variables


@dataclass(frozen=True, kw_only=True)
class PrivBayes(AbstractGraphical):
    """PrivBayes: a Bayesian network; every column is drawn given a few that were drawn before.

    The next column and its parents are chosen by how far their real counts are from those that are expected
    if the column depends on none of them: by a sum of absolute differences, which a row changes by one,
    where mutual information could change by more. The published algorithm fixes the whole network before
    anything is counted; here each column's table is counted as soon as it is chosen.

    Privacy:
        Measures class counts (a row changes one by 1), indicators of all columns' cells (norm at most the
        root of their number), and for each column a choice of it and its parents, whose utilities a row
        changes by at most 1, and the counts of their cells (one changes by 1). Add/remove of one row;
        discrete Gaussian noise and permute-and-flip, calibrated jointly.
    """

    name: ClassVar[str] = "privbayes"
    good_for: ClassVar[str] = "tables of few columns; a well-known yardstick"
    papers: ClassVar[tuple[str, ...]] = (
        "J. Zhang, G. Cormode, C. M. Procopiuc, D. Srivastava, X. Xiao. PrivBayes: Private Data Release via "
        "Bayesian Networks. ACM Transactions on Database Systems, 2017.",
    )
    free: ClassVar[frozenset[str]] = frozenset({"trust"})

    single_share: float = 0.15
    choice_share: float = 0.3
    parents: int | Auto = "auto"
    """Columns that a column is drawn given, at most. "auto": 2, and 1 with more than some thirty columns."""
    usefulness: float = 4.0
    """Rows that a cell of a column with its parents should hold, on average, in units of the standard deviation of a
    count's noise: more means fewer parents, of fewer values."""
    trust: float = 1.0
    """Rows that are mixed into every table as if the column depended on no other, in units of the standard deviation
    of a count's noise. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        parents = unless_auto(parents=self.parents)
        positive(usefulness=self.usefulness, trust=self.trust)
        positive(**{} if parents is None else {"parents": parents})

    def degrees(self, schema: Schema) -> tuple[int, ...]:
        return tuple(range(2, self._parents(schema) + 2))

    def _parents(self, schema: Schema) -> int:
        parents = unless_auto(parents=self.parents)
        if parents is not None:
            return int(parents)
        variables = len(schema.inputs) + 1
        return 2 if math.comb(variables, 3) <= MOST_TRIPLES else 1

    def rounds_of(self, schema: Schema) -> int:
        """One less than there are variables; the class, or the first column without one, has no parents."""
        return sum(size > 1 for size in self._limits(schema)) - 1

    def allowed(self, knowledge: Knowledge, schema: Schema, noise: float) -> np.ndarray:
        """Cliques of one new variable with others that were drawn before, of cells that noise leaves telling; where
        none has so few, those that have fewest."""
        before = _drawn_before(knowledge)
        new = np.asarray([len(set(clique) - before) == 1 for clique in knowledge.cliques])
        wanted = self.usefulness * noise * knowledge.cells
        telling = new & (wanted <= knowledge.variables.rows)
        if telling.any() or not new.any():
            return telling
        return new & (knowledge.cells == knowledge.cells[new].min())

    def tables_of(
        self, knowledge: Knowledge, seed: int, *, last: bool, progress: Progress
    ) -> list[ConditionalTable]:
        """Columns that are not connected yet are drawn alone."""
        variables = knowledge.variables
        alone = {t.new: t for t in variables.independent()}
        before = [_root(knowledge)]
        tables = [alone[(_root(knowledge),)]]
        for table in knowledge.counted:
            new = [v for v in table.clique if v not in before]
            if len(new) == 1:
                tables.append(_given_parents(table, new[0], variables, self.trust))
                before += new
        others = [table for (v,), table in alone.items() if v not in before]
        return _class_first([*tables, *others], len(variables.sizes) - 1)


def _root(knowledge: Knowledge) -> int:
    """The class; without one, the first column that is no constant."""
    sizes = knowledge.variables.sizes
    return len(sizes) - 1 if sizes[-1] > 1 else next(v for v, size in enumerate(sizes) if size > 1)


def _drawn_before(knowledge: Knowledge) -> set[int]:
    return {_root(knowledge)}.union(*knowledge.known)


def _given_parents(
    table: NoisyTable, new: int, variables: Variables, trust: float
) -> ConditionalTable:
    """Chances of a variable given its parents, drawn to those that it has alone where rows are few."""
    clique = table.clique
    alone = variables.singles()[new].counts
    even = onto(alone / alone.sum(), (new,), clique)
    # Cells set to zero one by one would leave noise that adds rows to empty cells; so as many rows as there are stay.
    counts = to_simplex(table.counts.ravel(), variables.rows).reshape(table.counts.shape)
    mixed = counts + trust * table.noise * even * counts.shape[clique.index(new)] ** 0.5
    assert axes_without((new,), clique)
    return ConditionalTable.of_marginal(mixed, clique, tuple(v for v in clique if v != new))


def _class_first(tables: list[ConditionalTable], label: int) -> list[ConditionalTable]:
    """The table of the class before all others, which may need it."""
    return sorted(tables, key=lambda table: table.new != (label,))
