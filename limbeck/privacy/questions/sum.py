"""`Sum`: features of every row, added up per class or per group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...accounting import Charge
from ...data import Rows
from ...schema import Schema
from ..grid import GridSum
from ..maps import chunk_rows, evaluated
from ..measurement import Measurement
from ..ones import Ones
from ..question import Charges, Mechanism, Question, Streams, Unit
from ..row_maps import FeatureMap, GroupedFeatures

MOST_CHUNK = 4096
"""Rows that a map may ask to be worked on at once."""


@dataclass(frozen=True, kw_only=True)
class Sum(Question):
    """Noisy sums of features, (groups, size).

    Privacy:
        A row's features are clipped to norm `bound` and enter one group's sum, so a row more or
        less moves the answer by at most `bound` in L2. Discrete Gaussian noise.

    Args:
        bound: Norm to which a row's features are clipped.
        size: Features of a row, at most.
        groups: Sums, at most.
        by: Which sum a row enters: its class's ("label"), the only one ("all"), or the one that the
            map names ("map"); such a map sees the row's label. Without a declared label: none.
    """

    engines: ClassVar[tuple[str, ...]] = ("local", "spark", "jax", "sql")
    persons: ClassVar[bool] = True

    bound: float
    size: int
    groups: int
    by: str = "label"

    @classmethod
    def of_features(cls, name: str, features: FeatureMap, schema: Schema, by: str = "label") -> Sum:
        """The sum of given features, per class or of all rows."""
        shape = {"size": features.size, "groups": len(schema.classes) if by == "label" else 1}
        return cls(name=name, bound=float(features.norm_bound), **shape, by=by)

    @classmethod
    def of_groups(cls, name: str, features: GroupedFeatures) -> Sum:
        """The sum of features that name a row's group themselves."""
        shape = {"size": features.size, "groups": features.groups}
        return cls(name=name, bound=float(features.norm_bound), **shape, by="map")

    def measured(self) -> tuple[Charge, ...]:
        shape = self.groups * self.size
        return (Charge(name=self.name, sensitivity=self.bound, coordinates=shape),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> SummedFeatures:
        size = self.size if row_map is None else row_map.size
        groups = self.groups if row_map is None or self.by != "map" else row_map.groups
        if size > self.size or groups > self.groups:
            raise RuntimeError(f"'{self.name}' measures more coordinates than were planned")
        (charge,) = charges
        bound = charge.sensitivity / unit.factor
        shape = {"groups": groups, "size": size, "rows_at_most": unit.rows_at_most}
        grid = GridSum(bound=bound, noise=charge.noise, **shape)
        return SummedFeatures((charge,), grid, self.by)


@dataclass(frozen=True)
class SummedFeatures(Mechanism):
    """Clips and rounds each row's features and adds them up in whole grid steps."""

    charges: tuple[Charge, ...]
    grid: GridSum
    by: str

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a contribution

    def zero(self) -> np.ndarray:
        return self.grid.zero()

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        size = getattr(row_map, "between", self.grid.size)  # a map knows: public, as all of it is
        wanted = min(getattr(row_map, "chunk", 0), MOST_CHUNK) if self.by == "map" else 0
        return wanted or chunk_rows(size, schema.slots, row_map)

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> tuple[Any, np.ndarray]:
        """Features, and the group that each row belongs to."""
        size, labels = self.rows_at_once(schema, row_map), batch.labels
        slots = schema.expand(batch.cells)
        if self.by == "map":
            phi, group = evaluated(row_map, size, slots, labels)
            return phi, np.where(labels < 0, -1, group)
        group = labels if self.by == "label" else np.minimum(labels, 0)
        if hasattr(row_map, "ones"):
            return Ones.told(evaluated(row_map.ones, size, slots), row_map.sizes), group
        return evaluated(row_map, size, slots), group

    def accumulate(self, partial: np.ndarray, batch: Rows, mapped: Any) -> np.ndarray:
        features, groups = mapped
        add = self.grid.accumulate_ones if isinstance(features, Ones) else self.grid.accumulate
        return self.merge(partial, add(features, groups, batch.weights))

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        return (Measurement.under(charge, self.grid.finalise(partial, stream(charge))),)
