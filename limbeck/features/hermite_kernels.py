"""Sum and product kernels over the columns of a row: Hermite features of numbers, indicators of
categories.

A column contributes a vector of norm at most 1, whatever its kind, and a pixel is a column. Their
sum kernel puts the vectors of all columns side by side; a product kernel multiplies those of a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..draws import normal, uniform
from ..schema import Category, Image, Schema
from .hermite import Hermite


class Places(eqx.Module):
    """Where an expanded row holds its columns' numbers, gaps and categories."""

    values: tuple[int, ...] = eqx.field(static=True)
    """Slot of each column's number; -1 for categories."""
    gaps: tuple[int, ...] = eqx.field(static=True)
    """Slot that says that a column's number is missing; -1 where there is none."""
    codes: tuple[int, ...] = eqx.field(static=True)
    """All slots that are not numbers: values of categories, and gaps."""
    owners: tuple[int, ...] = eqx.field(static=True)
    """The columns of those slots."""

    def __init__(self, schema: Schema) -> None:
        values: list[int] = []
        gaps: list[int] = []
        codes: list[int] = []
        owners: list[int] = []
        for column, at in schema.blocks():
            if isinstance(column, Image):
                values += range(at.start, at.stop)
                gaps += [-1] * column.slots
                continue
            number = not isinstance(column, Category)
            values.append(at.start if number else -1)
            gaps.append(at.start + 1 if number and column.slots > 1 else -1)
            others = range(at.start + number, at.stop)
            codes += others
            owners += [len(values) - 1] * len(others)
        self.values, self.gaps = tuple(values), tuple(gaps)
        self.codes, self.owners = tuple(codes), tuple(owners)

    @property
    def columns(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Columns that hold a number."""
        return tuple(c for c, at in enumerate(self.values) if at >= 0)


class Axes(eqx.Module):
    """Where each column's number is counted from, and in which unit: public, or measured before."""

    centre: Float[Array, " columns"]
    unit: Float[Array, " columns"]
    bent: bool = eqx.field(static=True, default=False)
    """Whether numbers far from the centre are drawn in, so that none is lost beyond a range."""

    def __call__(self, x: Float[Array, "rows some"], columns: Any) -> Float[Array, "rows some"]:
        """Numbers of some columns in units of their ranges, from -1/2 to 1/2 or little more."""
        x = (x - self.centre[columns]) / self.unit[columns]
        return 0.5 * jnp.tanh(2 * x) if self.bent else x


class HermiteSum(eqx.Module):
    """Features of all columns side by side, of norm at most 1: their mean is every column's own
    distribution, one by one."""

    basis: Hermite
    places: Places
    axes: Axes
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return sum_size(self.places, self.basis.order)

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        numbers = np.asarray(self.places.numbers, int)
        x = rows[:, np.asarray(self.places.values, int)[numbers]]
        present = _present(rows, np.asarray(self.places.gaps, int)[numbers])
        # Order after order, not number after number: whole rows at a time, which is quicker.
        parts = [phi * present for phi in self.basis.orders(self.axes(x, numbers))]
        parts.append(rows[:, np.asarray(self.places.codes, int)])
        return jnp.concatenate(parts, axis=1) / jnp.sqrt(jnp.float32(self.places.columns))


class HermiteProduct(eqx.Module):
    """The outer product of some columns' features, as two factors; of norm at most 1.

    Every column gets a vector of one size. A category of more values than that gets random unit
    vectors, drawn anew with the columns, rather than a false order of its values.
    """

    basis: Hermite
    places: Places
    axes: Axes
    chosen: Int[Array, " some"]
    """The columns that are multiplied: drawn without looking at rows, and public."""
    vectors: Float[Array, "codes width"]
    """Unit vector that stands for each slot that is not a number."""
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def width(self) -> int:
        """Features of one column."""
        return product_width(self.places, self.basis.order)

    @property
    def left(self) -> int:
        return self.width ** (len(self.chosen) // 2)

    @property
    def right(self) -> int:
        return self.width ** (len(self.chosen) - len(self.chosen) // 2)

    def __call__(
        self, rows: Float[Array, "rows slots"]
    ) -> tuple[Float[Array, "rows left"], Float[Array, "rows right"]]:
        blocks = self._blocks(rows)
        half = blocks.shape[1] // 2
        return _multiplied(blocks[:, :half]), _multiplied(blocks[:, half:])

    def _blocks(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows some width"]:
        """The vectors of the chosen columns."""
        slots = jnp.asarray(self.places.values)[self.chosen]
        present = _present(rows, jnp.asarray(self.places.gaps)[self.chosen]) * (slots >= 0)
        phi = self.basis(self.axes(rows[:, slots], self.chosen)) * present[..., None]
        phi = jnp.pad(phi, [(0, 0), (0, 0), (0, self.width - self.basis.size)])
        if self.places.codes:
            belongs = jnp.asarray(self.places.owners)[:, None] == self.chosen
            codes = rows[:, np.asarray(self.places.codes, int)]
            # One product, in which rows are not repeated for each chosen column.
            vectors = belongs[:, :, None] * self.vectors[:, None]
            phi += (codes @ vectors.reshape(len(vectors), -1)).reshape(phi.shape)
        return phi


class HermiteProducts(eqx.Module):
    """Several products side by side, of norm at most 1 together: many small ones at one price."""

    basis: Hermite
    places: Places
    axes: Axes
    chosen: Int[Array, "products some"]
    vectors: Float[Array, "products codes width"]
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        products, columns = self.chosen.shape
        return int(products * product_width(self.places, self.basis.order) ** columns)

    def one(self, chosen: Array, vectors: Array) -> HermiteProduct:
        """The product over some columns."""
        return HermiteProduct(
            basis=self.basis, places=self.places, axes=self.axes, chosen=chosen, vectors=vectors
        )

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        left, right = jax.vmap(lambda c, v: self.one(c, v)(rows))(self.chosen, self.vectors)
        products = jnp.einsum("pnl,pnr->nplr", left, right).reshape(len(rows), -1)
        return products / jnp.sqrt(jnp.float32(len(left)))


def sum_size(places: Places, order: int) -> int:
    """Number of features of the sum kernel."""
    return len(places.numbers) * (order + 1) + len(places.codes)


def product_width(places: Places, order: int) -> int:
    """Features of one column in a product: one more than orders where numbers may be missing."""
    return order + 1 + (max(places.gaps) >= 0)


def product_factors(places: Places, order: int, columns: int) -> tuple[int, int]:
    """Sizes of the two factors of a product over so many columns."""
    width, half = product_width(places, order), min(columns, places.columns) // 2
    return width**half, width ** (min(columns, places.columns) - half)


def draw_products(
    basis: Hermite, places: Places, axes: Axes, columns: int, count: int, *, key: PRNGKeyArray
) -> HermiteProducts:
    """Products over columns chosen at random, with fresh vectors for large categories."""
    column_key, vector_key = jax.random.split(key)
    order = jnp.argsort(uniform(column_key, (count, places.columns)), axis=1)
    return HermiteProducts(
        basis=basis,
        places=places,
        axes=axes,
        chosen=jnp.sort(order[:, : min(columns, places.columns)], axis=1),
        vectors=_vectors(places, count, product_width(places, basis.order), vector_key),
    )


def draw_product(
    basis: Hermite, places: Places, axes: Axes, columns: int, *, key: PRNGKeyArray
) -> HermiteProduct:
    """One product over columns chosen at random, given by its factors: it may be too large to be written
    out."""
    drawn = draw_products(basis, places, axes, columns, 1, key=key)
    return drawn.one(drawn.chosen[0], drawn.vectors[0])


def _vectors(places: Places, count: int, width: int, key: PRNGKeyArray) -> Array:
    """A unit vector for each slot that is not a number: axes where they suffice, else random."""
    vectors = np.array(normal(key, (count, len(places.codes), width)))
    vectors /= 1.0001 * np.linalg.norm(vectors, axis=2, keepdims=True)
    owners = np.asarray(places.owners, int)
    for column in np.unique(owners):
        mine = np.flatnonzero(owners == column)
        if places.values[column] >= 0:
            vectors[:, mine] = np.eye(width)[[-1]]  # a gap: apart from the orders of a number
        elif len(mine) <= width:
            vectors[:, mine] = np.eye(width)[: len(mine)]
    return jnp.asarray(vectors, jnp.float32)


def _present(rows: Array, gaps: Sequence[int] | np.ndarray | Array) -> Array:
    """1 for each number that is there and 0 for one that is missing; between where a row is a generator's."""
    gaps = jnp.asarray(gaps)
    return 1.0 - jnp.where(gaps >= 0, rows[:, jnp.maximum(gaps, 0)], 0.0)


def _multiplied(blocks: Float[Array, "rows some width"]) -> Float[Array, "rows size"]:
    """Outer products along the second axis; of none, the number 1."""
    rows, some, _ = blocks.shape
    products = jnp.ones((rows, 1), blocks.dtype)
    for at in range(some):
        products = (products[:, :, None] * blocks[:, at, None, :]).reshape(rows, -1)
    return products
