"""GS-WGAN: many critics, each on a shard of its own, of which a generator sees noisy gradients (Chen et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import LimbeckError, not_negative, positive
from ...schema import Schema
from ..gpate.gradient_taught import AbstractGradientTaught
from .sanitised_interface import SanitisedInterface
from .wasserstein_critic import WassersteinCritic


@dataclass(frozen=True, kw_only=True)
class GSWGAN(AbstractGradientTaught):
    """A generator that knows rows only by the noisy gradients of critics at its own output.

    Privacy:
        Rows are cut into disjoint shards by a keyed hash; each has a critic, whose state stays inside
        and who learns without noise. Critics take turns in a public order. The one whose turn it is learns,
        and answers with the gradient of its judgement of each of `points` generated rows, clipped to norm
        `clip`: a function of its shard, so a record may turn all of them round, and the whole batch
        moves by at most 2 clip sqrt(points), under add/remove of one row, with discrete Gaussian noise; it is asked and
        priced in parts of clip sqrt(points), as a vector of norm 1. A record sits in one shard, so it pays
        for the turns of one critic: updates / teachers, rounded up. Events: as many Gaussians; and the class
        counts, by the discrete Laplace mechanism with `count_epsilon`, unless that is 0. No amplification by
        sampling is claimed, as the paper does.
    """

    name: ClassVar[str] = "gs-wgan"
    family: ClassVar[str] = "adversarial"
    good_for: ClassVar[str] = (
        "a yardstick: noise at the generator's interface, critics that take turns"
    )
    papers: ClassVar[tuple[str, ...]] = (
        "D. Chen, T. Orekondy, M. Fritz. GS-WGAN: A Gradient-Sanitized Approach for Learning "
        "Differentially Private Generators. NeurIPS 2020.",
    )
    automatic_view: ClassVar[str] = "pooled"

    updates: int = 4000
    """Number of times that a critic is asked. As many as there are teachers: a record pays for one of them."""
    points: int = 20
    """Generated rows whose gradients a critic is asked for at once."""
    teacher_steps: int = 10
    """Steps of a critic before its answer."""
    teacher_hidden: tuple[int, ...] = (64,)
    """Widths of a critic's hidden layers."""
    teacher_decay: float = 0.0
    """Share of its weights that a critic forgets in a step."""
    clip: float = 1.0
    """Norm to which each generated row's gradient is clipped."""
    stretched: bool = True
    """Whether shorter gradients are stretched to that norm: noise is the same. As published: false."""
    slope_weight: float = 10.0
    """Weight of how far a critic's slopes are from 1."""
    size_weight: float = 1e-3
    """Weight of the squares of what a critic says of real rows."""
    learning_rate: float = 2e-3
    """Learning rate of the generator."""
    generator_steps: int = 1
    """Steps of the generator after each answer."""
    cooling: bool = True
    """Whether the generator's rate falls to nothing along half a cosine."""
    average: float = 0.99
    """Memory of the running mean of generators that is released; 0: the last one is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(clip=self.clip)
        not_negative(slope_weight=self.slope_weight, size_weight=self.size_weight)

    @property
    def apart_by_default(self) -> bool:
        return False

    def aggregator(self, schema: Schema) -> SanitisedInterface:
        return SanitisedInterface(
            points=self.asked_points(schema),
            width=self.seen_width(schema),
            updates=self.updates,
            teachers=self.teachers,
            clip=self.clip,
            stretched=self.stretched,
        )

    def critic(
        self, schema: Schema, seed: int, of_class: tuple[int, ...] = ()
    ) -> WassersteinCritic:
        return WassersteinCritic(
            aggregator=self.aggregator(schema),
            slope_weight=self.slope_weight,
            size_weight=self.size_weight,
            **self.critic_settings(schema, seed, of_class),
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.classes_apart(schema):
            raise LimbeckError(
                'gs-wgan: a critic answers about all classes, so shards are mixed; leave out shards = "classes".'
            )
