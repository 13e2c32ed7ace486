"""Released rows are drawn here, so that every one of them keeps the schema's rules.

Orders, sums and tables hold by how rows are decoded. A row that comes out with a forbidden combination is drawn
again; one that does so again and again is drawn evenly among the combinations that are left. All of it works
on what is released, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import LimbeckError
from ..methods import ANYTHING, Given, RowSource, Wanted
from ..methods.wanted import chosen_rows
from ..schema import Among, Category, Condition, GivenRows, Learned, Schema, bins_of
from .images import Images

ROUNDS = 25
"""Number of times that rows with forbidden combinations are drawn again."""

Values = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Rows, and how many of them had to be drawn otherwise than they first came."""

    data: pd.DataFrame | Images
    rows: int
    again: int = 0
    """Number of rows that first came with a forbidden combination."""
    evenly: int = 0
    """Number of them that were at last drawn evenly among what the rules leave."""

    def told_in(self, certificate: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        """The certificate, which says how the rules were kept, where there are any."""
        if not schema.rules:
            return dict(certificate)
        kept = {
            "kept": "in every released row",
            "drawn_again": round(self.again / max(self.rows, 1), 4),
            "drawn_evenly": round(self.evenly / max(self.rows, 1), 4),
        }
        return {**certificate, "data": {**certificate["data"], "rules": kept}}


def draw(
    schema: Schema, source: RowSource, rows: int, *, seed: int, wanted: Wanted = ANYTHING
) -> pd.DataFrame | Images:
    """Rows from a source, decoded to the owner's values."""
    return drawn(schema, source, rows, seed=seed, wanted=wanted).data


def drawn(
    schema: Schema, source: RowSource, rows: int, *, seed: int, wanted: Wanted = ANYTHING
) -> Drawn:
    """The same, and how it went."""
    if schema.rules:
        values, again, evenly = _Ruled(schema, source, wanted).values(rows, seed)
        return Drawn(data=schema.table(values), rows=rows, again=again, evenly=evenly)
    encoded, labels = source.draw(schema, rows, seed=seed, wanted=wanted)
    if schema.image:
        images = Images(schema.image.decode(encoded), np.asarray(schema.classes)[labels])
        return Drawn(data=images, rows=rows)
    return Drawn(data=schema.decode(encoded, labels), rows=rows)


class _Ruled:
    """Draws values of all columns, by name, that keep the rules."""

    def __init__(self, schema: Schema, source: RowSource, wanted: Wanted) -> None:
        self.schema, self.source, self.learned = schema, source, schema.learned
        self.given = GivenRows(self.learned)
        self.later: list[Condition] = []
        """Conditions on columns that rules decide: they are met by choosing."""
        free = {column.name: column for column in self.learned.undecided}
        sooner: dict[str, Any] = {}
        for condition in (self._sooner(given) for given in wanted.conditions):
            name = condition.column.name
            if condition.column.kind != "label" and name not in free:
                self.later.append(condition)
                continue
            if name in free:
                condition = replace(condition, column=free[name])  # type: ignore[arg-type]
            sooner[name] = sooner[name].together(condition) if name in sooner else condition
        self.wanted = replace(wanted, conditions=tuple(sooner.values()))
        self.words = wanted.words

    def _sooner(self, condition: Condition) -> Condition:
        """A condition on a category that a table decides, as one on what decides it."""
        while (found := self.learned.table_of(condition.column.name)) is not None:
            column, table = found
            assert isinstance(condition, Among) and isinstance(column, Category)
            codes = frozenset(code for code, decided in table.items() if decided in condition.codes)
            if not codes:
                raise LimbeckError(f"No row can meet {condition.words}.")
            condition = replace(condition, column=column, codes=codes)
        return condition

    def values(self, rows: int, seed: int) -> tuple[Values, int, int]:
        """Values of all columns, and how many rows were drawn again and evenly."""
        given = self.wanted.given
        if given is not None:
            check_given(self.learned, given.values)
        if self.later and given is None:
            return self._chosen(rows, seed)
        attempt = self._attempt(self.wanted, rows, seed)
        bad = self._bad(attempt, given)
        again = int(bad.sum())
        if self.source.kind != "distilled":
            self._redraw(attempt, bad, seed)
        evenly = int(bad.sum())
        if evenly:
            self._mend(attempt, bad, given, np.random.default_rng([seed, 7]))
        self._check(attempt, given)
        return attempt, again, evenly

    def _attempt(self, wanted: Wanted, rows: int, seed: int) -> Values:
        cells, labels = self.source.draw(self.schema, rows, seed=seed, wanted=wanted)
        given = wanted.given.values if wanted.given is not None else {}
        undecided = {c.name: given[c.name] for c in self.learned.undecided if c.name in given}
        columns = self.learned.values(cells, labels, undecided)
        fixed = {name: values for name, values in given.items() if not np.isnan(values).all()}
        return self.given.completed(columns, fixed) if fixed else columns

    def _bad(self, found: Values, given: Given | None) -> np.ndarray:
        """Rows that hold a forbidden combination, differ from what is given, or are not as wanted."""
        bad = np.zeros(len(next(iter(found.values()))), bool)
        for tie in self.learned.ties:
            bad |= tie.broken(found)
        if given is not None:
            for name, values in given.values.items():
                bad |= ~np.isnan(values) & (found[name] != values)
            for condition in (*self.later, *self.wanted.conditions):
                bad |= ~_holds(condition, found)
        return bad

    def _redraw(self, found: Values, bad: np.ndarray, seed: int) -> None:
        """Other rows of the same classes in the places of bad ones, as long as that helps."""
        given = self.wanted.given
        label, target = self.schema.label, self.schema.target
        for turn in range(ROUNDS):
            at = np.flatnonzero(bad)
            if not len(at):
                return
            labels = np.zeros(len(at), np.int64)
            if given is not None:
                labels = given.labels[at]
            elif label is not None:
                labels = found[label.name][at].astype(np.int64)
            elif target is not None:
                cells = target.number.encode(found[target.name][at])
                labels = bins_of(cells, len(self.schema.classes)).astype(np.int64)
            other = _taken(given, at, labels, len(self.schema.inputs))
            wanted = replace(self.wanted, given=other, even=False, shares=None)
            once = int(np.random.default_rng([seed, 3, turn]).integers(1 << 31))
            fresh = self._attempt(wanted, len(at), once)
            good = ~self._bad(fresh, other)
            for name, values in fresh.items():
                found[name][at[good]] = values[good]
            bad[at[good]] = False

    def _mend(
        self, found: Values, bad: np.ndarray, given: Given | None, rng: np.random.Generator
    ) -> None:
        """The last resort: values drawn evenly among what the rules leave."""
        at = np.flatnonzero(bad)
        rows = {name: values[at] for name, values in found.items()}
        fixed = {} if given is None else {n: ~np.isnan(v[at]) for n, v in given.values.items()}
        if given is not None:
            wanted = {name: values[at] for name, values in given.values.items()}
            self.given.looked_back(rows, wanted, rng)
        if self.schema.label:
            fixed = fixed | {self.schema.label.name: np.ones(len(at), bool)}
        for tie in self.learned.ties:
            rows.update(tie.repaired(rows, fixed, rng)[0])
        rows = self.given.decided_again(rows, fixed)
        for name, values in rows.items():
            found[name][at] = values

    def _chosen(self, rows: int, seed: int) -> tuple[Values, int, int]:
        """Rows that meet conditions on decided columns, chosen among many."""
        if self.wanted.rebalanced:
            raise LimbeckError(
                f"Rules decide '{self.later[0].column.name}': rows cannot be chosen by it and classes be "
                "balanced as well."
            )
        names = list(self.learned.columns)
        counts = np.zeros(2)

        def some(many: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            values = self._attempt(self.wanted, many, int(rng.integers(1 << 31)))
            return np.stack([values[name] for name in names], axis=1), np.zeros(many)

        def meets(came: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
            values = dict(zip(names, came[0].T, strict=True))
            met = np.logical_and.reduce([_holds(c, values) for c in self.later])
            kept = met & ~self._bad(values, None)
            counts[:] += met.sum(), kept.sum()
            return kept

        table, _ = chosen_rows(some, meets, rows, np.random.default_rng(seed), self.words)
        again = round(rows * (1 - counts[1] / counts[0]))
        chosen = dict(zip(names, table.T.copy(), strict=True))
        self._check(chosen, None)
        return chosen, again, 0

    def _check(self, found: Values, given: Given | None) -> None:
        """Nothing leaves that breaks a rule."""
        for text, broken in self.learned.broken(found).items():
            if broken.any():
                if given is None:
                    raise RuntimeError(f"drawn rows break the rule '{text}'")
                raise LimbeckError(f"The frame has rows that cannot be completed under '{text}'.")
        if given is not None and self._bad(found, given).any():
            what = f" with {self.words}" if self.words else ""
            raise LimbeckError(
                f"The frame has rows that cannot be completed under the rules{what}."
            )


def check_given(learned: Learned, given: Mapping[str, np.ndarray]) -> None:
    """Refuse a frame whose own rows break a rule, or give a sum without all of its parts."""
    if (name := GivenRows(learned).half_given(given)) is not None:
        raise LimbeckError(
            f"The frame gives '{name}', which is a sum of other columns: give these as well, or leave it out."
        )
    rows = len(next(iter(given.values())))
    known = {name: given.get(name, np.full(rows, np.nan)) for name in learned.columns}
    for name, column in learned.columns.items():
        if isinstance(column, Category):
            known[name] = np.where(np.isnan(known[name]), -1.0, known[name])
    for text, broken in learned.broken(known).items():
        if broken.any():
            raise LimbeckError(f"The frame has rows that break the rule '{text}'.")


def _taken(given: Given | None, at: np.ndarray, labels: np.ndarray, columns: int) -> Given:
    """What is given of some rows; else nothing but their classes."""
    if given is None:
        nothing = np.zeros((len(at), columns), bool)
        return Given(cells=nothing.astype(np.float32), known=nothing, labels=labels)
    return given.again(at)


def _holds(condition: Condition, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Whether a condition holds of values of columns."""
    column = condition.column
    own = values[column.name]
    return condition.holds(
        own if isinstance(column, Category) else column.number.to_unit(own)  # type: ignore[union-attr]
    )
