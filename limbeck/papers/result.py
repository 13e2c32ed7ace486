"""What a reproduction found: our numbers beside the paper's, as text, Markdown and JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .exhibit import Cell, Exhibit

DONE, NOT_RUN, QUOTED = "done", "not run", "quoted"
SHORT = 60
"""Letters of a remark that may stand in the table however often."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Our side of one cell."""

    cell: Cell
    status: str = NOT_RUN
    """"done", "not run", or "quoted" from the paper alone."""
    values: tuple[float, ...] = ()
    """One per seed, in the paper's units."""
    text: str = ""
    """Where ours is not a number: a picture's place, a recipe."""
    reduced: bool = False
    older: str = ""
    """Commit and date of the code that made it, where that is not today's."""
    note: str = ""
    """Why it was not run, or in what it differs from the paper."""
    seconds: float = 0.0

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.values)) if self.values else None

    @property
    def spread(self) -> float | None:
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, or less the one that our own method is compared with."""
        quote = self.cell.theirs or self.cell.beside
        return None if quote is None or self.mean is None else self.mean - quote.value

    def facts(self) -> dict[str, Any]:
        quote, beside = self.cell.theirs, self.cell.beside
        return {
            "row": self.cell.row,
            "column": self.cell.column,
            "figure": self.cell.figure,
            "theirs": None if quote is None else quote.value,
            "their_spread": None if quote is None else quote.spread,
            "compared_with": None if beside is None else beside.value,
            "ours": self.mean,
            "our_spread": self.spread,
            "values": list(self.values),
            "seeds": len(self.values),
            "difference": self.difference,
            "status": self.status,
            "reduced": self.reduced,
            "older_code": self.older,
            "text": self.text,
            "note": self.note,
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """All cells of an exhibit."""

    exhibit: Exhibit
    results: tuple[Result, ...]
    quick: bool

    def facts(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": "limbeck reproduction",
            "name": self.exhibit.name,
            "title": self.exhibit.title,
            "paper": self.exhibit.paper,
            "quick": self.quick,
            "percent": self.exhibit.percent,
            "runs_in_the_paper": self.exhibit.runs,
            "refused": list(self.exhibit.refused),
            "cells": [r.facts() for r in self.results],
        }

    def lines(self) -> list[tuple[str, ...]]:
        """Rows of the table that is shown, head first; a column that says nothing is left out."""
        head = ("row", "column", "theirs", "ours", "difference", "seeds", "remark")
        body = [self._line(r) for r in self.results]
        kept = [i for i, name in enumerate(head) if name == "ours" or any(line[i] for line in body)]
        return [tuple(line[i] for i in kept) for line in [head, *body]]

    def _line(self, result: Result) -> tuple[str, ...]:
        cell = result.cell
        ours = result.text or self._number(result.mean, result.spread) or f"*{result.status}*"
        difference = "" if result.difference is None else self._signed(result.difference)
        if cell.theirs is None and cell.beside is not None and difference:
            difference += f" (to {self._number(cell.beside.value)})"
        common = self._common_notes()
        note = f"({common.index(result.note) + 1})" if result.note in common else result.note
        older = f"*code of {result.older}*" if result.older else ""
        remark = "; ".join(filter(None, ["*reduced*" if result.reduced else "", note, older]))
        quote = cell.theirs
        return (
            cell.row,
            cell.column,
            "" if quote is None else self._number(quote.value, quote.spread),
            ours,
            difference,
            str(len(result.values) or ""),
            remark,
        )

    def _common_notes(self) -> list[str]:
        """Long remarks on several cells, such as how to get data: said once, below the table."""
        count = Counter(r.note for r in self.results if len(r.note) > SHORT)
        return [note for note, times in count.items() if times > 1]

    def _number(self, value: float | None, spread: float | None = None) -> str:
        if value is None:
            return ""
        around = "" if spread is None else f" ± {self._form(spread, value)}"
        return self._form(value, value) + around

    def _signed(self, value: float) -> str:
        return ("-" if value < 0 else "+") + self._form(abs(value), value)

    def _form(self, value: float, like: float) -> str:
        """A number with as many digits as its neighbours have."""
        if self.exhibit.kind == "data":
            return f"{value:,.0f}"
        if self.exhibit.percent:
            return f"{value:.1f}"
        return (
            f"{value:.4g}"
            if abs(like) >= 10
            else f"{value:.1e}"
            if 0 < abs(like) < 1e-3
            else f"{value:.3f}"
        )

    def notes(self) -> list[str]:
        """What stands below the table."""
        there = [r for r in self.results if r.status == DONE]
        seeds = max((len(r.values) for r in there), default=0)
        notes = []
        if self.exhibit.kind == "scores":
            notes.append(
                f"{len(there)} of {len(self.results)} cells run, {seeds or 'no'} "
                f"seed{'s' if seeds != 1 else ''} each; the paper averages {self.exhibit.runs}."
            )
        if any(r.reduced for r in there):
            notes.append(
                "*reduced*: fewer steps or rows than the paper's, or another mechanism with its settings, as the "
                "remark says."
            )
        if any(r.older for r in there):
            notes.append(
                "*code of ...*: made at that commit. The method, its default settings, what answers it or the scores "
                "have changed since, perhaps in nothing that matters here; a run without `--known` makes the cell anew."
            )
        if any(r.difference is not None and r.cell.theirs is None for r in there):
            notes.append("Our own methods are compared with the paper's number in brackets.")
        notes += [f"({i}) {note}" for i, note in enumerate(self._common_notes(), 1)]
        notes += [f"Their protocol, refused here: {text}" for text in self.exhibit.refused]
        return notes

    def markdown(self) -> str:
        head, *body = self.lines()
        mode = " --quick" if self.quick else ""
        lines = [f"# {self.exhibit.name}: {self.exhibit.title}", ""]
        lines += [f"{self.exhibit.paper}. By `limbeck reproduce {self.exhibit.name}{mode}`.", ""]
        if body:
            lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
            lines += [f"| {' | '.join(line)} |" for line in body]
            lines.append("")
        lines += [f"- {note}" for note in self.notes()]
        return "\n".join(lines).rstrip() + "\n"
