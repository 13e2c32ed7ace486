"""PEARL: private embeddings and adversarial reconstruction learning (Liew, Takahashi and Ueno 2022).

A characteristic function says all of a distribution; here, class by class, its values at random frequencies are
measured once, real and imaginary parts. How high frequencies have to be follows from a typical distance of rows, which
is bought with a little of the budget. A generator is then fitted to the noisy values while an adversary
decides which frequencies count most: both are free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...errors import LimbeckError, not_negative, positive
from ...features import Fourier, default_length_scales
from ...nets import Generator
from ...privacy import Asked, Measurement, Private, Sum
from ...schema import Schema
from ..base import Product, Progress, check_values_declared, values_of
from ..class_counts import COUNTS, class_means
from .distances import DISTANCE, DistanceFeatures, typical_distance
from .dp_merf import slot_weights
from .embedding import EMBEDDING, AbstractMeanEmbedding, mean_distance

SCALE = "noise of the typical distance"
"""Name under which the typical distance's noise stands beside the answers: public, from the plan."""


@dataclass(frozen=True, kw_only=True)
class PEARL(AbstractMeanEmbedding):
    """Characteristic functions at random frequencies, class by class; a generator against an adversary that
    weighs them.

    Privacy:
        Measures class counts (a row changes one of them by 1), the sum over all rows of place and squared
        distance from the middle (norm 1), and per-class sums of cosines and sines of norm 1, under
        add/remove of one row, with discrete Gaussian noise calibrated jointly. Frequencies are drawn from
        the public seed, their scale follows from the noisy answer before. Events: three Gaussians. The
        published programs take that scale from rows, or do not say where it is from.

    >>> from limbeck import Category
    >>> schema = Schema(dataset="d", columns=(Category(name="c", values=("a", "b")),))
    >>> [asked.question.name for asked in PEARL().questions(schema)]
    ['class counts', 'typical distance', 'mean embedding']
    """

    name: ClassVar[str] = "pearl"
    good_for: ClassVar[str] = "a generator where no length scale is known beforehand"
    papers: ClassVar[tuple[str, ...]] = (
        "S. P. Liew, T. Takahashi, M. Ueno. PEARL: Data Synthesis via Private Embeddings and "
        "Adversarial Reconstruction Learning. ICLR 2022.",
    )
    free: ClassVar[frozenset[str]] = AbstractMeanEmbedding.free | {"adversary_rate", "caution"}

    features: int = 2000
    """Number of cosines and sines; half as many frequencies."""
    distance_share: float = 0.02
    """Share of the budget for the typical distance of two rows; 0: it follows from the schema."""
    widths: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Length scales that frequencies are drawn for, in parts of the typical distance."""
    number_weight: float = 4.0
    """Distance between the two ends of a number's range, in tables, where two categories have the root
    of 2."""
    adversary_rate: float = 0.3
    """Step size of the adversary in parts of the generator's; 0: all frequencies count the same. Free."""
    caution: float = 1.0
    """What the adversary pays for weights that are not equal: weight of their divergence from equal ones.
    Without it a few frequencies, those with most noise, would be all that counts. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(features=self.features, number_weight=self.number_weight, widths=len(self.widths))
        positive(**{f"widths[{i}]": w for i, w in enumerate(self.widths)})
        not_negative(adversary_rate=self.adversary_rate, caution=self.caution)
        not_negative(distance_share=self.distance_share)
        if self.features % 2:
            raise LimbeckError(
                f"Expected an even number of features (sines and cosines), got {self.features}."
            )
        if self.count_share + self.distance_share >= 1:
            raise LimbeckError("The shares of counts and distance leave nothing to measure with.")

    def feature_size(self, schema: Schema) -> tuple[int, float]:
        return self.features, 1.0

    def questions(self, schema: Schema) -> list[Asked]:
        counts, embedding = super().questions(schema)
        if not self.distance_share:
            return [counts, embedding]
        check_values_declared(self.name, schema)
        distance = Sum.of_features(DISTANCE, self.distance_map(schema, 0), schema, by="all")
        share = embedding.share - self.distance_share
        return [
            counts,
            Asked(question=distance, share=self.distance_share),
            Asked(question=embedding.question, share=share),
        ]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        answers = {COUNTS: private.ask(COUNTS)}
        if self.distance_share:
            answers[DISTANCE] = private.ask(DISTANCE, self.map_spec("distance_map", seed))
        spec = self.map_spec("feature_map", seed)
        answers[EMBEDDING] = private.ask(EMBEDDING, spec, {"measured": _told(answers)})
        return answers

    # ---- the maps that are measured -------------------------------------------------------------

    def distance_map(self, schema: Schema, seed: int) -> DistanceFeatures:
        """For the typical distance."""
        return DistanceFeatures(jnp.asarray(self._weights(schema), jnp.float32))

    def feature_map(
        self, schema: Schema, seed: int, measured: Mapping[str, Any] | None = None
    ) -> Fourier:
        """For the characteristic functions, at frequencies whose scale may have been measured before."""
        return Fourier(
            slots=schema.slots,
            size=self.features,
            length_scales=self._length_scales(schema, measured or {}),
            slot_weights=slot_weights(schema, self.number_weight),
            key=jax.random.fold_in(jax.random.key(seed), 1),
        )

    def _weights(self, schema: Schema) -> np.ndarray:
        weights = slot_weights(schema, self.number_weight)
        return np.ones(schema.slots) if weights is None else np.asarray(weights)

    def _length_scales(self, schema: Schema, measured: Mapping[str, Any]) -> tuple[float, ...]:
        if DISTANCE in measured:
            distance = typical_distance(
                measured[DISTANCE][0],
                measured[COUNTS],
                float(measured[SCALE]),
                self._weights(schema),
            )
        else:
            distance = max(default_length_scales(schema))
        return tuple(width * distance for width in self.widths)

    # ---- what is made of the answers ------------------------------------------------------------

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        known = {name: Measurement(a, 0.0, "none") for name, a in _told(measured).items()}
        product = super().distill(schema, known, seed=seed, progress=progress)
        return replace(product, measurements=values_of(measured))

    def _target(self, schema: Schema, measurements: Mapping[str, np.ndarray], seed: int) -> Any:
        means, weights = class_means(measurements[COUNTS], measurements[EMBEDDING])
        return means, weights, self.feature_map(schema, seed, measurements)

    def _fitted(
        self, generator: Generator, target: Any, key: Array, progress: Progress
    ) -> Generator:
        if not self.adversary_rate:
            return super()._fitted(generator, target, key, progress)
        powers = target[2].frequencies ** 2
        powers /= powers.mean(axis=1, keepdims=True)
        players = generator, Adversary(changes=jnp.zeros(len(powers)), speed=self.adversary_rate)
        played = self._improved(players, self._game, (*target, powers), key, progress)
        return played[0]

    def _game(self, both: tuple[Generator, Adversary], key: Array, target: Any) -> Array:
        """The generator's distance at weighed frequencies, less what the adversary gains by its weights. Each
        side sees the other as it is, so one descent serves both."""
        generator, adversary = both
        means, weights, features, powers = target
        phi = features(self._rows(generator, key, len(weights)))
        count = phi.shape[1] // 2
        share = adversary.shares(powers)
        factor = jnp.tile(jnp.sqrt(count * jax.lax.stop_gradient(share)), 2)
        distance = mean_distance(phi * factor, means * factor, weights)
        own = jax.lax.stop_gradient(phi).reshape(len(means), -1, 2 * count).mean(axis=1)
        apart = (weights @ (own - means) ** 2).reshape(2, count).sum(axis=0)
        gain = share @ (apart / apart.mean())
        return distance - gain + self.caution * (share * jnp.log(count * share)).sum()


class Adversary(eqx.Module):
    """Weighs frequencies as if they had been drawn with another spread along each slot."""

    changes: Float[Array, " slots"]
    """Logarithms of the new spreads over the old ones, in parts of `speed`."""
    speed: float = eqx.field(static=True)

    def shares(self, powers: Float[Array, "slots frequencies"]) -> Float[Array, " frequencies"]:
        """How much each frequency counts, together one: its chance under the new spreads over that under the
        old ones.

        Args:
            powers: Squares of the frequencies, of mean 1 along every slot.
        """
        return jax.nn.softmax((1 - jnp.exp(-2 * self.speed * self.changes)) @ powers / 2)


def _told(measured: Mapping[str, Measurement]) -> dict[str, np.ndarray]:
    """The answers, and how noisy the typical distance is."""
    answers = values_of(measured)
    if DISTANCE in measured:
        answers[SCALE] = np.asarray(measured[DISTANCE].noise)
    return answers
