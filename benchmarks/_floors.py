"""What a release has to beat to count for anything: class means with noise, and columns that know nothing of
each other. Methods like any other, so that they are charged and noised alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from limbeck.methods import COUNTS, AbstractMeasureOnce, Distilled, Product, values_of
from limbeck.methods.distribution_matching.ndpdc import AroundGrey
from limbeck.methods.graphical.graphical import CLASSES, SINGLES
from limbeck.methods.graphical.mst import MST
from limbeck.methods.graphical.table_rows import TableRows
from limbeck.privacy import Asked, Histogram, Measurement, Private, Sum
from limbeck.progress import Progress
from limbeck.schema import Schema

MEANS = "class means"


@dataclass(frozen=True, kw_only=True)
class ClassMeans(AbstractMeasureOnce):
    """One image per class: the noisy mean of its rows.

    Privacy:
        Measures class counts (a row changes one by 1) and per-class sums of pixels around grey (half the root
        of their number), under add/remove of one row. Events: two Gaussians.
    """

    name: ClassVar[str] = "class-means"
    papers: ClassVar[tuple[str, ...]] = ()
    data_kinds: ClassVar[tuple[str, ...]] = ("images",)
    fixed_size: ClassVar[bool] = True
    free: ClassVar[frozenset[str]] = frozenset()

    def questions(self, schema: Schema) -> list[Asked]:
        size, classes = schema.slots, len(schema.classes)
        bound = AroundGrey(size).norm_bound
        means = Sum(name=MEANS, bound=bound, size=size, groups=classes)
        return [
            Asked(question=Histogram.of_classes(COUNTS, schema), share=0.05),
            Asked(question=means, share=0.95),
        ]

    def around_grey(self, schema: Schema, seed: int) -> AroundGrey:
        """Pixels as distances from middle grey."""
        return AroundGrey(schema.slots)

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        return {
            COUNTS: private.ask(COUNTS),
            MEANS: private.ask(MEANS, self.map_spec("around_grey", seed)),
        }

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        counts = np.maximum(measured[COUNTS].values, 1.0)[:, None]
        slots = np.clip(0.5 + measured[MEANS].values / counts, 0.0, 1.0).astype(np.float32)
        return Product(
            source=Distilled(slots=slots, labels=np.arange(len(slots))),
            rows=len(slots),
            measurements=values_of(measured),
        )


@dataclass(frozen=True, kw_only=True)
class SingleColumns(MST):
    """Every column by its own noisy counts, the label among them, none with regard to another.

    Privacy:
        Measures class counts and indicators of all columns' cells (norm at most the root of their number),
        under add/remove of one row. Events: two Gaussians.
    """

    name: ClassVar[str] = "single-columns"
    papers: ClassVar[tuple[str, ...]] = ()
    count_share: float = 0.05

    def questions(self, schema: Schema) -> list[Asked]:
        classes, singles = super().questions(schema)[:2]
        return [
            Asked(question=classes.question, share=self.count_share),
            Asked(question=singles.question, share=1 - self.count_share),
        ]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        singles = private.ask(SINGLES, self.map_spec("single_columns", seed))
        return {CLASSES: private.ask(CLASSES), SINGLES: singles}

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        variables = self._begun(schema, measured).variables
        _, *tables = variables.independent()  # of the classes rows get their shares anyway
        return Product(
            source=TableRows(
                tables=tuple(tables),
                class_weights=variables.classes / variables.rows,
                grid=self.grid,
                **variables.arrays(),
            ),
            rows=schema.rows or max(1, round(variables.rows)),
            measurements=values_of(measured),
        )
