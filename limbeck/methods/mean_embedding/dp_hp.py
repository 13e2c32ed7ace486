"""DP-HP: differentially private mean embeddings with Hermite features (Vinaroz et al. 2022).

Hermite polynomials of a number are features of the Gaussian kernel along it. The sum kernel puts those
of all columns side by side, so its mean embedding knows each column's distribution alone. A product
kernel multiplies those of a few columns, chosen at random, so it knows how they go together. All sums
are planned at once under one budget, and each is measured for every class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, choice, fraction, not_negative, positive, unless_auto
from ...features import (
    Axes,
    Hermite,
    HermiteProduct,
    HermiteProducts,
    HermiteSum,
    Places,
    draw_product,
    draw_products,
    product_factors,
    sum_size,
    unbiased_square,
)
from ...nets import Generator
from ...privacy import Asked, Measurement, OneBlock, OuterSum, Private, Question, Sum
from ...schema import Schema
from ..base import Product, Progress, check_values_declared, values_of
from ..class_counts import COUNTS, class_means, without_noise
from ..part import Auto
from .embedding import EMBEDDING, AbstractMeanEmbedding, mean_distance
from .spreads import SPREADS, NumbersAndSquares, axes_from

MEASURED = ("combined", "sum", "product")
"""Which of the two kinds of kernel can be measured."""


@dataclass(frozen=True, kw_only=True)
class DPHP(AbstractMeanEmbedding):
    """Hermite features of columns and of products of columns, one noisy mean of each per class.

    Privacy:
        Measures class counts (a row changes one of them by 1), per-class sums of the sum kernel's
        features (norm 1) and of each product kernel's (norm 1), and where asked for the columns'
        means and spreads (norm 1). Which columns are multiplied is drawn without looking at
        rows. Add/remove of one row, discrete Gaussian noise calibrated jointly. Events: one Gaussian each.

    >>> from limbeck import Category
    >>> schema = Schema(dataset="d", columns=(Category(name="c", values=("a", "b")),))
    >>> [asked.question.name for asked in DPHP(draws=2).questions(schema)]
    ['class counts', 'mean embedding', 'product 1', 'product 2']
    """

    name: ClassVar[str] = "dp-hp"
    good_for: ClassVar[str] = "numbers with narrow peaks, where few columns matter together"
    papers: ClassVar[tuple[str, ...]] = (
        "M. Vinaroz, M.-A. Charusaie, F. Harder, K. Adamczewski, M. Park. Hermite Polynomial "
        "Features for Private Data Generation. ICML 2022.",
    )
    free: ClassVar[frozenset[str]] = AbstractMeanEmbedding.free | {"gamma", "denoise", "debias"}

    kernel: str = "combined"
    """Which kernels are measured: the sum over columns (sum), products of columns (product), or both
    (combined)."""
    order: int = 15
    """Highest order of the Hermite polynomials of a number, in the sum kernel."""
    product_order: int = 4
    """The same in products."""
    product_columns: int = 2
    """Columns that a product kernel multiplies."""
    draws: int = 4
    """Measurements of product kernels, each over columns drawn anew."""
    products: int = 200
    """Product kernels side by side in one measurement. A single one may be large: its factors are
    multiplied as matrices."""
    gamma: float = 1.0
    """Weight of the products against the sum kernel, in fitting. Free."""
    length_scale: float = 0.15
    """Width of the Gaussian kernel along each number, in units of its range, in the sum kernel."""
    product_length_scale: float = 0.3
    """The same in products."""
    product_share: float = 0.4
    """Share of the budget for all products together; the rest is for the sum kernel."""
    spread_share: float = 0.0
    """Share of the budget for the numbers' means and spreads, from which their ranges are then
    taken; 0: they are not measured, and ranges are the declared ones."""
    centre: float = 0.5
    """Where in its range a number counts as zero, if means are not measured."""
    stretch: float | Auto = "auto"
    """Factor of all numbers before Hermite polynomials are taken of them; auto: the one with which the
    orders at hand come nearest to the Gaussian kernel."""
    generator: str = "dense"
    """The generator's network: auto, dense or residual. Under the sum kernel the gradients of a
    convolution may vanish for good."""
    denoise: bool = True
    """Whether class means that differ no more than noise makes them differ are drawn together before
    fitting. Free."""
    debias: float = 1.0
    """How much of the bias of small batches is removed in fitting, from 0 (none, as published) to 1;
    what is left draws the rows of a class together. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(kernel=(self.kernel, MEASURED))
        positive(length_scale=self.length_scale, product_length_scale=self.product_length_scale)
        positive(product_columns=self.product_columns, draws=self.draws)
        positive(products=self.products)
        if not 0 <= self.debias <= 1:
            raise LimbeckError(f"Expected 0 <= debias <= 1, got {self.debias}.")
        fraction(product_share=self.product_share)
        fraction(all_shares=self.count_share + self.product_share + self.spread_share)
        not_negative(order=self.order, product_order=self.product_order, gamma=self.gamma)
        not_negative(spread_share=self.spread_share)
        stretch = unless_auto(stretch=self.stretch)
        if stretch is not None:
            positive(stretch=stretch)

    def feature_size(self, schema: Schema) -> tuple[int, float]:
        return sum_size(Places(schema), self.order), 1.0

    def feature_map(self, schema: Schema, seed: int) -> HermiteSum:
        """The sum kernel's features, axes as declared."""
        return self._sum(schema, self._axes(schema, {}))

    def questions(self, schema: Schema) -> list[Asked]:
        check_values_declared(self.name, schema)
        counts, embedding = super().questions(schema)
        asked = [counts]
        if self.spread_share:
            spreads = Sum.of_features(SPREADS, NumbersAndSquares(Places(schema)), schema, by="all")
            asked.append(Asked(question=spreads, share=self.spread_share))
        rest = 1 - self.count_share - self.spread_share
        if self.kernel != "product":
            share = rest - (self.product_share if self.kernel == "combined" else 0.0)
            asked.append(Asked(question=embedding.question, share=share))
        share = self.product_share if self.kernel == "combined" else rest
        for name in self._product_names():
            question = self._product_of(name, schema)
            asked.append(Asked(question=question, share=share / self.draws))
        return asked

    def _product_of(self, name: str, schema: Schema) -> Question:
        left, right = product_factors(Places(schema), self.product_order, self.product_columns)
        groups = len(schema.classes)
        if self.products == 1:  # a large one: its factors are multiplied as matrices
            return OuterSum(name=name, bound=1.0, blocks=((left, right),), groups=groups)
        return Sum(name=name, bound=1.0, size=self.products * left * right, groups=groups)

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        answers = {COUNTS: private.ask(COUNTS)}
        if self.spread_share:
            answers[SPREADS] = private.ask(SPREADS, self.map_spec("spread_map", seed))
        before = values_of(answers)
        if self.kernel != "product":
            spec = self.map_spec("sum_map", seed)
            answers[EMBEDDING] = private.ask(EMBEDDING, spec, {"measured": before})
        for name in self._product_names():
            spec = self.map_spec("product_map", seed)
            answer = private.ask(name, spec, {"measured": before, "product": name})
            answers[name] = answer._replace(values=self._shaped(private.schema, answer.values))
        return answers

    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        known, counts = dict(measured), measured[COUNTS].values
        for name in (EMBEDDING, *self._product_names()) if self.denoise else ():
            if name in known:
                answer = known[name]
                cleaned = without_noise(answer.values, counts, answer.noise)
                known[name] = answer._replace(values=cleaned)
        product = super().distill(schema, known, seed=seed, progress=progress)
        return replace(product, measurements=values_of(measured))

    # ---- the maps that are measured -------------------------------------------------------------

    def spread_map(self, schema: Schema, seed: int) -> NumbersAndSquares:
        """For means and spreads."""
        return NumbersAndSquares(Places(schema))

    def sum_map(self, schema: Schema, seed: int, measured: Mapping[str, Any]) -> HermiteSum:
        """For the sum kernel, along ranges that may have been measured before."""
        return self._sum(schema, self._axes(schema, measured))

    def product_map(
        self, schema: Schema, seed: int, measured: Mapping[str, Any], product: str
    ) -> OneBlock | HermiteProducts:
        """For the product kernels of one measurement, which is named."""
        drawn = self._drawn_products(schema, self._axes(schema, measured), seed)[product]
        return OneBlock(drawn) if isinstance(drawn, HermiteProduct) else drawn

    def _shaped(self, schema: Schema, sums: np.ndarray) -> np.ndarray:
        """Sums of one large product as matrices, (classes, left, right)."""
        if self.products > 1:
            return sums
        factors = product_factors(Places(schema), self.product_order, self.product_columns)
        return sums.reshape(len(sums), *factors)

    def _product_names(self) -> list[str]:
        return [] if self.kernel == "sum" else [f"product {n + 1}" for n in range(self.draws)]

    def _axes(self, schema: Schema, measurements: Mapping[str, np.ndarray]) -> Axes:
        columns = Places(schema).columns
        if SPREADS in measurements:
            return axes_from(measurements[SPREADS][0], measurements[COUNTS])
        return Axes(centre=jnp.full(columns, self.centre), unit=jnp.ones(columns))

    def _basis(self, order: int, length: float) -> Hermite:
        return Hermite(order=order, length=length, stretch=self.stretch)

    def _sum(self, schema: Schema, axes: Axes) -> HermiteSum:
        basis = self._basis(self.order, self.length_scale)
        return HermiteSum(basis=basis, places=Places(schema), axes=axes)

    def _drawn_products(
        self, schema: Schema, axes: Axes, seed: int
    ) -> dict[str, HermiteProduct | HermiteProducts]:
        """The product kernels by the names of their questions, drawn with the public seed."""
        basis = self._basis(self.product_order, self.product_length_scale)
        key = jax.random.fold_in(jax.random.key(seed), 2)
        which = basis, Places(schema), axes, self.product_columns
        drawn: dict[str, HermiteProduct | HermiteProducts] = {}
        for number, name in enumerate(self._product_names()):
            own = jax.random.fold_in(key, number)
            if self.products == 1:
                drawn[name] = draw_product(*which, key=own)
            else:
                drawn[name] = draw_products(*which, self.products, key=own)
        return drawn

    def _target(self, schema: Schema, measurements: Mapping[str, np.ndarray], seed: int) -> Any:
        axes, counts = self._axes(schema, measurements), measurements[COUNTS]
        _, weights = class_means(counts, counts)
        whole = None
        if self.kernel != "product":
            whole = class_means(counts, measurements[EMBEDDING])[0], self._sum(schema, axes)
        products = None
        drawn = self._drawn_products(schema, axes, seed)
        if drawn:
            means = [class_means(counts, measurements[name])[0] for name in drawn]
            products = (
                jnp.stack(means),
                jax.tree_util.tree_map(lambda *a: jnp.stack(a), *drawn.values()),
            )
        return weights, whole, products

    def _loss(self, generator: Generator, key: Array, target: Any) -> Array:
        """The sum kernel's distance, and gamma times that of one product, another in every step."""
        weights, whole, products = target
        row_key, draw_key = jax.random.split(key)
        rows = self._rows(generator, row_key, len(weights))
        loss = jnp.float32(0.0)
        if whole is not None:
            means, features = whole
            loss += mean_distance(features(rows), means, weights, self.debias)
        if products is not None:
            at = jax.random.randint(draw_key, (), 0, len(products[0]))
            means, product = jax.tree_util.tree_map(lambda a: a[at], products)
            factor = self.gamma if whole is not None else 1.0
            generated = product(rows)
            distance = product_distance if isinstance(generated, tuple) else mean_distance
            loss += factor * distance(generated, means, weights, self.debias)
        return loss


def product_distance(
    factors: tuple[Array, Array], means: Array, weights: Array, debias: float = 1.0
) -> Array:
    """As `mean_distance`, of rows' outer products, which are never made one by one."""
    left, right = (part.reshape(len(means), -1, part.shape[1]) for part in factors)
    each = left.shape[1]
    own_means = jnp.einsum("cel,cer->clr", left, right) / each
    own = ((left**2).sum(axis=2) * (right**2).sum(axis=2)).mean(axis=1)
    square = unbiased_square((own_means**2).sum(axis=(1, 2)), own, each, debias)
    return (weights * (square - 2 * (own_means * means).sum(axis=(1, 2)))).sum()
