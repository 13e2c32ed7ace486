"""What an evaluation found: figures with their spread, and the stamp that they are internal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LimbeckError
from ..outside import write_outside
from .correlation import Pair

STAMP = "internal: not covered by epsilon"
"""Words that every page and file of scores on real rows carries."""
RELEASED, REAL, BETWEEN = "released", "real", "between"
"""What a score is of: a learner taught by released rows, by as many real ones, or a distance between both."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One figure of one score, with a value per seed."""

    name: str
    """What was done, such as "logistic regression"."""
    figure: str
    """What was counted, such as "accuracy"."""
    values: tuple[float, ...]
    of: str = RELEASED
    """Trained on released rows, on as many real ones (the control), or a distance between both."""
    note: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def text(self) -> str:
        """Mean and spread, in percent where the figure is a share."""
        factor, form = (1.0, ".4g") if self.figure in PLAIN else (100.0, ".1f")
        around = "" if self.spread is None else f" ± {self.spread * factor:{form}}"
        return f"{self.mean * factor:{form}}{around}"


SIZE, ERROR = "mean absolute size", "mean error"
"""Figures of correlations."""
PLAIN = (
    "R2", "distance", "total variation", "median distance", "mean absolute error", SIZE, ERROR,
)  # fmt: skip
"""Figures that are no shares in percent."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of one release against real rows. They are not part of the release: see `stamp`."""

    dataset: str
    epsilon: float | None
    """The release's claim; None for infinity."""
    certificate: str
    """SHA-256 of the certificate of the release that was scored."""
    released_rows: int
    test_rows: int
    scores: tuple[Score, ...]
    pairs: tuple[Pair, ...] = ()
    """Of a table: the pairs of columns that correlate most."""
    stamp: str = STAMP

    def facts(self) -> dict[str, Any]:
        """Plain values for JSON."""
        facts = asdict(self)
        facts["pairs"] = [pair.facts() for pair in self.pairs]
        facts["scores"] = [
            asdict(s) | {"values": list(s.values), "mean": s.mean, "spread": s.spread}
            for s in self.scores
        ]
        return {"format": "limbeck scores", **facts}

    def save(self, path: str | Path) -> Path:
        """Write the scores as JSON, outside of any release."""
        write_outside(path, json.dumps(self.facts(), indent=2) + "\n", f"scores ({STAMP})")
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Scores:
        """Read what `save` or `limbeck evaluate --json` wrote."""
        try:
            return cls.from_facts(json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise LimbeckError(f"Cannot read {path}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LimbeckError(f"{path} does not hold scores of `limbeck evaluate`.") from None

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Scores:
        if facts["format"] != "limbeck scores":
            raise ValueError("another format")
        scores = tuple(
            Score(
                name=str(s["name"]),
                figure=str(s["figure"]),
                values=tuple(float(v) for v in s["values"]),
                of=str(s["of"]),
                note=str(s["note"]),
            )
            for s in facts["scores"]
        )
        epsilon = facts["epsilon"]
        return cls(
            dataset=str(facts["dataset"]),
            epsilon=None if epsilon is None else float(epsilon),
            certificate=str(facts["certificate"]),
            released_rows=int(facts["released_rows"]),
            test_rows=int(facts["test_rows"]),
            scores=scores,
            pairs=tuple(Pair.from_facts(pair) for pair in facts.get("pairs", ())),
        )
