"""Which rows are wanted of a source: conditions, shares of the classes, cells that are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import LimbeckError
from ..schema import Condition, Schema

TRIES = 200
"""Rows that are drawn for each row wanted, at most, where a condition is met by drawing and choosing."""
AT_ONCE = 20_000
"""Rows drawn at once for that, at least."""

NEVER = 1e-12
"""Chance of a row, below which there is none such."""

Encoded = tuple[np.ndarray, np.ndarray]
"""Encoded rows and their label codes."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """Cells that are known beforehand; the others are to be filled in."""

    cells: np.ndarray
    """Encoded cells (rows, columns)."""
    known: np.ndarray
    """Where a cell is given, (rows, columns)."""
    labels: np.ndarray
    """Label codes (rows,); -1 where the class is to be filled in, too."""
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Of a schema with rules: the values of all columns that are given, by name; NaN for none."""

    def again(self, at: np.ndarray) -> Given:
        """Some of the rows, each as often as it is named."""
        values = {name: column[at] for name, column in self.values.items()}
        return Given(
            cells=self.cells[at], known=self.known[at], labels=self.labels[at], values=values
        )


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which rows are to be drawn; without arguments, whatever comes."""

    conditions: tuple[Condition, ...] = ()
    shares: np.ndarray | None = None
    """Share of each class, summing to one; None: as the source has them under the conditions."""
    even: bool = False
    """Whether all classes that there are come equally often; instead of shares."""
    given: Given | None = None

    @property
    def on_label(self) -> tuple[Condition, ...]:
        return tuple(c for c in self.conditions if c.column.kind == "label")

    @property
    def on_inputs(self) -> tuple[Condition, ...]:
        return tuple(c for c in self.conditions if c.column.kind != "label")

    @property
    def anything(self) -> bool:
        return not self.conditions and not self.rebalanced and self.given is None

    @property
    def rebalanced(self) -> bool:
        return self.even or self.shares is not None

    @property
    def words(self) -> str:
        return " and ".join(c.words for c in self.conditions)

    def class_weights(self, weights: np.ndarray) -> np.ndarray:
        """Shares of the classes, summing to one.

        Args:
            weights: What the source gives each class under the conditions on other columns.

        Raises:
            LimbeckError: None is left, or a class that was asked for.
        """
        codes = np.arange(len(weights))
        allowed = np.all(
            [np.ones(len(codes), bool), *(c.holds(codes) for c in self.on_label)], axis=0
        )
        weights = np.where(allowed, weights, 0.0)
        if self.shares is not None:
            if (self.shares[weights <= NEVER] > 0).any():
                also = f" with {self.words}" if self.conditions else ""
                raise LimbeckError(
                    f"A class that was asked for never occurs in this release{also}."
                )
            return self.shares
        if weights.sum() <= NEVER:
            raise LimbeckError(f"No row of this release can meet {self.words}.")
        if self.even:
            weights = (weights > NEVER).astype(np.float64)
        return weights / weights.sum()

    def meets(self, schema: Schema, drawn: Encoded) -> np.ndarray:
        """Which of the encoded rows of a table meet all conditions."""
        place = {column.name: i for i, column in enumerate(schema.inputs)}
        met = np.ones(len(drawn[1]), bool)
        for condition in self.conditions:
            on_label = condition.column.kind == "label"
            cells = drawn[1] if on_label else drawn[0][:, place[condition.column.name]]
            met &= condition.holds(cells)
        return met


ANYTHING = Wanted()


def chosen_rows(
    draw: Callable[[int, np.random.Generator], Encoded],
    meets: Callable[[Encoded], np.ndarray],
    rows: int,
    rng: np.random.Generator,
    words: str,
) -> Encoded:
    """Rows that meet conditions, by drawing many and choosing those that do.

    Raises:
        LimbeckError: Hardly any do.
    """
    kept: list[Encoded] = []
    have = tried = 0
    while have < rows:
        if tried >= TRIES * max(rows, AT_ONCE):
            raise LimbeckError(
                f"Hardly any row of this release meets {words}: {have} of {tried:,} drawn ones. "
                "Ask for fewer rows, or for less."
            )
        drawn = draw(max(rows, AT_ONCE), rng)
        tried += len(drawn[1])
        at = np.flatnonzero(meets(drawn))
        kept.append((drawn[0][at], drawn[1][at]))
        have += len(at)
    cells, labels = (np.concatenate(parts)[:rows] for parts in zip(*kept, strict=True))
    return cells, labels
