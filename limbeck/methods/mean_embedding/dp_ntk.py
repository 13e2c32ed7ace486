"""DP-NTK: differentially private neural tangent kernels for data generation (Yang et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...errors import LimbeckError, choice, positive
from ...features import (
    DenseTangent,
    HeterogeneousTangent,
    StripTangent,
    mismatch,
    split_blocks,
)
from ...nets import Generator
from ...privacy import OuterSum
from ...schema import Schema
from ..base import check_values_declared
from .embedding import EMBEDDING, AbstractMeanEmbedding
from .heterogeneous import EMBEDDINGS, slot_parts

NETWORKS = ("dense", "strip")
Features = DenseTangent | StripTangent | HeterogeneousTangent


@dataclass(frozen=True, kw_only=True)
class DPNTK(AbstractMeanEmbedding):
    """Tangent features of a random network (a row's gradients of its outputs by its weights), one noisy
    mean embedding per class.

    Privacy:
        Measures class counts (a row changes one of them by 1) and per-class sums of features of
        norm 1 (the heterogeneous embedding of numbers and categories: the root of 2), under
        add/remove of one row, with discrete Gaussian noise calibrated jointly.
        Events: two Gaussians.

    >>> from limbeck import Category
    >>> schema = Schema(dataset="d", columns=(Category(name="c", values=("a", "b")),))
    >>> DPNTK(widths=(10,)).questions(schema)[1].question.blocks  # 10 x (2 + 1), and 10 + 1
    ((10, 3), (1, 11))
    """

    name: ClassVar[str] = "dp-ntk"
    good_for: ClassVar[str] = "a generator of what a random network sees"
    papers: ClassVar[tuple[str, ...]] = (
        "Y. Yang, K. Adamczewski, X. Li, D. J. Sutherland, M. Park. Differentially Private Neural "
        "Tangent Kernels (DP-NTK) for Privacy-Preserving Data Generation. JAIR 2024.",
    )
    free: ClassVar[frozenset[str]] = AbstractMeanEmbedding.free | {"debias"}

    network: str = "dense"
    """The network whose gradients by its weights are the features: fully connected (dense); or with a
    convolution along the slots of a table (strip)."""
    widths: tuple[int, ...] = (800,)
    """Widths of its hidden layers; of a strip, its channels and then its dense layer's width."""
    side: int = 1
    """Slots that a strip's convolution spans."""
    outputs: int = 10
    """Outputs whose sum the gradients are taken of: the more, the more the last layer counts."""
    embedding: str = "joint"
    """What the network sees: whole rows (joint); or numbers alone, with indicators of the categories beside
    its gradients, as in the paper for tables that have both (heterogeneous)."""
    debias: float = 1.0
    """How much of the bias of small batches is removed in fitting, from 0 (none) to 1; what is left
    draws the rows of a class together. Free."""
    steps: int = 3000
    """Updates of the generator. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(side=self.side, outputs=self.outputs, widths=len(self.widths))
        positive(**{f"widths[{i}]": w for i, w in enumerate(self.widths)})
        choice(network=(self.network, NETWORKS), embedding=(self.embedding, EMBEDDINGS))
        if not 0 <= self.debias <= 1:
            raise LimbeckError(f"Expected 0 <= debias <= 1, got {self.debias}.")

    def feature_size(self, schema: Schema) -> tuple[int, float]:
        outline = self._outline(schema)
        return outline.size, outline.norm_bound

    def embedding_of(self, schema: Schema) -> OuterSum:
        outline = self._outline(schema)
        return OuterSum(
            name=EMBEDDING,
            bound=outline.norm_bound,
            blocks=tuple(outline.blocks),
            groups=len(schema.classes),
        )

    def _outline(self, schema: Schema) -> Features:
        """The features without numbers: enough to tell their sizes."""
        outline: Features = jax.eval_shape(lambda: self._drawn(schema, jax.random.key(0)))
        return outline

    def feature_map(self, schema: Schema, seed: int) -> Features:
        return self._drawn(schema, jax.random.fold_in(jax.random.key(seed), 1))

    def _drawn(self, schema: Schema, key: Array) -> Features:
        if self.embedding == "joint":
            return self._network_of(schema.slots, schema, key)
        check_values_declared(self.name, schema)
        parts = slot_parts(schema)
        count = len(parts["numbers"])
        tangent = self._network_of(count, schema, key) if count else None
        return HeterogeneousTangent(tangent=tangent, **parts)

    def _network_of(self, slots: int, schema: Schema, key: Array) -> DenseTangent | StripTangent:
        shape: dict[str, Any] = {"slots": slots, "widths": self.widths, "key": key}
        if self.network == "dense":
            return DenseTangent(**shape, outputs=self.outputs)
        if schema.image:
            raise LimbeckError("The network 'strip' is for tables; images want 'dense'.")
        return StripTangent(**shape, outputs=self.outputs, side=self.side)

    def _loss(self, generator: Generator, key: Array, target: Any) -> Array:
        means, weights, features = target
        rows = self._rows(generator, key, len(weights))
        pairs, each = features(rows), len(rows) // len(weights)
        loss = jnp.float32(0.0)
        # A class at a time: products of matrices, which are quick, rather than of stacks of them.
        for number, weight in enumerate(weights):
            at = slice(number * each, (number + 1) * each)
            own = tuple((a[at], b[at]) for a, b in pairs)
            wanted = split_blocks(means[number], features.blocks)
            loss += weight * mismatch(own, wanted, self.debias)
        return loss
