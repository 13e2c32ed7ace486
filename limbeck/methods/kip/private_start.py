"""Where DP-KIP's learned rows start: at noise, or at noisy means of the rows of each class.

From noise, most of the gradient steps go into finding out what a class looks like at all. A few sums tell
that for a small share of the budget. Several learned rows that start from one mean would make the
kernel's matrix singular: they are deformed copies, each in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...privacy import Asked, Histogram, Measurement, Private
from ...schema import Schema
from ..class_counts import COUNTS
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

STARTS = ("noise", "means", "prototypes")
"""What learned rows can start from."""
START = {"images": "prototypes", "tables": "means"}
"""What learned rows start from, unless something else is set."""
START_SPREAD = {"images": 0.3, "tables": 1.0}
"""Standard deviation of the noise that learned rows start from, unless another is set."""
START_SHARE = {"images": 0.1, "tables": 0.8}
"""Share of the budget for means to start from, unless another is set."""
COUNT_PART = 0.03
"""Part of what a start costs that goes to the class counts."""
PARTS = {MEAN: 0.02, CLASS_MEANS: 0.12, CLUSTERS: 0.24, PROTOTYPES: 0.62}
"""Proportions in which the sums divide the rest; those that are not asked for leave theirs to the others."""


@dataclass(frozen=True, kw_only=True)
class PrivateStart:
    """Noisy class means, or prototypes (means of clusters within each class)."""

    kind: str
    per_class: int
    share: float
    """Of the budget, class counts included."""

    @property
    def _names(self) -> tuple[str, ...]:
        # One cluster of a class is the class.
        clustered = self.kind == "prototypes" and self.per_class > 1
        return tuple(PARTS) if clustered else (MEAN, CLASS_MEANS)

    def asked(self, schema: Schema) -> list[Asked]:
        """The questions, with their shares of the whole budget."""
        whole = sum(PARTS[name] for name in self._names)
        left = self.share * (1 - COUNT_PART) / whole
        shares = {name: left * PARTS[name] for name in self._names}
        counts = Histogram.of_classes(COUNTS, schema)
        asked = [Asked(question=counts, share=self.share * COUNT_PART)]
        asked += asked_class_means(schema, shares)
        if PROTOTYPES in shares:
            asked += asked_prototypes(schema, self.per_class, shares)
        return asked

    def measure(self, private: Private, seed: int) -> dict[str, Measurement]:
        """The noisy answers by name, class counts among them."""
        measured = {COUNTS: private.ask(COUNTS)}
        if PROTOTYPES in self._names:
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
        if PROTOTYPES in measured:
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


def usual(setting: Any, by_kind: dict[str, Any], schema: Schema) -> Any:
    """A setting as it is, or where it is automatic what is usual for such data."""
    return by_kind["images" if schema.image else "tables"] if setting == "auto" else setting
