"""`Head`: gradients of a linear head on fixed features, step after step, over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from ...accounting import Charge
from ...data import THREADS, Rows, Store
from ...data.ahead import in_order
from ...schema import Schema
from ..maps import chunk_rows, evaluated, padded
from ..measurement import Measurement
from ..question import (
    Charges,
    Mechanism,
    Question,
    RowAccess,
    Session,
    State,
    Streams,
    Unit,
)
from .outer import UNIT, ProductGrid, SummedProducts

WIDENED = 64
"""Rows whose features are widened to float64 at once: so few that they stay in the cache."""
WEIGHT_BITS = 35
"""Logarithm of the norm of a class's weights in whole steps: its product with a rounded row, whose norm
is below 2^17, and all parts of it are below 2^53."""


@dataclass(frozen=True, kw_only=True)
class Head(Question):
    """Noisy sums of a softmax head's gradients, (size, outputs), each at weights of one's choice.

    The map's features are computed once, and kept in a hidden file where they are many. A step's
    state is `weights` (size, outputs); the gradient of the cross-entropy of a row is the outer
    product of its features and of its predicted chances less its label.

    Privacy:
        A row's gradient, of norm |features| |residual|, is clipped to `bound`; rows without a
        declared label add nothing. Discrete Gaussian noise, every step charged.

    Args:
        bound: Norm to which a row's gradient is clipped.
        size: Number of features.
        outputs: Number of classes.
        count: Number of steps.
    """

    engines: ClassVar[tuple[str, ...]] = ("local", "spark")
    stepwise: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    work: ClassVar[str] = "takes many steps over the same rows"

    bound: float = 1.0
    size: int
    outputs: int
    count: int

    @property
    def steps(self) -> int:
        return self.count

    def measured(self) -> tuple[Charge, ...]:
        coordinates = self.size * self.outputs
        return (
            Charge(
                name=self.name,
                sensitivity=self.bound,
                coordinates=coordinates,
                steps=self.count,
            ),
        )

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> SummedGradients:
        if row_map is not None and row_map.size != self.size:
            raise RuntimeError(f"'{self.name}' was planned for {self.size} features")
        (charge,) = charges
        grid = ProductGrid(
            bound=charge.sensitivity / unit.factor,
            noise=charge.noise,
            left=self.size,
            right=self.outputs,
            rows_at_most=unit.rows_at_most,
        )
        products = SummedProducts((charge,), grid, ((self.size, self.outputs),), 1, True)
        return SummedGradients((charge,), products)


@dataclass(frozen=True)
class SummedGradients(Mechanism):
    """Adds up outer products of features, rounded once, and residuals, made anew in every step."""

    charges: tuple[Charge, ...]
    products: SummedProducts

    def zero(self) -> np.ndarray:
        return self.products.zero()

    def rows_at_once(self, schema: Schema, row_map: Any) -> int:
        return chunk_rows(self.products.grid.left, schema.slots)

    def accumulate(self, partial: np.ndarray, batch: Rows, mapped: Any) -> np.ndarray:
        """Add rows whose rounded features, their norms and residuals are given, in place."""
        rounded, norms, residuals = mapped
        right = self.products.grid.round_right(residuals, norms, batch.weights)
        right[batch.labels < 0] = 0.0
        for at in _pieces(len(right)):
            one_group = np.zeros(len(right[at]), np.int64)
            self.products.add(partial, [rounded[at]], [right[at]], one_group)
        return partial

    def session(self, access: RowAccess, row_map: Any) -> Session:
        return _HeadSession(self, access, row_map)

    def at(self, state: State) -> Mechanism:
        return GradientsAt(self.charges, self.products, self.whole(state["weights"]))

    def residuals(
        self, weights: WholeWeights, rounded: np.ndarray, norms: np.ndarray, labels: Any, size: int
    ) -> np.ndarray:
        """Of rows whose rounded features are given: chances less labels, at most `size` rows at once."""
        logits = weights.products(rounded) * (norms / UNIT)[:, None]
        arrays = (padded(array, size) for array in (logits.astype(np.float32), labels))
        return np.asarray(_residuals(*arrays))[: len(norms)]

    def whole(self, weights: Any) -> WholeWeights:
        """The weights of a step, as planned."""
        if np.shape(weights) != self.products.blocks[0]:
            raise RuntimeError(f"weights of shape {np.shape(weights)}, not as planned")
        return WholeWeights.of(weights)

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (flat,) = self.products.finish(partial, stream)
        shape = self.products.blocks[0]
        return (flat._replace(values=flat.values.reshape(shape)),)


@dataclass(frozen=True)
class GradientsAt(SummedGradients):
    """One step where no features are kept: they are made again."""

    weights: WholeWeights

    def evaluate(self, row_map: Any, batch: Rows, schema: Schema) -> Any:
        size = self.rows_at_once(schema, row_map)
        phi = evaluated(row_map, size, schema.expand(batch.cells))
        rounded, norms = self.products.grid.round_left(phi)
        return rounded, norms, self.residuals(self.weights, rounded, norms, batch.labels, size)


class _HeadSession(Session):
    """Keeps all rows' features, rounded, from the first step on that is not known from before."""

    def __init__(self, mechanism: SummedGradients, access: RowAccess, features: Any) -> None:
        self._mechanism, self._access, self._features = mechanism, access, features
        self._size = mechanism.rows_at_once(access.schema, features)

    @cached_property
    def _rounded(self) -> tuple[np.ndarray, np.ndarray]:
        """The rounded features of all rows, and the norms they had."""
        grid, schema = self._mechanism.products.grid, self._access.schema
        store, norms = Store(), [np.zeros(0)]

        def features(batch: Rows) -> tuple[np.ndarray, np.ndarray]:
            phi = evaluated(self._features, self._size, schema.expand(batch.cells))
            return grid.round_left(phi)

        with closing(in_order(features, self._access.batches(self._size))) as parts:
            for rounded, lengths in parts:
                store.add(rounded)
                norms.append(lengths)
        return store.close(grid.left), np.concatenate(norms)

    def partial(self, step: int, state: State) -> np.ndarray:
        mechanism, size = self._mechanism, self._size
        rounded, norms = self._rounded
        weights = mechanism.whole(state["weights"])

        rows = self._access.rows

        def share(number: int) -> np.ndarray:
            total = mechanism.zero()
            for start in range(number * size, len(norms), THREADS * size):
                at = slice(start, start + size)
                batch, kept = rows.take(at), (rounded[at], norms[at])
                residuals = mechanism.residuals(weights, *kept, batch.labels, size)
                total = mechanism.accumulate(total, batch, (*kept, residuals))
            return total

        with ThreadPoolExecutor(THREADS) as pool:
            return reduce(mechanism.merge, pool.map(share, range(THREADS)))


