"""Junction trees: cliques of variables in a tree, by which sums over all cells of a table become sums over
the cells of cliques.

A variable is a number, a clique an ascending tuple of them. An array over a clique has one axis for each of its
variables, in that order, so that arrays over parts of it are broadcast to it by axes of length one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Clique = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques, each after its parent; what a clique shares with all before it, it shares with its
    parent."""

    sizes: tuple[int, ...]
    """Number of values of each variable."""
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    """Number of each clique's parent; -1: the root's."""

    @property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent."""
        return tuple(
            () if parent < 0 else tuple(v for v in clique if v in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def home(self, clique: Clique) -> int:
        """The number of a maximal clique that holds another."""
        return next(i for i, held in enumerate(self.cliques) if set(clique) <= set(held))


def junction_tree(sizes: Sequence[int], cliques: Iterable[Clique], root: int = 0) -> JunctionTree:
    """A tree in which every given clique lies within one of the tree's; its first holds variable `root`.

    >>> tree = junction_tree((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3)])
    >>> tree.cliques, tree.separators
    (((0, 1), (1, 2), (2, 3)), ((), (1,), (2,)))
    """
    maximal = _maximal(_eliminated(sizes, cliques))
    first = next(i for i, clique in enumerate(maximal) if root in clique)
    order, parents, left = [first], [-1], set(range(len(maximal))) - {first}
    while left:  # a spanning tree of the largest overlaps is a junction tree
        shared, new, old = max(
            (len(set(maximal[i]) & set(maximal[j])), -i, -at)
            for i in left
            for at, j in enumerate(order)
        )
        order.append(-new)
        parents.append(-old)
        left.remove(-new)
    return JunctionTree(tuple(sizes), tuple(maximal[i] for i in order), tuple(parents))


def tree_cells(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """Number of cells of all maximal cliques of a junction tree together."""
    return sum(_cells(sizes, clique) for clique in _maximal(_eliminated(sizes, cliques)))


def _cells(sizes: Sequence[int], clique: Iterable[int]) -> int:
    return math.prod(sizes[v] for v in clique)


def _eliminated(sizes: Sequence[int], cliques: Iterable[Clique]) -> list[Clique]:
    """The cliques that arise when variables are eliminated one by one, always the one whose clique has
    fewest cells."""
    near: dict[int, set[int]] = {v: set() for v in range(len(sizes))}
    for clique in cliques:
        for v in clique:
            near[v] |= set(clique) - {v}
    weight = {v: _cells(sizes, {v} | near[v]) for v in near}
    arising = []
    while near:
        v = min(near, key=lambda u: (weight[u], u))
        others = near.pop(v)
        arising.append(tuple(sorted({v} | others)))
        for u in others:
            near[u] = (near[u] | others) - {u, v}
        for u in others:
            weight[u] = _cells(sizes, {u} | near[u])
    return arising


def _maximal(cliques: Iterable[Clique]) -> list[Clique]:
    """Those that lie within no other, in ascending order."""
    kept: list[set[int]] = []
    for clique in sorted(map(set, cliques), key=len, reverse=True):
        if not any(clique <= other for other in kept):
            kept.append(clique)
    return sorted(tuple(sorted(clique)) for clique in kept)


def onto(array: np.ndarray, part: Clique, whole: Clique) -> np.ndarray:
    """An array over a part of a clique, with axes of length one for the other variables."""
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if v in part else 1 for v in whole])


def axes_without(part: Clique, whole: Clique) -> tuple[int, ...]:
    """The axes of an array over a clique that a part of it does not have."""
    return tuple(axis for axis, v in enumerate(whole) if v not in part)
