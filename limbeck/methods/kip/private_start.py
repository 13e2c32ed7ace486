"""Where DP-KIP's learned rows start: at noise, or at noisy means of the rows of each class.

From noise, most of the gradient steps go into finding out what a class looks like at all. A few sums tell
that for a small share of the budget. Several learned rows that start from one mean would make the
kernel's matrix singular: they are deformed copies, each in its own way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import LimbeckError
from ...privacy import Asked, Histogram, MapSpec, Measurement, Private
from ...schema import Schema
from ..class_counts import COUNTS
from ..mean_embedding.spreads import SPREADS
from ..measure_once.findings import (
    CLASS_MEANS,
    CLUSTERS,
    MEAN,
    PROTOTYPES,
    read_class_means,
    read_prototypes,
)
from ..measure_once.private_prototypes import (
    asked_class_means,
    asked_prototypes,
    measure_class_means,
    measure_prototypes,
)
from ..measure_once.start_rows import rows_from_prototypes, with_deformed_copies
from ..part import Auto
from . import class_moments
from .class_moments import (
    MOMENTS,
    counted_in,
    moments_asked,
    rows_from_moments,
    spreads_asked,
    view_of,
)
from .kernel import View
from .kernel_method import USUAL_ROWS

STARTS = ("noise", "means", "prototypes", "moments")
"""What learned rows can start from."""
MOMENT_ROWS = 100
"""Rows of each class that a start from moments needs, in parts of the root of the columns: with fewer, noise
hides the spreads."""
ROWS_WITH_SPREADS = 100
"""Rows to learn for each class where they are drawn with spreads, unless another number is set: that many tell them."""
START_SPREAD = {"images": 0.3, "tables": 1.0}
"""Standard deviation of the noise that learned rows start from, unless another is set."""
START_SHARE = {"images": 0.1, "tables": 0.8}
"""Share of the budget for means to start from, unless another is set."""
SPREAD_PART = 0.1
"""Part of what a start from moments costs that goes to the ranges."""
COUNT_PART = 0.03
"""Part of what a start costs that goes to the class counts."""
PARTS = {MEAN: 0.02, CLASS_MEANS: 0.12, CLUSTERS: 0.24, PROTOTYPES: 0.62}
"""Proportions in which the sums divide the rest; those that are not asked for leave theirs to the others."""


@dataclass(frozen=True, kw_only=True)
class PrivateStart:
    """Noisy class means, prototypes (means of clusters within each class), or class means and spreads."""

    kind: str
    per_class: int
    share: float
    """Of the budget, class counts included."""

    @classmethod
    def of(cls, kind: str, schema: Schema, *, per_class: int | Auto, share: float) -> PrivateStart:
        """A start, with what is automatic in it decided by the schema: for images prototypes, for
        tables with many rows moments, with few means."""
        if kind == "auto" and schema.image:
            kind = "prototypes"
        elif kind == "auto":
            enough = MOMENT_ROWS * len(schema.classes) * math.sqrt(len(schema.inputs))
            kind = "moments" if (schema.units or 0) >= enough else "means"
        if per_class == "auto":
            per_class = ROWS_WITH_SPREADS if kind == "moments" else USUAL_ROWS
        return cls(kind=kind, per_class=per_class, share=share)

    @property
    def _names(self) -> tuple[str, ...]:
        # One cluster of a class is the class.
        clustered = self.kind == "prototypes" and self.per_class > 1
        return tuple(PARTS) if clustered else (MEAN, CLASS_MEANS)

    def asked(self, schema: Schema) -> list[Asked]:
        """The questions, with their shares of the whole budget."""
        counts = Asked(question=Histogram.of_classes(COUNTS, schema), share=self.share * COUNT_PART)
        if self.kind == "moments":
            return [counts, *self._asked_moments(schema)]
        whole = sum(PARTS[name] for name in self._names)
        left = self.share * (1 - COUNT_PART) / whole
        shares = {name: left * PARTS[name] for name in self._names}
        asked = [counts, *asked_class_means(schema, shares)]
        if PROTOTYPES in shares:
            asked += asked_prototypes(schema, self.per_class, shares)
        return asked

    def _asked_moments(self, schema: Schema) -> list[Asked]:
        if schema.image:
            raise LimbeckError(
                'start = "moments" is for tables; images start from means or prototypes.'
            )
        rest = 1 - COUNT_PART - SPREAD_PART
        return [
            Asked(question=spreads_asked(schema), share=self.share * SPREAD_PART),
            Asked(question=moments_asked(schema), share=self.share * rest),
        ]

    def measure(self, private: Private, seed: int) -> dict[str, Measurement]:
        """The noisy answers by name, class counts among them."""
        measured = {COUNTS: private.ask(COUNTS)}
        if self.kind == "moments":
            measured[SPREADS] = private.ask(SPREADS, _spec("spread_map", seed))
            known = {"spreads": measured[SPREADS].values, "counts": measured[COUNTS].values}
            measured[MOMENTS] = private.ask(MOMENTS, _spec("moment_map", seed), known)
        elif PROTOTYPES in self._names:
            measure_prototypes(private, measured, self.per_class, seed)
        else:
            measure_class_means(private, measured, seed)
        return measured

    def rows(
        self, schema: Schema, measured: dict[str, Measurement], labels: np.ndarray, seed: int
    ) -> np.ndarray:
        """A row (slots,) in [0, 1] for each label code, (rows, slots): no two of a class alike."""
        rng = np.random.default_rng(seed)
        most = int(np.bincount(labels).max())
        if MOMENTS in measured:
            candidates = rows_from_moments(schema, measured, most, rng)
        elif PROTOTYPES in measured:
            candidates = rows_from_prototypes(schema, read_prototypes(schema, measured), most, rng)
        else:
            means = np.clip(read_class_means(schema, measured), 0.0, 1.0)
            candidates = with_deformed_copies(schema, means[:, None], most, rng)
        taken = np.zeros(len(candidates), int)
        rows = np.empty((len(labels), schema.slots))
        for at, code in enumerate(labels):
            rows[at] = candidates[code, taken[code]]
            taken[code] += 1
        return rows

    def view(self, schema: Schema, measured: dict[str, Measurement]) -> View | None:
        """What the kernel sees of rows in ranges that the start has measured; None: it has measured none."""
        return view_of(counted_in(schema, measured)) if MOMENTS in measured else None


def _spec(maker: str, seed: int) -> MapSpec:
    return MapSpec(factory=f"{class_moments.__name__}:{maker}", seed=seed)


def usual(setting: Any, by_kind: dict[str, Any], schema: Schema) -> Any:
    """A setting as it is, or where it is automatic what is usual for such data."""
    return by_kind["images" if schema.image else "tables"] if setting == "auto" else setting
