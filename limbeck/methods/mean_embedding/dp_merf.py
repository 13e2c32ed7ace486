"""DP-MERF: differentially private mean embeddings with random features (Harder et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from ...errors import LimbeckError, choice, positive
from ...features import Fourier, Heterogeneous, default_length_scales
from ...schema import Category, Schema
from ..base import check_values_declared
from ..part import Auto
from .embedding import AbstractMeanEmbedding
from .heterogeneous import EMBEDDINGS, slot_parts


@dataclass(frozen=True, kw_only=True)
class DPMERF(AbstractMeanEmbedding):
    """Random Fourier features of the Gaussian kernel, one noisy mean embedding per class.

    Privacy:
        Measures class counts (a row changes one of them by 1) and per-class sums of features of
        norm 1 (the heterogeneous embedding of numbers and categories: the root of 2), under
        add/remove of one row, with discrete Gaussian noise calibrated jointly. Events: two Gaussians.

    >>> DPMERF(features=1000).questions(
    ...     Schema(dataset="d", columns=(Category(name="c", values=("a", "b")),))
    ... )[1].question.size
    1000
    """

    name: ClassVar[str] = "dp-merf"
    good_for: ClassVar[str] = "a simple generator; the default for images without labels"
    papers: ClassVar[tuple[str, ...]] = (
        "F. Harder, K. Adamczewski, M. Park. DP-MERF: Differentially Private Mean Embeddings with "
        "Random Features for Practical Privacy-Preserving Data Generation. AISTATS 2021.",
    )

    features: int = 4000
    """Number of random features, over all length scales."""
    length_scales: tuple[float, ...] | Auto = "auto"
    """Widths of the Gaussian kernels that are averaged, as distances between encoded rows; auto: they
    follow from the schema."""
    number_weight: float = 4.0
    """Distance between the two ends of a number's range, in tables, where two categories have the root
    of 2."""
    embedding: str = "joint"
    """What Fourier features are taken of: whole rows (joint); or numbers alone, with indicators of the
    categories beside them, as in the paper (heterogeneous)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(features=self.features, number_weight=self.number_weight)
        choice(embedding=(self.embedding, EMBEDDINGS))
        check_length_scales(self.length_scales)
        if self.features % 2:
            raise LimbeckError(
                f"Expected an even number of features (sines and cosines), got {self.features}."
            )

    def feature_size(self, schema: Schema) -> tuple[int, float]:
        if self.embedding == "joint":
            return self.features, 1.0
        check_values_declared(self.name, schema)
        phi = self._heterogeneous(schema, 0)
        return phi.size, phi.norm_bound

    def feature_map(self, schema: Schema, seed: int) -> Fourier | Heterogeneous:
        if self.embedding == "heterogeneous":
            return self._heterogeneous(schema, seed)
        return self._fourier(schema.slots, schema, slot_weights(schema, self.number_weight), seed)

    def _heterogeneous(self, schema: Schema, seed: int) -> Heterogeneous:
        parts = slot_parts(schema)
        count = len(parts["numbers"])
        fourier = self._fourier(count, schema, None, seed) if count else None
        return Heterogeneous(fourier=fourier, **parts)

    def _fourier(
        self, slots: int, schema: Schema, weights: list[float] | None, seed: int
    ) -> Fourier:
        scales = self.length_scales
        if scales == "auto":
            scales = default_length_scales(schema, self.embedding)
        return Fourier(
            slots=slots,
            size=self.features,
            length_scales=scales,
            slot_weights=weights,
            key=jax.random.fold_in(jax.random.key(seed), 1),
        )


def slot_weights(schema: Schema, number_weight: float) -> list[float] | None:
    """Factor of every slot in distances between rows: of numbers the given one, of all else 1; of images
    none."""
    if schema.image:
        return None
    weights: list[float] = []
    for column in schema.inputs:
        number = not isinstance(column, Category)
        weights += [number_weight] if number else []
        weights += [1.0] * (column.slots - number)
    return weights


def check_length_scales(scales: tuple[float, ...] | str) -> None:
    """Refuse widths that are not above zero, and none at all."""
    if scales == "auto":
        return
    if isinstance(scales, str) or not scales:
        raise LimbeckError(f"Expected length_scales to be numbers or 'auto', got {scales!r}.")
    positive(**{f"length_scales[{i}]": s for i, s in enumerate(scales)})
