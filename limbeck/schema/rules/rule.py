"""Rules between columns as they were written, taken apart; no column is known here yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Offset:
    """A fixed amount that is added: a number, or a number with a unit of time."""

    amount: float
    unit: str = ""
    """Such as "days"; empty for a plain number."""

    @property
    def words(self) -> str:
        return f"{self.amount:g} {self.unit}".strip()


@dataclass(frozen=True)
class Order:
    """The left column is not below (above) the right one, plus an offset."""

    text: str
    left: str
    operator: str
    """">=", ">", "<=" or "<"."""
    right: str
    offset: Offset | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Total:
    """The left column is the sum of others, each with its sign, and of an offset."""

    text: str
    left: str
    parts: tuple[tuple[int, str], ...]
    offset: Offset | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left, *(name for _, name in self.parts)


@dataclass(frozen=True)
class Dependence:
    """A category decides another one, by a public table."""

    text: str
    decides: str
    decided: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.decides, self.decided


@dataclass(frozen=True)
class Atom:
    """A condition on one column: its value is (not) one of some, or lies on one side of a constant."""

    column: str
    operator: str
    """"in", "not in", ">=", ">", "<=" or "<"."""
    values: tuple[str, ...]
    """As they were written."""

    @property
    def opposite(self) -> Atom:
        pairs = {"in": "not in", ">=": "<", "<=": ">"}
        return Atom(
            self.column, (pairs | {b: a for a, b in pairs.items()})[self.operator], self.values
        )


@dataclass(frozen=True)
class Combination:
    """These conditions never hold together."""

    text: str
    forbidden: tuple[Atom, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(atom.column for atom in self.forbidden))


Rule = Order | Total | Dependence | Combination
