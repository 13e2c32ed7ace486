"""How far apart columns may be, by all orders and bounds together, in exact fractions.

Every order says that one column is at most so far above another, and so does every bound, above or
below nothing. From these follow all others, by shortest paths; a circle of negative length is a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from .linear import Lattice

NOTHING = ""
"""The name of the fixed point that bounds are distances from."""


@dataclass(frozen=True)
class Limit:
    """A column is at least (at most) as large as another one, its anchor, plus a shift."""

    text: str
    """The rule."""
    anchor: str
    shift: Fraction


class Distances:
    """The greatest difference of each two columns, as far as anything is known of it."""

    def __init__(self, lattices: Mapping[str, Lattice]) -> None:
        self.names = [NOTHING, *lattices]
        self._most: dict[tuple[str, str], Fraction] = {(n, n): Fraction(0) for n in self.names}
        for name, lattice in lattices.items():
            self._most[name, NOTHING] = lattice.high
            self._most[NOTHING, name] = -lattice.low
        self._close(self.names)

    def most(self, left: str, right: str) -> Fraction | None:
        """The greatest value of the left column less the right one; None: any."""
        return self._most.get((left, right))

    def range(self, name: str) -> tuple[Fraction, Fraction]:
        """Between which values a column may lie."""
        return -self._most[NOTHING, name], self._most[name, NOTHING]

    def add(
        self, left: str, right: str, most: Fraction, through: Iterable[str] | None = None
    ) -> bool:
        """Note that a column is at most so far above another; whether that can be.

        Args:
            left: Name of the one.
            right: Name of the other.
            most: How far.
            through: Columns through which more may follow; by default all.
        """
        known = self._most.get((left, right))
        if known is None or most < known:
            self._most[left, right] = most
            self._close(self.names if through is None else through)
        return all(self._most[name, name] >= 0 for name in self.names)

    def _close(self, through: Iterable[str]) -> None:
        """Whatever follows by way of these."""
        for middle in through:
            for left in self.names:
                first = self._most.get((left, middle))
                if first is None:
                    continue
                for right in self.names:
                    second = self._most.get((middle, right))
                    if second is None:
                        continue
                    known = self._most.get((left, right))
                    if known is None or first + second < known:
                        self._most[left, right] = first + second
