"""What the papers show: every numbered table and figure, read from facts in `papers/*.toml`.

An exhibit of scores is a grid. A row and a column together say what makes our number in a cell:
data, method or recipe, budget, score. `docs/reproduce.md` explains the fields.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import LimbeckError

TABLES = Path(__file__).parent / "tables"
PAPERS = ("dp-kip", "dp-kip-scatternet", "dp-hp", "g-pate", "dp-ntk")
KINDS = ("scores", "pictures", "settings", "data", "kernel error", "drawing")
FIGURES = {
    "roc_auc": "ROC AUC", "average_precision": "average precision", "f1": "F1", "nll": "NLL",
}  # fmt: skip


@dataclass(frozen=True)
class Quote:
    """A number of a paper, with its spread where one is given."""

    value: float
    spread: float | None = None

    @classmethod
    def parse(cls, text: str) -> Quote | None:
        """
        >>> Quote.parse("82.7±0.1"), Quote.parse("-")
        (Quote(value=82.7, spread=0.1), None)
        """
        if text in ("", "-"):
            return None
        value, _, spread = text.partition("±")
        return cls(float(value), float(spread) if spread else None)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number: the paper's, and what makes ours."""

    row: str
    column: str
    data: str = ""
    making: str = "method"
    """"method", "real" rows, a private "classifier", or only "quoted" from elsewhere."""
    method: str = ""
    recipe: str = ""
    """File of a recipe, with a variant after '#'; "" for the method's defaults."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = 1.0
    delta: float = 1e-5
    per_class: int | None = None
    score: str = ""
    score_rows: int | None = None
    """How many released rows the score learns from; None: all."""
    augment: bool = False
    decoded: bool = False
    """Whether the score learns from the rows as they are written, where a release has exact numbers, too."""
    figure: str = ""
    theirs: Quote | None = None
    beside: Quote | None = None
    """For our own methods: the paper's number to compare with."""
    minutes: float = 5.0
    """About how long on two cores, for the estimate."""
    pace: float = 0.0
    """Instead of minutes, for methods that learn row by row: seconds of a step for each learned row."""
    quick: bool = True
    """Whether `--quick` runs it."""
    reduced: Mapping[str, Any] = field(default_factory=dict)
    """Settings that `--quick` changes."""
    reduced_rows: int | None = None
    """How many rows, at most, the score learns from with `--quick`; None: as many as without."""
    reduced_minutes: float | None = None

    @property
    def name(self) -> str:
        return f"{self.row} | {self.column}"


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A numbered table or figure."""

    name: str
    title: str
    paper: str
    kind: str = "scores"
    percent: bool = False
    """Whether the paper's numbers are in percent."""
    runs: int = 1
    """Runs that the paper averages."""
    refused: tuple[str, ...] = ()
    """What the paper's protocol did that ours refuses to do."""
    recipes: tuple[str, ...] = ()
    classifiers: bool = False
    cells: tuple[Cell, ...] = ()


def names() -> list[str]:
    """Names of all exhibits, paper by paper.

    >>> names()[:2], len(names())
    (['dp-kip-figure1', 'dp-kip-table1'], 59)
    """
    return list(_all())


def find(name: str) -> Exhibit:
    """An exhibit by its name; one that is not there is refused with what is near it."""
    exhibit = _all().get(name)
    if exhibit is None:
        near = [n for n in _all() if n.startswith(re.sub(r"-?(table|figure)?\d*$", "", name))]
        raise LimbeckError(
            f"No table or figure is named '{name}'. "
            + (f"There are {', '.join(near)}." if near else "See `limbeck reproduce --list`.")
        )
    return exhibit


@cache
def _all() -> dict[str, Exhibit]:
    exhibits = {}
    for paper in PAPERS:
        facts = tomllib.loads((TABLES / f"{paper}.toml").read_text(encoding="utf-8"))
        shared = {k: facts.pop(k) for k in ("title", "runs", "refused")}
        for key in sorted(facts, key=lambda k: (k.rstrip("0123456789"), int(re.sub(r"\D", "", k)))):
            exhibits[f"{paper}-{key}"] = _exhibit(f"{paper}-{key}", facts[key], shared)
    return exhibits


