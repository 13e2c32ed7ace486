"""DataLens: a generator taught by the compressed gradients of many discriminators (Wang et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import LimbeckError, not_negative, positive, unless_auto
from ...schema import Schema
from ..part import Auto
from .compressed_signs import CompressedSigns
from .gradient_taught import AbstractGradientTaught

KEPT_PART = 4
"""One in so many coordinates is named by a teacher, where nobody says how many."""


@dataclass(frozen=True, kw_only=True)
class DataLens(AbstractGradientTaught):
    """A generator that sees no rows, moved by the signs of the largest coordinates of many teachers'
    gradients.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a teacher, a discriminator, whose
        state stays inside. In every update each teacher names `top` signs for each generated row that it
        answers about: a vector of norm sqrt(top x rows). A record changes one teacher's, so the sum moves by at
        most twice that norm, under add/remove of one row, with discrete Gaussian noise; it is asked and
        priced in parts of that norm, as vectors of norm 1. Events: one Gaussian per update, the number of which
        is fixed beforehand; and the class counts, by the discrete Laplace mechanism with
        `count_epsilon`, unless that is 0. The price does not depend on what teachers say, as the
        published code's does.
    """

    name: ClassVar[str] = "datalens"
    good_for: ClassVar[str] = (
        "a yardstick: teachers' gradients, compressed to signs, teach a generator"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "B. Wang, F. Wu, Y. Long, L. Rimanic, C. Zhang, B. Li. DataLens: Scalable Privacy Preserving "
        "Training via Gradient Compression and Aggregation. ACM CCS 2021.",
    )

    top: int | Auto = "auto"
    """Coordinates of a gradient that a teacher names; auto: a quarter of them, which is about the published
    200 of 784."""
    stochastic: bool = False
    """Whether signs are drawn by the size of their coordinate, as published, so that they are right on
    average; otherwise they are those of the gradient."""
    threshold: float = 0.0
    """Share of the teachers by which one sign must be ahead of the other, or the coordinate is dropped, as
    published (0.7); then signs alone are followed. 0: noisy sums are followed as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        top = unless_auto(top=self.top)
        if top is not None:
            positive(top=top)
        not_negative(threshold=self.threshold)
        if self.threshold > 1:
            raise LimbeckError(f"Expected 0 <= threshold <= 1, got {self.threshold}.")

    def named(self, schema: Schema) -> int:
        """Coordinates of a row's gradient that a teacher names."""
        width = self.seen_width(schema)
        return max(1, width // KEPT_PART) if self.top == "auto" else self.top

    def aggregator(self, schema: Schema) -> CompressedSigns:
        return CompressedSigns(
            points=self.asked_points(schema),
            points_each=self.points_each(schema),
            width=self.seen_width(schema),
            kept=self.named(schema),
            updates=self.updates,
            stochastic=self.stochastic,
            threshold=self.threshold,
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        width = self.seen_width(schema)
        if self.named(schema) > width:
            raise LimbeckError(f"A row has {width} numbers; {self.top} of them cannot be named.")
