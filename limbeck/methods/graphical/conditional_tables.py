"""Tables of chances, one after the other, from which rows are drawn: each draws some variables given others
that were drawn before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .junction_tree import Clique

LEAST = 1e-12
"""Sum of chances, in units of the largest, below which the given values are taken never to occur: new ones are
then drawn as if nothing were given."""


@dataclass(frozen=True)
class ConditionalTable:
    """Chances of new variables given others."""

    given: Clique
    new: Clique
    chances: np.ndarray
    """Non-negative, with an axis for each given and then each new variable; need not sum to one."""

    @classmethod
    def of_marginal(cls, marginal: np.ndarray, clique: Clique, given: Clique) -> ConditionalTable:
        """Of counts over a clique, of which some variables are given."""
        new = tuple(v for v in clique if v not in given)
        return cls(given, new, marginal.transpose([clique.index(v) for v in (*given, *new)]))

    def draw(self, codes: np.ndarray, rng: np.random.Generator) -> None:
        """Fill in the new variables of rows of codes (rows, variables).

        Rows with the same given values are spread evenly over the cumulated chances, so that among them each
        new value comes as often as its chance says, to a row.
        """
        sizes = self.chances.shape
        places, kinds = _flat(codes, self.given, sizes[: len(self.given)])
        chances = self.chances.reshape(kinds, -1).astype(np.float64)
        whole = chances.sum(axis=1, keepdims=True)
        never = whole[:, 0] <= LEAST * max(float(whole.max()), LEAST)
        chances[never], whole[never] = chances.sum(axis=0) + LEAST, whole.sum() + LEAST
        edges = np.cumsum(chances, axis=1)
        edges = edges / edges[:, -1:] + np.arange(kinds)[:, None]
        steps = places + _even_steps(places, kinds, rng)
        drawn = np.searchsorted(edges.ravel(), steps, side="right") - places * chances.shape[1]
        drawn = np.clip(drawn, 0, chances.shape[1] - 1)
        for variable, size in reversed(list(zip(self.new, sizes[len(self.given) :], strict=True))):
            drawn, codes[:, variable] = np.divmod(drawn, size)


def draw_codes(
    tables: Sequence[ConditionalTable], rows: int, variables: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows of codes (rows, variables), table after table."""
    codes = np.zeros((rows, variables), np.int64)
    for table in tables:
        table.draw(codes, rng)
    return codes


def _flat(codes: np.ndarray, given: Clique, sizes: Sequence[int]) -> tuple[np.ndarray, int]:
    """The number of the cell of what is given, (rows,), and how many cells there are."""
    places, kinds = np.zeros(len(codes), np.int64), 1
    for variable, size in zip(given, sizes, strict=True):
        places, kinds = places * size + codes[:, variable], kinds * size
    return places, kinds


def _even_steps(places: np.ndarray, kinds: int, rng: np.random.Generator) -> np.ndarray:
    """For rows of several kinds, numbers in [0, 1) that are spread evenly within each kind."""
    times = np.bincount(places, minlength=kinds)
    shuffled = np.lexsort((rng.random(len(places)), places))
    rank = np.empty(len(places), np.int64)
    rank[shuffled] = np.arange(len(places)) - (np.cumsum(times) - times)[places[shuffled]]
    return (rank + rng.random(kinds)[places]) / np.maximum(times, 1)[places]
