"""A table as a mixture of soft rows. A soft row gives, for every column, the probabilities of groups of
the column's cells; a row is drawn from one soft row, its columns independently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...features import Cells, table_cells
from ...schema import Schema
from ..apportion import apportion
from ..wanted import ANYTHING, Given, Wanted
from .allowed import AllowedPart, allowed_parts

GIVEN_AT_ONCE = 500
"""Rows given in part that are compared with all soft rows at once."""
TINY = 1e-300
"""Chance that stands for none, where its logarithm is taken."""


@dataclass(frozen=True, kw_only=True)
class SoftRows:
    """Soft rows of each class, and how likely each cell is within its group; rows are drawn from them.

    Draws are stratified: the rows drawn from one soft row, and the cells within a group, come in
    their proportions, to the nearest row. So a sample's marginals stray less than those of
    independent draws.
    """

    soft: np.ndarray
    """Probabilities of groups, (classes, soft rows, groups); those of each column sum to one."""
    groups: np.ndarray
    """The group of each cell, (cells,), numbered through all columns."""
    within: np.ndarray
    """Probability of each cell among those of its group, (classes, cells)."""
    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""
    grid: int
    """Number of cells of a number with more values than that."""

    kind = "softrows"

    def draw(
        self, schema: Schema, rows: int, *, seed: int, wanted: Wanted = ANYTHING
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells (rows, columns) and label codes (rows,), classes in their noisy proportions.

        Conditions are met exactly: soft rows come as often as they meet them, and each column is
        drawn from what its condition leaves.
        """
        rng = np.random.default_rng(seed)
        columns = table_cells(schema, self.grid)
        ends = np.cumsum([c.count for c in columns])
        places = [slice(int(e) - c.count, int(e)) for c, e in zip(columns, ends, strict=True)]
        parts = allowed_parts(columns, wanted)
        masses = self._masses(places, parts)
        shares = wanted.class_weights(self.class_weights * masses.mean(axis=1))
        if wanted.given is None:
            labels = apportion(shares, rows)
            origins = _origins(masses, labels, rng, even=not parts)
            order = rng.permutation(rows)
        else:
            # Draws shared among the rows of a soft row need no order of theirs here.
            labels, origins = self._matching(columns, places, masses, shares, wanted.given, rng)
            order = np.arange(rows)
        cells = np.empty((rows, len(columns)), np.float32)
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            at = at[np.argsort(origins[at], kind="stable")]
            for i, (column, place) in enumerate(zip(columns, places, strict=True)):
                part = parts.get(i)
                codes = self._drawn_codes(int(label), place, origins[at], rng, part)
                cells[at, i] = column.draw(codes, rng) if part is None else part.draw(codes, rng)
        if wanted.given is not None:
            cells = np.where(wanted.given.known, wanted.given.cells, cells)
        return cells[order], labels[order]

    def _masses(self, places: list[slice], parts: Mapping[int, AllowedPart]) -> np.ndarray:
        """The chance that a row drawn from each soft row meets all conditions, (classes, soft rows)."""
        masses = np.ones(self.soft.shape[:2])
        for i, part in parts.items():
            groups = self.groups[places[i]]
            first = int(groups.min())
            for label in range(len(masses)):
                weights = self.within[label, places[i]]
                met = np.bincount(groups - first, weights * part.shares)
                chances = self.soft[label, :, first : first + len(met)].astype(np.float64)
                whole = chances @ np.bincount(groups - first, weights)
                masses[label] *= chances @ met / whole
        return masses

    def _matching(
        self,
        columns: tuple[Cells, ...],
        places: list[slice],
        masses: np.ndarray,
        shares: np.ndarray,
        given: Given,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A class and a soft row for each row that is given in part: by chance, in proportion to how
        likely they make what is given."""
        classes, each = masses.shape
        scale = np.maximum(masses.mean(axis=1), TINY)
        prior = np.log(np.maximum(masses * (shares / scale)[:, None], TINY))
        fixed = np.where(np.isin(given.labels, np.arange(classes)), given.labels, -1)
        codes = [c.codes(given.cells[:, i]) for i, c in enumerate(columns)]
        chances = np.log(
            np.maximum(self.soft[:, :, self.groups] * self.within[:, None, :], TINY)
        )  # (classes, soft rows, cells)
        chosen = np.empty(len(fixed), np.int64)
        for start in range(0, len(fixed), GIVEN_AT_ONCE):
            at = slice(start, start + GIVEN_AT_ONCE)
            likely = np.repeat(prior.reshape(1, -1), len(fixed[at]), axis=0)
            for i, place in enumerate(places):
                known = given.known[at, i]
                if known.any():
                    cells = place.start + codes[i][at][known]
                    likely[known] += chances[:, :, cells].reshape(classes * each, -1).T
            other = (fixed[at, None] >= 0) & (fixed[at, None] != np.arange(classes))
            likely[np.repeat(other, each, axis=1)] = -np.inf
            edges = np.cumsum(np.exp(likely - likely.max(axis=1, keepdims=True)), axis=1)
            steps = rng.random(len(edges)) * edges[:, -1]
            chosen[at] = (edges <= steps[:, None]).sum(axis=1)
        return chosen // each, chosen % each

    def _drawn_codes(
        self,
        label: int,
        place: slice,
        origins: np.ndarray,
        rng: np.random.Generator,
        part: AllowedPart | None = None,
    ) -> np.ndarray:
        """For each row the number of its cell in one column.

        Args:
            label: Code of the rows' class.
            place: Where the column's cells stand among those of all columns.
            origins: The soft row of each row, (rows,), sorted.
            rng: Draws.
            part: What a condition leaves of the cells.
        """
        groups, within = self.groups[place], self.within[label, place]
        first, last = int(groups.min()), int(groups.max())
        chances = self.soft[label, :, first : last + 1].astype(np.float64)
        if part is not None:
            within = within * part.shares
            chances = chances * np.bincount(groups - first, within)
        picked = first + _stratified(chances, origins, rng)
        codes = np.empty(len(origins), np.int64)
        for group in np.unique(picked):
            rows, members = np.flatnonzero(picked == group), np.flatnonzero(groups == group)
            steps = (rng.permutation(len(rows)) + rng.random()) / len(rows)
            edges = np.cumsum(within[members])
            places = np.searchsorted(edges, steps * edges[-1], side="right")
            codes[rows] = members[np.minimum(places, len(members) - 1)]
        return codes

    def facts(self) -> dict[str, Any]:
        return {"grid": self.grid}

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "soft": self.soft,
            "groups": self.groups,
            "within": self.within,
            "class_weights": self.class_weights,
        }

    @classmethod
    def load(cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> SoftRows:
        return cls(**arrays, grid=facts["grid"])


def _origins(
    masses: np.ndarray, labels: np.ndarray, rng: np.random.Generator, *, even: bool
) -> np.ndarray:
    """The soft row that each row is drawn from: in proportion to their masses, to the nearest row.

    Args:
        masses: Of soft rows, (classes, soft rows).
        labels: Class of each row, (rows,), sorted.
        rng: Draws.
        even: Whether all masses are one.
    """
    origins = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        at = np.flatnonzero(labels == label)
        order = rng.permutation(masses.shape[1])
        if even:
            origins[at] = np.sort(order[np.arange(len(at)) % len(order)])
            continue
        edges = np.cumsum(masses[label, order])
        steps = (np.arange(len(at)) + rng.random()) / len(at) * edges[-1]
        origins[at] = np.sort(order[np.searchsorted(edges, steps, side="right") % len(order)])
    return origins


def _stratified(chances: np.ndarray, origins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw for each row from its soft row's chances, (rows,).

    The rows of one soft row divide the interval from 0 to 1 into even steps, and each takes the
    value in whose part of the cumulated chances its step falls.
    """
    times = np.bincount(origins, minlength=len(chances))
    shuffled = np.lexsort((rng.random(len(origins)), origins))
    rank = np.empty(len(origins), np.int64)
    rank[shuffled] = np.arange(len(origins)) - (np.cumsum(times) - times)[origins]
    steps = (rank + rng.random(len(chances))[origins]) / times[origins]
    edges = np.cumsum(chances, axis=1)
    picked = (steps[:, None] * edges[origins, -1:] >= edges[origins]).sum(axis=1)
    return np.minimum(picked, chances.shape[1] - 1)
