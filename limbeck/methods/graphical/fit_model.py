"""A table as a graphical model: the one of largest entropy among those whose marginals fit noisy counts best.

Fitted by mirror descent (McKenna, Sheldon and Miklau 2019) on a junction tree: post-processing of noisy counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from .conditional_tables import ConditionalTable
from .junction_tree import Clique, JunctionTree, axes_without, junction_tree, onto

HALVINGS = 25
"""Number of times that a step is halved in search of one that helps, at most."""


@dataclass(frozen=True)
class NoisyTable:
    """Noisy counts of a clique's cells, shaped like it, and the standard deviation of their noise."""

    clique: Clique
    counts: np.ndarray
    noise: float


@dataclass(frozen=True)
class GraphicalModel:
    """Expected counts of the cells of every clique of a junction tree."""

    tree: JunctionTree
    potentials: tuple[np.ndarray, ...]
    """Logarithms, one array for each clique, whose sum gives the model up to its total."""
    marginals: tuple[np.ndarray, ...]

    def tables(self) -> list[ConditionalTable]:
        """How to draw rows: the last variable first, then clique after clique."""
        first = len(self.tree.sizes) - 1
        root = self.tree.cliques[0]
        alone = self.marginals[0].sum(axis=axes_without((first,), root))
        givens = [(first,), *self.tree.separators[1:]]
        tables = [
            ConditionalTable.of_marginal(marginal, clique, given)
            for marginal, clique, given in zip(
                self.marginals, self.tree.cliques, givens, strict=True
            )
        ]
        return [ConditionalTable((), (first,), alone), *(t for t in tables if t.new)]


def fit_model(
    sizes: Sequence[int],
    measured: Sequence[NoisyTable],
    total: float,
    *,
    steps: int,
    start: GraphicalModel | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> GraphicalModel:
    """The model whose marginals come nearest to noisy counts, in units of their noise.

    Args:
        sizes: Number of values of each variable.
        measured: Noisy counts; cliques may overlap and repeat.
        total: Number of rows.
        steps: Number of updates.
        start: A model to begin with, whose cliques lie within those measured.
        progress: Called with the fraction done.
    """
    tree = junction_tree(sizes, [table.clique for table in measured], root=len(sizes) - 1)
    terms = _terms(tree, measured)
    potentials = _potentials(tree, start)
    marginals = _marginals(tree, potentials, total)
    loss, slope = _loss(tree, terms, marginals)
    pace = 1.0 / max(float(np.abs(s).max()) for s in slope) if steps else 0.0
    for step in range(steps):
        pace *= 2.0
        for _ in range(HALVINGS):
            tried = [p - pace * s for p, s in zip(potentials, slope, strict=True)]
            expected = _marginals(tree, tried, total)
            now, further = _loss(tree, terms, expected)
            fall = sum(
                float((s * (old - new)).sum())
                for s, old, new in zip(slope, marginals, expected, strict=True)
            )
            if loss - now >= 0.5 * fall:
                break
            pace *= 0.5
        else:
            break  # no step helps any more
        potentials, marginals, loss, slope = tried, expected, now, further
        progress((step + 1) / steps)
    return GraphicalModel(tree, tuple(potentials), tuple(marginals))


def _terms(tree: JunctionTree, measured: Sequence[NoisyTable]) -> Mapping[int, list[NoisyTable]]:
    """Measured counts by the number of the tree's clique that they are compared with; those of one clique
    as one, weighted by their precision."""
    pooled: dict[Clique, tuple[np.ndarray, float]] = {}
    for table in measured:
        counts, precision = pooled.get(table.clique, (np.zeros_like(table.counts), 0.0))
        weight = 1.0 / max(table.noise, 1.0) ** 2  # counts are not truer than a row
        pooled[table.clique] = counts + weight * table.counts, precision + weight
    terms: dict[int, list[NoisyTable]] = {}
    for clique, (counts, precision) in pooled.items():
        table = NoisyTable(clique, counts / precision, precision**-0.5)
        terms.setdefault(tree.home(clique), []).append(table)
    return terms


def _potentials(tree: JunctionTree, start: GraphicalModel | None) -> list[np.ndarray]:
    """Those of a model, moved to a tree whose cliques hold its own; or zeros."""
    potentials = [np.zeros([tree.sizes[v] for v in clique]) for clique in tree.cliques]
    if start is not None:
        for clique, array in zip(start.tree.cliques, start.potentials, strict=True):
            home = tree.home(clique)
            potentials[home] = potentials[home] + onto(array, clique, tree.cliques[home])
    return potentials


def _marginals(
    tree: JunctionTree, potentials: Sequence[np.ndarray], total: float
) -> list[np.ndarray]:
    """Expected counts of all cliques' cells, by messages up the tree and down again."""
    beliefs = [np.array(p) for p in potentials]
    separators, sent = tree.separators, {}
    for child in range(len(beliefs) - 1, 0, -1):
        parent = tree.parents[child]
        sent[child] = _summed(beliefs[child], tree.cliques[child], separators[child])
        beliefs[parent] += onto(sent[child], separators[child], tree.cliques[parent])
    for child in range(1, len(beliefs)):
        parent = tree.parents[child]
        back = _summed(beliefs[parent], tree.cliques[parent], separators[child]) - sent[child]
        beliefs[child] += onto(back, separators[child], tree.cliques[child])
    log_total = np.log(total)
    return [np.exp(b - logsumexp(b) + log_total) for b in beliefs]


def _summed(log_values: np.ndarray, whole: Clique, part: Clique) -> np.ndarray:
    """Sums over all variables but a part's; numbers and sums are given by their logarithms."""
    axes = axes_without(part, whole)
    if not axes:
        return log_values
    top = log_values.max(axis=axes, keepdims=True)
    sums = np.exp(log_values - top).sum(axis=axes)
    return np.log(sums) + top.reshape(sums.shape)


def _loss(
    tree: JunctionTree, terms: Mapping[int, list[NoisyTable]], marginals: Sequence[np.ndarray]
) -> tuple[float, list[np.ndarray]]:
    """Half the squared errors in units of the noise, and their slope in every clique's counts."""
    loss, slope = 0.0, [np.zeros_like(m) for m in marginals]
    for home, tables in terms.items():
        whole = tree.cliques[home]
        for table in tables:
            counts = marginals[home].sum(axis=axes_without(table.clique, whole))
            errors = (counts - table.counts) / table.noise
            loss += 0.5 * float((errors**2).sum())
            slope[home] += onto(errors / table.noise, table.clique, whole)
    return loss, slope
