"""`Gradients`: sums of clipped gradients over Poisson batches, step after step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...accounting import Charge
from ...data import Rows, Store
from ...errors import LimbeckError
from ..maps import padded
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
from .gradient_sum import GradientSum
from .sampling import PoissonBatches, Records

FEATURE_ROWS = 512
"""Rows whose features are made at once."""


@dataclass(frozen=True, kw_only=True)
class Gradients(Question):
    """Noisy sums (size,) of rows' gradients at parameters of one's choice, each over a fresh batch.

    The map is a loss(parameters, slots, label) of one row; or `RowBlocks`, which makes gradients some
    rows at a time; or `RowGradients`, where they are never made one by one. A step's state is
    `parameters`, flat. A map that has `row_features` is given these instead of slots: they are made
    once, before the first step.

    Privacy:
        A row enters a step with probability `rate`, by a coin of its own, its gradient clipped so
        that, all rounding included, it moves the sum by at most `clip`. Rows without a declared
        label add nothing. Discrete Gaussian noise. Divide by a public batch size, never the true one.
        Where persons are protected, a person enters, by one coin, with all kept rows, of which each
        counts for its part of one.

    Args:
        clip: Most by which a row moves the sum.
        size: Entries of a gradient.
        rate: Probability with which a row, or a person, enters a step.
        rows: Public number of rows, for the fixed shape of a batch; the true number may be any: a
            batch that overflows is processed in further pieces.
        count: Number of steps.
        parameters: Number of parameters, where a gradient has another number of entries.
    """

    stepwise: ClassVar[bool] = True
    persons: ClassVar[bool] = True
    work: ClassVar[str] = "draws batches of rows at random"
    sums: ClassVar[type[GradientSum]] = GradientSum
    """How what a batch gives is clipped and put on the grid."""

    clip: float
    size: int
    rate: float
    rows: int
    count: int
    parameters: int | None = None

    @property
    def steps(self) -> int:
        return self.count

    def measured(self) -> tuple[Charge, ...]:
        return (
            Charge(
                name=self.name,
                sensitivity=self.clip,
                coordinates=self.size,
                sampling=self.rate,
                steps=self.count,
            ),
        )

    def exact(self, row_map: Any) -> bool:
        return not hasattr(row_map, "prepare")

    def calibrated(self, charges: Charges, unit: Unit, row_map: Any = None) -> SummedBatches:
        if unit.factor != 1:
            raise LimbeckError("Poisson sampling is accounted under add/remove only.")
        (charge,) = charges
        batches = PoissonBatches(self.rate, self.rows)
        grid = self.sums(
            sensitivity=charge.sensitivity,
            noise=charge.noise,
            size=self.size,
            shape=batches.shape,
            rows_at_most=unit.rows_at_most,
        )
        return SummedBatches((charge,), grid, batches, self.parameters or self.size)


@dataclass(frozen=True)
class SummedBatches(Mechanism):
    """Draws a batch, clips its rows' gradients and adds them up in whole grid steps."""

    charges: tuple[Charge, ...]
    grid: GradientSum
    batches: PoissonBatches
    parameters: int

    def __post_init__(self) -> None:
        self.grid.limit  # noqa: B018  refuses a grid that cannot hold a gradient

    def zero(self) -> np.ndarray:
        return np.zeros(self.grid.size, np.int64)

    def accumulate(self, partial: np.ndarray, batch: Rows, batch_sum: Any) -> np.ndarray:
        """A sum with that of a whole Poisson batch added."""
        return self.merge(partial, batch_sum)

    def session(self, access: RowAccess, row_map: Any) -> Session:
        return _Batches(self, access, row_map)

    def finish(self, partial: np.ndarray, stream: Streams) -> tuple[Measurement, ...]:
        (charge,) = self.charges
        return (Measurement.under(charge, self.grid.finalise(partial, stream(charge))),)


class _Batches(Session):
    """Knows every record by a secret name, which throws its coins."""

    def __init__(self, mechanism: SummedBatches, access: RowAccess, source: Any) -> None:
        self._mechanism, self._access, self._source = mechanism, access, source
        self._name = mechanism.charges[0].name

    @cached_property
    def _records(self) -> Records:
        return Records(self._access.rows, self._access.stream(f"{self._name}/records"))

    @cached_property
    def _features(self) -> np.ndarray:
        """Of all rows, some at a time in one shape, so that a row's do not depend on how many others
        there are; in a hidden file where they are many."""
        store, schema = Store(), self._access.schema
        nothing = np.zeros((FEATURE_ROWS, schema.slots), np.float32)
        width = np.shape(self._source.row_features(nothing))[1]  # known without any row, too
        for batch in self._access.batches(FEATURE_ROWS):
            slots = padded(schema.expand(batch.cells), FEATURE_ROWS)
            features = np.asarray(self._source.row_features(slots), np.float32)
            store.add(features[: len(batch)])
        return store.close(width)

    def partial(self, step: int, state: State) -> np.ndarray:
        parameters, grid = state["parameters"], self._mechanism.grid
        if np.size(parameters) != self._mechanism.parameters:
            raise RuntimeError(
                f"'{self._name}': {np.size(parameters)} parameters, "
                f"{self._mechanism.parameters} planned"
            )
        coins = self._access.stream(f"{self._name}/{step}/batch")
        batch = self._mechanism.batches.draw(self._records, coins)
        # Parameters are public. Ones that diverged give no gradient, whatever the rows: a sum that is
        # not a number would tell whether the batch was empty.
        usable = np.isfinite(parameters).all()
        weights = self._access.rows.weights
        part = batch if usable else batch[:0]
        return grid.total(self._source, parameters, part, self._load, weights)

    def _load(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = self._mechanism.batches.shape
        labels = padded(self._access.rows.labels[places], shape, with_value=-1)
        if hasattr(self._source, "row_features"):
            return padded(np.asarray(self._features[places]), shape), labels
        rows = self._access.rows.take(places)
        return padded(self._access.schema.expand(rows.cells), shape), labels