class WholeWeights(NamedTuple):
    """Weights in whole steps, so small that their products with rounded features are exact in float64
    in any order: a row's logits depend on no other row, and on no processor."""

    steps: np.ndarray
    unit: np.ndarray
    """Steps of 1, one number for each class."""

    @classmethod
    def of(cls, weights: Any) -> WholeWeights:
        wide = np.asarray(weights, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # of a teacher that diverged
            norms = np.sqrt((wide**2).sum(axis=0))
            unit = np.exp2(WEIGHT_BITS - np.ceil(np.log2(np.where(norms > 0, norms, 1.0))))
            return cls(np.rint(wide * unit), unit)

    def products(self, rounded: np.ndarray) -> np.ndarray:
        """Products with rows of whole features."""
        products = np.empty((len(rounded), len(self.unit)))
        for at in _pieces(len(rounded)):
            np.matmul(rounded[at].astype(np.float64), self.steps, out=products[at])
        with np.errstate(divide="ignore", invalid="ignore"):
            return products / self.unit


def _pieces(rows: int) -> Iterator[slice]:
    return (slice(start, start + WIDENED) for start in range(0, rows, WIDENED))


@jax.jit
@partial(jax.vmap, in_axes=(0, 0))
def _residuals(logits: Any, label: Any) -> Any:
    """The cross-entropy's derivative by the outputs of a linear head, row by row."""
    return jax.nn.softmax(logits) - jax.nn.one_hot(label, len(logits))
