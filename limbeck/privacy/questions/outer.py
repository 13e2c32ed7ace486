"""`OuterSum`: contributions that are outer products, given by their factors and added up.

A contribution left (x) right has norm |left| |right|, so it is clipped without being made. Both
factors are rounded to 16 bits, left after scaling to norm 1, right after clipping. So products are
whole numbers of at most 2^32: 2^18 of them (`MOST_ROWS`) sum exactly in float64 and 2^30 in int64, in
any order, and one row changes the total by at most the bound. Rounding the total to the noise's
grid, once, adds half a step per coordinate to each of two neighbours, which the clip leaves room for.

Several products side by side are bounded together: left factors are scaled to norm 1 one by one, and
right ones clipped all together. As far as norms go, that is one outer product of the tallest left
factor and all right ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...accounting import Charge
from ...data import Rows
from ...errors import LimbeckError
from ...schema import Schema
from ..discrete import discrete_gaussian
from ..grid import MARGIN, clip_rows, grid_step, weighted
from ..maps import chunk_rows, evaluated_in_pieces
from ..measurement import Measurement
from ..noise import Stream
from ..ones import Ones
from ..question import Charges, Mechanism, Question, Streams, Unit

UNIT = 1 << 16
"""Steps of a rounded factor."""
MOST_ROWS = 1 << 18
"""Rows that are added up at once."""
SCALED_EXACTLY = 2.0**44
"""Grid steps up to which float64, two roundings of 2^-53 each, errs by less than 0.005 of one."""


@dataclass(frozen=True, kw_only=True)
class OuterSum(Question):
    """Noisy sums of outer products per class, (classes, size), or in one sum, (1, size). Rows without
    a declared label enter none.

    Privacy:
        As `Sum`; the norm that is clipped is that of all blocks together.

    Args:
        bound: Norm to which a row's contribution is clipped.
        blocks: Sizes of the two factors of each block, at most.
        groups: Number of classes; 1: one sum, of a map that sees a row's label if `labelled`.
        labelled: Whether the map sees a row's label.
    """

    engines: ClassVar[tuple[str, ...]] = ("local", "spark", "jax", "sql")
    persons: ClassVar[bool] = True

    bound: float
    blocks: tuple[tuple[int, int], ...]
    groups: int = 1
    labelled: bool = False

    def runs_on(self, engine: str) -> bool:
        return super().runs_on(engine) and not (engine == "sql" and self.labelled)

    def measured(self) -> tuple[Charge, ...]:
        coordinates = self.groups * sum(left * right for left, right in self.blocks)
        return (Charge(name=self.name, sensitivity=self.bound, coordinates=coordinates),)

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> SummedProducts:
        blocks = self.blocks if row_map is None else tuple(row_map.blocks)
        pairs = zip(blocks, self.blocks, strict=len(blocks) == len(self.blocks))
        if len(blocks) != len(self.blocks) or any(a > c or b > d for (a, b), (c, d) in pairs):
            raise RuntimeError(f"'{self.name}' measures more coordinates than were planned")
        (charge,) = charges
        sizes = {"left": max(a for a, _ in blocks), "right": sum(b for _, b in blocks)}
        sizes["rows_at_most"] = unit.rows_at_most
        grid = ProductGrid(bound=charge.sensitivity / unit.factor, noise=charge.noise, **sizes)
        return SummedProducts((charge,), grid, blocks, self.groups, self.labelled)


@dataclass(frozen=True, kw_only=True)
class ProductGrid:
    """How two factors are clipped and put on a grid.

    Args:
        bound: Largest norm of one row's contribution.
        noise: Standard deviation of the noise to be added; 0 for none.
        left: Size of the tallest left factor.
        right: Size of all right factors together.
        rows_at_most: Of a person, whose products, weighted, are bounded together.
    """

    bound: float
    noise: float
    left: int
    right: int
    rows_at_most: int = 1

    @property
    def step(self) -> float:
        """Width of a grid step of the total."""
        return grid_step(self.bound, self.noise)

    @property
    def limit(self) -> float:
        """Norm, in steps of a factor, to which the right one is clipped before rounding. Those of a
        person's rows, weighted, add up to no more, and are rounded one by one."""
        whole = 1.0 - 1.01 * math.sqrt(self.left * self.right) * self.step / self.bound
        tallest = 1.0 + 0.5 * math.sqrt(self.left) / UNIT  # the left factor's norm, rounded
        limit = UNIT * whole / tallest - 0.5 * self.rows_at_most * math.sqrt(self.right) - 1
        if limit <= 0:
            raise LimbeckError(
                f"{self.left} x {self.right} features are too many for this much noise: the grid is "
                "coarser than a contribution. Use fewer features or a larger epsilon."
            )
        return limit

    def round_left(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Left factors scaled to norm 1 in whole steps (float32), and the norms they had."""
        wide = rows.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * (1 + MARGIN)
        usable = np.isfinite(norms) & (norms > 0)
        wide[~usable], norms[~usable] = 0.0, 0.0
        wide *= np.divide(UNIT, norms, out=np.zeros_like(norms), where=usable)[:, None]
        return np.rint(wide, out=wide).astype(np.float32), norms

    def round_right(
        self, rows: np.ndarray, left_norms: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Right factors times the left one's norm, clipped, times what a row counts for, in whole
        steps (float64)."""
        with np.errstate(over="ignore", invalid="ignore"):
            wide = rows.astype(np.float64) * (left_norms * (UNIT / self.bound))[:, None]
        return np.rint(weighted(clip_rows(wide, self.limit, 1.0), weights))

    def noisy(self, total: np.ndarray, stream: Stream) -> np.ndarray:
        """Whole products (groups, size) as grid steps, with noise, in real units."""
        out = np.empty(total.shape)
        for group, into in zip(total, out, strict=True):
            steps = self.in_steps(group)
            if self.noise > 0:
                steps += discrete_gaussian(stream, len(group))
            np.multiply(steps, self.step, out=into)
        return out

    def in_steps(self, products: np.ndarray) -> np.ndarray:
        """Whole products in whole grid steps, each rounded by at most 0.505 of one."""
        ratio = self.bound / UNIT**2 / self.step
        scaled = products * ratio
        whole = np.rint(scaled).astype(np.int64)
        over, under = ratio.as_integer_ratio()
        for at in np.flatnonzero(np.abs(scaled) > SCALED_EXACTLY):  # in unlimited integers
            whole[at] = (2 * int(products[at]) * over + under) // (2 * under)
        return whole


@dataclass(frozen=True)
class SummedProducts(Mechanism):
    """Rounds and adds up outer products, block by block."""

    charges: tuple[Charge, ...]
    grid: ProductGrid
    blocks: tuple[tuple[int, int], ...]
    groups: int
    labelled: bool

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a contribution

    def zero(self) -> np.ndarray:
        return np.zeros((self.groups, sum(a * b for a, b in self.blocks)), np.int64)

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        size, piece = self._sizes(schema, row_map)
        return size // piece * piece

    def _sizes(self, schema: Schema, row_map: Any) -> tuple[int, int]:
        """How many rows are added up at once, and how many the map works on."""
        size = chunk_rows(sum(a + b for a, b in self.blocks), schema.slots, row_map)
        return size, min(getattr(row_map, "chunk", size), size)

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> Any:
        """Factors of each block."""
        slots = schema.expand(batch.cells)
        if hasattr(row_map, "ones"):
            size = self._sizes(schema, row_map)[1]
            return Ones.told(evaluated_in_pieces(row_map.ones, size, slots), row_map.sizes)
        seen = (slots, batch.labels) if self.labelled else (slots,)
        return evaluated_in_pieces(row_map, self._sizes(schema, row_map)[1], *seen)

    def accumulate(self, partial: np.ndarray, batch: Rows, mapped: Any) -> np.ndarray:
        """The partial sum with a batch added, in place: it may be large."""
        if isinstance(mapped, Ones):
            self.add_ones(partial, mapped, batch.labels, batch.weights)
        else:
            self.add(partial, *self.round(mapped, batch.weights), batch.labels)
        return partial

    def round(
        self, pairs: Sequence[Any], weights: np.ndarray | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Left factors of norm 1 and right ones clipped together, in whole steps."""
        sizes = tuple((left.shape[1], right.shape[1]) for left, right in pairs)
        if sizes != self.blocks:
            raise RuntimeError(f"factors of {sizes}, planned {self.blocks}")
        lefts, rights = [], []
        for left, right in pairs:
            rounded, norms = self.grid.round_left(left)
            lefts.append(rounded)
            with np.errstate(over="ignore", invalid="ignore"):
                rights.append(right.astype(np.float64) * norms[:, None])
        ones = np.ones(len(rights[0]))
        clipped = self.grid.round_right(np.concatenate(rights, axis=1), ones, weights)
        return lefts, np.split(clipped, np.cumsum([b for _, b in self.blocks])[:-1], axis=1)

    def add(self, total: np.ndarray, lefts: Any, rights: Any, groups: np.ndarray) -> None:
        """Add some rounded rows to a total, in place: totals may be large."""
        for group, member in self._members(groups):
            start = 0
            for left, right in zip(lefts, rights, strict=True):
                # All rows in it: nothing to pick out.
                some = (left, right) if member.all() else (left[member], right[member])
                part = some[0].T.astype(np.float64) @ some[1]
                total[group, start : start + part.size] += part.astype(np.int64).ravel()
                start += part.size

    def add_ones(
        self, total: np.ndarray, ones: Ones, groups: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Add products of ones and zeros with themselves to a total, in place."""
        examples, own, kind = ones.kinds(weights)
        (lefts,), (rights,) = self.round([(examples, examples)], own)
        products = lefts[:, 0].astype(np.int64) * rights[:, 0].astype(np.int64)
        features = ones.features()  # counts of up to 2^24 rows are exact in float32
        for group, member in self._members(groups):
            for number, product in enumerate(products):
                some = features[member & (kind == number)]
                total[group] += product * (some.T @ some).astype(np.int64).ravel()

    def _members(self, groups: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Which rows are in each group."""
        if len(groups) > MOST_ROWS:
            raise RuntimeError(f"more than {MOST_ROWS} rows at once would not sum exactly")
        for group in range(self.groups):
            yield group, groups == group if self.groups > 1 else groups >= 0

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        return (Measurement.under(charge, self.grid.noisy(partial, stream(charge))),)
