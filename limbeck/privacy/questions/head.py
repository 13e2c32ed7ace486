"""`Head`: gradients of a linear head on fixed features, step after step, over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import numpy as np

from ...accounting import Charge
from ...data import Rows, Store
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
        self.products.add(partial, [rounded], [right], np.zeros(len(right), np.int64))
        return partial

    def session(self, access: RowAccess, row_map: Any) -> Session:
        return _HeadSession(self, access, row_map)

    def at(self, state: State) -> Mechanism:
        return GradientsAt(self.charges, self.products, state["weights"])

    def residuals(
        self, weights: Any, rounded: Any, norms: Any, labels: np.ndarray, size: int
    ) -> Any:
        """Of rows whose rounded features are given: chances less labels, at most `size` rows at once."""
        if np.shape(weights) != self.products.blocks[0]:
            raise RuntimeError(f"weights of shape {np.shape(weights)}, not as planned")
        arrays = (rounded, (norms / UNIT).astype(np.float32), labels)
        unpadded = _residuals(weights, *(padded(array, size) for array in arrays))
        return np.asarray(unpadded)[: len(norms)]

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (flat,) = self.products.finish(partial, stream)
        shape = self.products.blocks[0]
        return (flat._replace(values=flat.values.reshape(shape)),)


@dataclass(frozen=True)
class GradientsAt(SummedGradients):
    """One step where no features are kept: they are made again."""

    weights: Any

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
        for batch in self._access.batches(self._size):
            phi = evaluated(self._features, self._size, schema.expand(batch.cells))
            rounded, lengths = grid.round_left(phi)
            store.add(rounded)
            norms.append(lengths)
        return store.close(grid.left), np.concatenate(norms)

    def partial(self, step: int, state: State) -> np.ndarray:
        total, size = self._mechanism.zero(), self._size
        rounded, norms = self._rounded
        for start, batch in enumerate(self._access.rows.chunks(size)):
            at = slice(start * size, (start + 1) * size)
            features = rounded[at], norms[at]
            residuals = self._mechanism.residuals(state["weights"], *features, batch.labels, size)
            total = self._mechanism.accumulate(total, batch, (*features, residuals))
        return total


@jax.jit
def _residuals(weights: Any, rounded: Any, scale: Any, labels: Any) -> Any:
    return jax.vmap(softmax_residual, in_axes=(None, 0, 0))(
        weights, rounded * scale[:, None], labels
    )


def softmax_residual(weights: Any, phi: Any, label: Any) -> Any:
    """The cross-entropy's derivative by the outputs of a linear head, for one row."""
    return jax.nn.softmax(phi @ weights) - jax.nn.one_hot(label, weights.shape[1])
