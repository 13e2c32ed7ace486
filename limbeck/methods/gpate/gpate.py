"""G-PATE: a generator taught by the noisy answers of many discriminators (Long et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import LimbeckError, choice, fraction, not_negative, positive, unless_auto
from ...schema import Schema
from ..part import Auto
from .gradient_aggregator import AGGREGATIONS, GradientAggregator
from .gradient_taught import AbstractGradientTaught

PROJECTION = 10
"""Coordinates to which gradients are projected for votes: the paper's."""


@dataclass(frozen=True, kw_only=True)
class GPATE(AbstractGradientTaught):
    """A generator that sees no rows, moved by what many teachers say about its rows together.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a teacher, a discriminator,
        whose state stays inside. In every update all teachers answer a question about
        generated rows: with votes (a record changes one teacher's, so the histograms by
        sqrt(2 votes) and their maxima by sqrt(votes), or sqrt(2 votes) too where classes have teachers
        of their own), or with a vector of norm 1 (the sum moves by at most 2), under add/remove of
        one row, with discrete Gaussian noise. Events: one or
        two Gaussians per update, the number of which is fixed beforehand; and the class
        counts, by the discrete Laplace mechanism with `count_epsilon`, unless that is 0.
    """

    name: ClassVar[str] = "g-pate"
    version: ClassVar[int] = 2
    good_for: ClassVar[str] = (
        "very many rows: a generator taught by the noisy votes of many networks"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "Y. Long, B. Wang, Z. Yang, B. Kailkhura, A. Zhang, C. A. Gunter, B. Li. G-PATE: Scalable "
        "Differentially Private Data Generator via Private Aggregation of Teacher Discriminators. "
        "NeurIPS 2021.",
        "N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable "
        "Private Learning with PATE. ICLR 2018.",
    )

    aggregation: str = "confident-gnmax"
    """What teachers answer with: votes, of which the largest counts are used where enough agree, as in
    the paper (confident-gnmax); or, limbeck's own, votes of which whole histograms are used
    (histogram), or vectors that are added up (directions), which carry more under the same budget."""
    projection: int | Auto = "auto"
    """Coordinates to which a row's gradient is projected at random; 0: it is not projected; auto: 10
    for votes, as in the paper, and 0 for directions."""
    bins: int = 10
    """Number of bins that a vote chooses from."""
    clip: float = 1e-4
    """Largest gradient that votes tell apart; what is beyond falls into the outermost bin."""
    threshold: float = 0.5
    """Share of the teachers that must agree (confident-gnmax)."""
    threshold_share: float = 0.05
    """Share of the budget for finding out whether they do (confident-gnmax)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(clip=self.clip)
        fraction(threshold=self.threshold, threshold_share=self.threshold_share)
        choice(aggregation=(self.aggregation, AGGREGATIONS))
        not_negative(projection=unless_auto(projection=self.projection) or 0)
        if self.bins < 2:
            raise LimbeckError(f"Expected bins >= 2, got {self.bins}.")

    @property
    def apart_by_default(self) -> bool:
        return self.aggregation != "confident-gnmax"

    def aggregator(self, schema: Schema) -> GradientAggregator:
        return GradientAggregator(
            aggregation=self.aggregation,
            points=self.asked_points(schema),
            width=self.seen_width(schema),
            projection=self.projected(schema),
            updates=self.updates,
            clip=self.clip,
            bins=self.bins,
            threshold=self.threshold,
            threshold_share=self.threshold_share,
            points_each=self.points_each(schema),
        )

    def projected(self, schema: Schema) -> int:
        """Coordinates to which gradients are projected; 0: they are not."""
        if self.projection != "auto":
            return self.projection
        return 0 if self.aggregation == "directions" else min(PROJECTION, self.seen_width(schema))

    def check(self, schema: Schema) -> None:
        super().check(schema)
        width = self.seen_width(schema)
        if self.projected(schema) > width:
            raise LimbeckError(
                f"A row has {width} numbers; it cannot be projected to {self.projection}."
            )