def _exhibit(name: str, facts: Mapping[str, Any], paper: Mapping[str, Any]) -> Exhibit:
    kind = facts.get("kind", "scores")
    if kind not in KINDS:
        raise RuntimeError(f"{name}: unknown kind '{kind}'")
    cells = tuple(_cells(facts)) if kind in ("scores", "pictures", "data") else ()
    return Exhibit(
        name=name,
        title=facts["title"],
        paper=paper["title"],
        kind=kind,
        percent=facts.get("percent", False),
        runs=facts.get("runs", paper["runs"]),
        refused=(*facts.get("refused", ()), *(paper["refused"] if kind == "scores" else ())),
        recipes=tuple(facts.get("recipes", ())),
        classifiers=facts.get("classifiers", False),
        cells=cells,
    )


def _cells(facts: Mapping[str, Any]) -> Iterator[Cell]:
    columns = facts.get("columns") or [
        {"name": n, "figure": n} for n in ("rows", "classes", "features")
    ]
    common = {k: facts[k] for k in ("score", "figure", "reduced_rows") if k in facts}
    quotes = _quotes(facts, columns)
    for row, in_row in facts["rows"].items():
        for column in columns:
            cell_facts = common | _of_column(column, in_row) | in_row
            if cell_facts.get("no_noise"):
                cell_facts["epsilon"] = math.inf
            settings = {**column.get("settings", {}), **in_row.get("settings", {})}
            if cell_facts.get("sized"):
                settings["per_class"] = cell_facts["per_class"]
            one_of = in_row.get("figure", cell_facts.get("figure", ""))
            figures = [one_of] if isinstance(one_of, str) else one_of
            for place, figure in enumerate(figures):
                several = len(figures) > 1 or isinstance(one_of, list)
                yield _cell(
                    cell_facts | {"settings": settings, "figure": figure},
                    row=row,
                    column=f"{column['name']}, {FIGURES[figure]}" if several else column["name"],
                    theirs=_at(quotes.get((row, column["name"]), ()), place),
                    beside=_at(_neighbour(quotes, row, column, in_row), place),
                )


def _of_column(column: Mapping[str, Any], in_row: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell takes from its column. Where the row names a method, the column's recipe is left out: it is
    another method's. Minutes stand in the column and are multiplied by the row's `times`; both may not give
    minutes, or one would hide the other."""
    column_facts = dict(column)
    if "method" in in_row:
        column_facts.pop("recipe", None)
    if "minutes" in column_facts and "minutes" in in_row:
        raise RuntimeError(f"minutes both in the column {column['name']} and in its rows")
    if "minutes" in column_facts:
        column_facts["minutes"] *= in_row.get("times", 1.0)
    return column_facts


def _cell(facts: Mapping[str, Any], **placed: Any) -> Cell:
    words = {k: facts[k] for k in ("data", "short", "per_class") if k in facts}
    words["variant"] = facts.get("variant", "")
    words["epsilon"] = f"{facts.get('epsilon', 1.0):g}"
    words["noise"] = "-non-private" if math.isinf(facts.get("epsilon", 1.0)) else ""
    making = next((m for m in ("quoted", "real", "classifier") if facts.get(m)), "method")
    keep = (
        "data", "method", "settings", "epsilon", "score", "score_rows", "augment", "decoded",
        "figure", "minutes", "pace", "reduced", "reduced_rows", "reduced_minutes",
    )  # fmt: skip
    sizes = facts.get("quick_per_class")
    return Cell(
        **placed,
        **{k: facts[k] for k in keep if k in facts},
        making=making,
        recipe=facts.get("recipe", "").format(**words),
        per_class=facts.get("per_class") if making == "real" else None,
        quick=facts.get("quick", True) and (sizes is None or facts.get("per_class") in sizes),
    )


def _quotes(
    facts: Mapping[str, Any], columns: list[dict[str, Any]]
) -> dict[tuple[str, str], tuple[Quote | None, ...]]:
    """The paper's numbers by row and column; two in a cell are parted by '/'."""
    quotes = {}
    for row, in_row in facts["rows"].items():
        for column, text in zip(columns, in_row.get("theirs", "").split(), strict=False):
            quotes[row, column["name"]] = tuple(Quote.parse(part) for part in text.split("/"))
    return quotes


def _neighbour(
    quotes: Mapping[tuple[str, str], tuple[Quote | None, ...]],
    row: str,
    column: Mapping[str, Any],
    in_row: Mapping[str, Any],
) -> tuple[Quote | None, ...]:
    """The number that a cell of ours is compared with: of another column, or of another row."""
    if "beside" in column:
        return quotes.get((row, column["beside"]), ())
    if "beside" in in_row:
        return quotes.get((in_row["beside"], column["name"]), ())
    return ()


def _at(quotes: tuple[Quote | None, ...], place: int) -> Quote | None:
    return quotes[place] if place < len(quotes) else None
