"""`Private`: the only holder of rows. Every answer is noised and was charged before it is given.

A run is planned first: a list of charges, with noise calibrated for all of them together and
booked in the ledger. `Private` executes each charge at most once, by name, with exactly the
sensitivity, noise, sampling and number of steps that the charge states. Methods hold no rows and
can only ask; a wrong norm bound costs them accuracy, never privacy.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import numpy as np
from scipy.special import ndtri

from .._check import DataError, LimbeckError
from .._columns import Category, Numeric, Values, canonical
from .._data import Dataset, Rows, Store
from .._schema import Schema
from ._accountant import Charge
from ._ballots import Ballot, Directions
from ._budget import Budget
from ._discrete import discrete_laplace
from ._gradients import GradientSum
from ._job import Job, JobPart
from ._noise import Noise
from ._outer import UNIT, OuterBlocks, OuterSum
from ._questions import (
    BlockFactors,
    Factors,
    FeatureMap,
    GroupedFeatures,
    LabelledFactors,
    RowBlocks,
    RowGradients,
)
from ._sampling import PoissonBatches, Records
from ._sum import GridSum
from ._teachers import Ensemble, Shards, Teacher

CHUNK_BYTES = 1 << 26
"""Memory for one chunk of features (64 MiB, in float64)."""

OTHER = "(other)"
"""Catch-all value of a category whose frequent values were estimated."""

SURELY = 4.5
"""Deviations of noise by which a bin's count must exceed zero to be taken for rows: some two hundred bins of noise
reach 3.5 in four runs of a hundred, 4.5 in less than one of a thousand."""


class Private:
    """Holds the rows of one run and answers the planned questions about them.

    Args:
        data: The rows.
        charges: The plan: what may be asked, at which noise.
        budget: Epsilon, delta and adjacency of the run.
        noise: The run's randomness.
        job: Where noisy answers are kept, so that a killed run resumes without paying twice.
        progress: Called with a phase and a fraction done.
    """

    def __init__(
        self,
        data: Dataset,
        charges: Sequence[Charge],
        budget: Budget,
        noise: Noise,
        job: Job | JobPart | None = None,
        progress: Callable[[str, float], None] = lambda phase, done: None,
    ) -> None:
        self._data, self._budget, self._noise, self._job = data, budget, noise, job
        self._planned = {c.name: c for c in charges}
        if len(self._planned) < len(charges):
            raise RuntimeError("two charges of a plan have the same name")
        self._asked: dict[str, int] = {}
        self._progress = progress
        self.schema = data.schema

    def __repr__(self) -> str:
        return f"Private({self.schema.dataset!r})"

    # ---- questions --------------------------------------------------------------------------

    def sum(self, name: str, features: FeatureMap, *, by_label: bool = True) -> np.ndarray:
        """Noisy sum of features over the rows, per class: (classes, size), or (1, size).

        Privacy:
            Each row's features are clipped to the charge's sensitivity and enter one class's sum;
            rows without a declared label enter none. Discrete Gaussian noise.
        """
        groups = len(self.schema.classes) if by_label else 1

        def evaluate(slots: np.ndarray, labels: np.ndarray) -> tuple[Any, np.ndarray]:
            return _evaluate(features, slots), labels if by_label else np.zeros_like(labels)

        return self._summed(name, groups, features.size, evaluate)

    def grouped_sum(self, name: str, features: GroupedFeatures) -> np.ndarray:
        """Noisy sum of features over the rows of each group, (groups, size).

        Privacy:
            As `sum`; a row enters the one group that the features name, or none.
        """

        def evaluate(slots: np.ndarray, labels: np.ndarray) -> tuple[Any, np.ndarray]:
            phi, group = _evaluate(features, slots, labels)
            return phi, np.where(labels < 0, -1, np.asarray(group))

        # Features may know how many rows are best worked on at once: public, as all of them is.
        chunk = min(getattr(features, "chunk", 0), 4096)
        return self._summed(name, features.groups, features.size, evaluate, chunk)

    def outer(self, name: str, factors: Factors, *, by_label: bool = True) -> np.ndarray:
        """Noisy sum of outer products of two factors, per class: (classes, left, right).

        Privacy:
            As `sum`, with the product of the factors' norms clipped to the sensitivity.
        """
        found = self.outer_blocks(name, _OneBlock(factors), by_label=by_label)
        return found.reshape(len(found), factors.left, factors.right)

    def outer_blocks(
        self, name: str, factors: BlockFactors | LabelledFactors, *, by_label: bool = True
    ) -> np.ndarray:
        """Noisy sum of features made of several outer products, per class: (classes, size). Or, if not
        by label, one sum (1, size) of factors that may look at a row's label.

        Privacy:
            As `sum`; the norm that is clipped is that of all blocks together.
        """
        groups, blocks = len(self.schema.classes) if by_label else 1, factors.blocks
        charge = self._charge_for(name, groups * sum(a * b for a, b in blocks), "discrete gaussian")
        bound = charge.sensitivity / self._factor
        grid = OuterBlocks(bound=bound, noise=charge.noise, groups=groups, blocks=blocks)
        size = chunk_rows(sum(a + b for a, b in blocks), self.schema.slots)
        piece = min(getattr(factors, "chunk", size), size)

        def measure() -> np.ndarray:
            total = grid.zero()
            for chunk in self._chunks(name, size // piece * piece):
                labels = chunk.labels if by_label else np.minimum(chunk.labels, 0)
                bare = by_label or isinstance(factors, _OneBlock)
                seen = (chunk.cells,) if bare else (chunk.cells, chunk.labels)
                pairs = self._in_pieces(factors, piece, *seen)
                grid.add(total, *grid.round(pairs), labels)
            return total

        return self._answer(name, charge, grid, measure)

    def linear_gradients(
        self, name: str, features: FeatureMap, residual: Callable[..., Any], *, outputs: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        """An oracle: weights (size, outputs) of a linear head to the noisy sum of its gradients.

        Args:
            name: The planned charge; its `steps` calls are allowed, each over all rows.
            features: Computed once, and kept in a hidden file where they are many.
            residual: residual(weights, phi, label) of one row, the loss's derivative by the
                head's outputs; so the gradient is the outer product of phi and the residual.
            outputs: Numbers in a residual.

        Privacy:
            A row's gradient, of norm |phi| |residual|, is clipped to the sensitivity; rows without
            a declared label add nothing. Discrete Gaussian noise, every call charged.
        """
        size = chunk_rows(features.size, self.schema.slots)
        charge = self._charge_for(name, features.size * outputs, "discrete gaussian", repeated=True)
        grid = self._outer_sum(charge, 1, features.size, outputs)
        kept: list[tuple[np.ndarray, np.ndarray]] = []

        @jax.jit
        def each(weights: Any, rounded: Any, scale: Any, labels: Any) -> Any:
            return jax.vmap(residual, in_axes=(None, 0, 0))(
                weights, rounded * scale[:, None], labels
            )

        def keep() -> tuple[np.ndarray, np.ndarray]:
            if not kept:
                store, norms = Store(), []
                for chunk in self._chunks(f"{name}: features", size):
                    slots = _padded(self.schema.expand(chunk.cells), size)
                    phi = np.asarray(_evaluate(features, slots))[: len(chunk)]
                    rounded, found = grid.round_left(phi)
                    store.add(rounded)
                    norms.append(found)
                every = np.concatenate(norms) if norms else np.zeros(0)
                kept.append((store.close(features.size), every))
            return kept[0]

        def oracle(weights: np.ndarray) -> np.ndarray:
            if np.shape(weights) != (features.size, outputs):
                raise RuntimeError(f"'{name}': weights of shape {np.shape(weights)}")
            step = self._asked.get(name, 0)
            self._count(name, charge)

            def measure() -> np.ndarray:
                rounded, norms = keep()
                labels, total = self._rows().labels, grid.zero()
                for start in range(0, len(labels), size):
                    at = slice(start, start + size)
                    scale = (norms[at] / UNIT).astype(np.float32)
                    found = each(
                        weights,
                        _padded(rounded[at], size),
                        _padded(scale, size),
                        _padded(labels[at], size),
                    )
                    right = grid.round_right(np.asarray(found)[: len(scale)], norms[at])
                    right[labels[at] < 0] = 0.0
                    total += grid.accumulate(rounded[at], right, np.zeros(len(right), np.int64))
                return grid.finalise(
                    total * self._data_scale, self._noise.stream(f"{name}/{step}")
                )[0]

            answer = self._replayed(f"{name}-{step}", measure)
            self._progress(name, (step + 1) / charge.steps)
            return answer

        return oracle

    def histogram(self, name: str) -> np.ndarray:
        """Noisy number of rows in each class, (classes,).

        Privacy:
            A row counts in at most one class, so it changes one count by one.
            Discrete Gaussian noise, or discrete Laplace where the charge says so.
        """
        return self._histogram(name, len(self.schema.classes), lambda rows: rows.labels)

    def gradients(
        self, name: str, loss: Callable[..., Any] | RowGradients | RowBlocks, *, rows: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        """An oracle: parameters (flat) to the noisy sum of clipped gradients of a Poisson batch.

        Args:
            name: The planned charge; its `steps` calls are allowed, each with a fresh batch.
            loss: loss(parameters, slots, label) of one row; or `RowBlocks`, which makes gradients
                some rows at a time; or `RowGradients`, where they are never made one by one.
            rows: Public number of rows, for the fixed shape of a batch; the true number may be
                any: a batch that overflows is processed in further chunks.

        Privacy:
            A row enters a step with the charge's probability, its gradient clipped to the
            sensitivity; `_gradients` proves that this includes all rounding. Discrete Gaussian
            noise. Divide by a public batch size, never by the true one.
        """
        charge = self._charge_for(name, 1, "discrete gaussian", sampled=True)
        batches = PoissonBatches(charge.sampling or 0.0, rows)
        grid = GradientSum(
            sensitivity=charge.sensitivity,
            noise=charge.noise,
            size=charge.coordinates,
            shape=batches.shape,
        )
        records = functools.cache(
            lambda: Records(self._rows(), self._noise.stream(f"{name}/records"))
        )

        def load(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            chunk = self._rows().take(places)
            slots = _padded(self.schema.expand(chunk.cells), batches.shape)
            return slots, _padded(chunk.labels, batches.shape, with_value=-1)

        def oracle(parameters: np.ndarray) -> np.ndarray:
            if np.size(parameters) != charge.coordinates:
                raise RuntimeError(
                    f"'{name}': {np.size(parameters)} parameters, {charge.coordinates} planned"
                )
            step = self._asked.get(name, 0)
            self._count(name, charge)

            def measure() -> np.ndarray:
                batch = batches.draw(records(), self._noise.stream(f"{name}/{step}/batch"))
                # Parameters are public. Ones that diverged give no gradient, whatever the rows: a sum
                # that is not a number would tell whether the batch was empty.
                usable = np.isfinite(parameters).all()
                total = grid.total(loss, parameters, batch if usable else batch[:0], load)
                drawn = self._noise.stream(f"{name}/{step}")
                return grid.finalise(total * self._data_scale, drawn)

            answer = self._replayed(f"{name}-{step}", measure)
            self._progress(name, (step + 1) / charge.steps)
            return answer

        return oracle

    def teachers(
        self, teacher: Teacher, ballot: Ballot, features: FeatureMap | None = None
    ) -> Callable[[Any], list[np.ndarray]]:
        """An oracle: a public question to the noisy tallies of all teachers' answers to it.

        Args:
            teacher: What one teacher does; it is run for all of them, each on a shard of its own.
            ballot: What their answers are and how they are counted; as it was planned.
            features: What teachers see of a row, computed once; None: its slots.

        Privacy:
            A record sits in one shard and reaches one teacher's state. All teachers answer every
            question. Each of the ballot's measurements gets discrete Gaussian noise, every call
            is charged. States stay in memory here and are never saved: a resumed run replays the
            questions.
        """
        charges = [self._charge_of(c) for c in ballot.charges()]
        if isinstance(ballot, Directions):
            ballot = replace(ballot, noise=charges[0].noise)
        waiting: list[Any] = []
        ensemble: list[Ensemble] = []

        def count_votes() -> np.ndarray:
            if not ensemble:
                ensemble.append(self._ensemble(teacher, features))
            total: Any = 0
            while waiting:
                question, last = waiting.pop(0), not waiting
                for done, answers in ensemble[0].ask(question, answers=last):
                    total = total + ballot.tally(answers) if last else total
                    step = self._asked[charges[0].name]
                    self._progress(charges[0].name, (step - 1 + done) / charges[0].steps)
            return np.asarray(total)

        def oracle(question: Any) -> list[np.ndarray]:
            step = self._asked.get(charges[0].name, 0)
            for charge in charges:
                self._count(charge.name, charge)
            waiting.append(question)
            counted = functools.cache(count_votes)

            def measure(number: int) -> np.ndarray:
                grid, total = ballot.sums(counted(), [c.noise for c in charges])[number]
                stream = self._noise.stream(f"{charges[number].name}/{step}")
                return grid.finalise(total * self._data_scale, stream)

            return [
                self._replayed(f"{charge.name}-{step}", functools.partial(measure, number))
                for number, charge in enumerate(charges)
            ]

        return oracle

    def estimate(self) -> Schema:
        """Settle, with the planned part of the budget, every bound and value the schema asks for.

        From here on rows are encoded with what was found; returns the settled schema.
        """
        if self.schema.estimated:
            found: dict[str, tuple[Any, ...]] = {}
            for column in self.schema.estimated:
                if isinstance(column, Numeric):
                    found[column.name] = self.bounds(f"bounds of {column.name}", column)
                elif isinstance(column, Category):
                    found[column.name] = self.frequent(f"values of {column.name}", column)
            again = self._data.with_schema(self.schema.resolve(found))
            if again._content() != self._data._content():
                raise DataError("The data changed while they were being read. Run again.")
            self._data, self.schema = again, again.schema
        return self.schema

    def bounds(self, name: str, column: Numeric, quantile: float = 0.005) -> tuple[float, float]:
        """Noisy lower and upper quantile of a column within its outer range.

        Privacy:
            Three histograms of 64 bins, each zooming into the bins of the two quantiles; a row
            falls in one bin a round. The charges are `name/0` to `name/2`.
        """
        at = self.schema.inputs.index(column)
        edges = np.linspace(0, 1, 65)
        for zoom in range(3):
            inner = edges  # bound now: the closure below must not see a later round's edges

            def assign(rows: Rows, inner: np.ndarray = inner) -> np.ndarray:
                cells = rows.cells[:, at]
                index = np.searchsorted(inner, cells, side="right") - 1
                index = np.minimum(index, len(inner) - 2)
                return np.where(np.isnan(cells), -1, index)

            counts = self._histogram(f"{name}/{zoom}", len(inner) - 1, assign)
            # Counts that noise alone may well produce are taken for none (its scale is public):
            # one such bin far out would be taken for the quantile's.
            doubtful = counts < SURELY * self._planned[f"{name}/{zoom}"].noise
            counts = np.where(doubtful, 0.0, counts)
            shares = np.cumsum(counts) / max(counts.sum(), 1e-9)
            low = int(np.searchsorted(shares, quantile))
            high = min(int(np.searchsorted(shares, 1 - quantile)), len(counts) - 1)
            low, high = (low, high) if counts.any() else (0, len(counts) - 1)
            bottom, top = inner[low], inner[high + 1]
            fine = [np.linspace(inner[i], inner[i + 1], 33) for i in sorted({low, high})]
            edges = np.unique(np.concatenate([[0.0], *fine, [1.0]]))
        outer_low, outer_high = column.range
        found = [outer_low + float(at) * (outer_high - outer_low) for at in (bottom, top)]
        if column.integer:
            found = [math.floor(found[0]), math.ceil(found[1])]
        return max(found[0], outer_low), min(found[1], outer_high)

    def frequent(self, name: str, column: Category) -> tuple[str, ...]:
        """Values of a column whose noisy counts pass a threshold, and a catch-all for the rest.

        Privacy:
            A row changes one count by one. A value that only one row holds passes with
            probability at most the charge's `threshold_delta`; all else is the Gaussian
            mechanism. Noise is drawn only for values that occur, which the threshold covers.
        """
        charge = self._charge_for(name, 1, "discrete gaussian", counting=True)
        grid = GridSum(bound=1.0, noise=charge.noise, groups=1, size=1)

        def measure() -> np.ndarray:
            counts: Counter[str] = Counter()
            for raw in self._data._values(column.name):
                assert isinstance(raw, Values)
                found = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.distinct))
                for text, count in zip(raw.distinct, found, strict=True):
                    counts[canonical(text)] += int(count)
            names = sorted(counts)
            stream = self._noise.stream(name)
            true = np.asarray([counts[n] for n in names], np.int64)[:, None] * grid.unit
            noisy = grid.finalise(true * self._data_scale, stream)[:, 0]
            chance = (
                charge.threshold_delta / self._factor
            )  # under replacement two values may be lone
            threshold = 1.0 if grid.noise == 0 else 1 - grid.noise * ndtri(chance)
            passed = np.flatnonzero(noisy >= threshold)
            best = passed[np.argsort(-noisy[passed], kind="stable")][: column.most]
            return np.asarray([names[i] for i in best], dtype=str)

        self._count(name, charge)
        found = self._replayed(name, measure)
        return (*(str(v) for v in found if str(v) != OTHER), OTHER)

    def raw(self, name: str) -> Rows:
        """The rows themselves: only in a run whose epsilon is infinite, and says so by a charge."""
        if self._budget.private:
            raise LimbeckError(
                "This method needs the bare rows, which only epsilon = infinity gives."
            )
        if self._noise.law:
            raise LimbeckError("law mode answers with noise alone, and bare rows have none.")
        self._count(name, self._charge_for(name, 1, "discrete gaussian"))
        return self._rows()

    # ---- bookkeeping ------------------------------------------------------------------------

    def executed(self) -> list[Charge]:
        """The charges that were carried out; a plan that was not carried out in full is an error."""
        for name, charge in self._planned.items():
            if self._asked.get(name, 0) != charge.steps:
                raise RuntimeError(
                    f"'{name}': {charge.steps} planned, {self._asked.get(name, 0)} done"
                )
        return list(self._planned.values())

    def steps(self, name: str) -> int:
        """How often a planned question is to be asked."""
        return self._planned[name].steps

    def noise(self) -> dict[str, float]:
        """Standard deviation of each planned measurement's noise: public, from the plan alone."""
        return {name: charge.noise for name, charge in self._planned.items()}

    @property
    def _factor(self) -> float:
        return self._budget.sensitivity_factor

    @property
    def _data_scale(self) -> int:
        return 0 if self._noise.law else 1

    def _rows(self) -> Rows:
        return self._data._encoded()

    def _charge_of(self, wanted: Charge) -> Charge:
        """The planned charge of one of a ballot's measurements, which must price just that."""
        charge = self._charge_for(
            wanted.name, wanted.coordinates, "discrete gaussian", repeated=True
        )
        if charge.sensitivity < wanted.sensitivity * self._factor or charge.steps != wanted.steps:
            raise RuntimeError(f"'{wanted.name}' was planned for other ballots")
        return charge

    def _ensemble(self, teacher: Teacher, features: FeatureMap | None) -> Ensemble:
        held = self._rows()
        seen = self._all_features("what teachers see", features) if features else held.cells

        def read(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if not len(held):
                width = features.size if features else self.schema.slots
                return np.zeros((len(places), width), np.float32), np.zeros(len(places), np.int32)
            found = seen[places] if features else self.schema.expand(seen[places])
            return found, np.maximum(held.labels[places], 0)

        shards = Shards(held, teacher.count, self._noise.stream("teachers/shards"))
        return Ensemble(teacher, shards, read)

    def _all_features(self, name: str, features: FeatureMap) -> np.ndarray:
        """Features of all rows, in a hidden file where they are many."""
        size, store = chunk_rows(features.size, self.schema.slots), Store()
        for chunk in self._chunks(name, size):
            slots = _padded(self.schema.expand(chunk.cells), size)
            store.add(np.asarray(_evaluate(features, slots))[: len(chunk)])
        return store.close(features.size)

    def _charge_for(
        self,
        name: str,
        coordinates: int,
        *mechanisms: str,
        sampled: bool = False,
        repeated: bool = False,
        counting: bool = False,
    ) -> Charge:
        """The charge that pays for a question; one that prices another question is refused."""
        if name not in self._planned:
            raise RuntimeError(f"'{name}' was not planned, so it cannot be measured")
        charge = self._planned[name]
        if charge.mechanism not in mechanisms or (charge.sampling is not None) != sampled:
            raise RuntimeError(f"'{name}' was planned as another kind of question")
        if charge.steps != 1 and not (sampled or repeated):
            raise RuntimeError(f"'{name}' can be answered once, {charge.steps} times are planned")
        if coordinates > charge.coordinates:
            raise RuntimeError(f"'{name}' measures more coordinates than were planned")
        if counting and charge.sensitivity != self._factor:
            raise RuntimeError(f"'{name}' counts rows: its sensitivity is {self._factor}")
        return charge

    def _summed(
        self,
        name: str,
        groups: int,
        size: int,
        evaluate: Callable[..., tuple[Any, np.ndarray]],
        chunk: int = 0,
    ) -> np.ndarray:
        """Noisy sum (groups, size) of what `evaluate` makes of slots and labels: features, groups."""
        charge = self._charge_for(name, groups * size, "discrete gaussian")
        bound = charge.sensitivity / self._factor
        grid = GridSum(bound=bound, noise=charge.noise, groups=groups, size=size)
        rows = chunk or chunk_rows(size, self.schema.slots)

        def measure() -> np.ndarray:
            total = grid.zero()
            for chunk in self._chunks(name, rows):
                slots = _padded(self.schema.expand(chunk.cells), rows)
                phi, group = evaluate(slots, _padded(chunk.labels, rows))
                part = grid.accumulate(np.asarray(phi)[: len(chunk)], group[: len(chunk)])
                total = grid.merge(total, part)
            return total

        return self._answer(name, charge, grid, measure)

    def _chunks(self, name: str, size: int) -> Iterator[Rows]:
        """The rows in pieces, with progress."""
        rows = self._rows()
        for number, chunk in enumerate(rows.chunks(size)):
            yield chunk
            self._progress(name, min(1.0, (number + 1) * size / len(rows)))

    def _in_pieces(self, features: Any, size: int, cells: np.ndarray, *more: np.ndarray) -> Any:
        """Features of some rows, so many at a time: more is accumulated at once than fits in a cache."""
        made = []
        for start in range(0, len(cells), size):
            part = slice(start, start + size)
            arrays = (self.schema.expand(cells[part]), *(array[part] for array in more))
            count = len(arrays[0])
            found = _evaluate(features, *(_padded(array, size) for array in arrays))
            made.append(jax.tree_util.tree_map(lambda f, n=count: np.asarray(f)[:n], found))
        return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts), *made)

    def _outer_sum(self, charge: Charge, groups: int, left: int, right: int) -> OuterSum:
        bound = charge.sensitivity / self._factor
        return OuterSum(bound=bound, noise=charge.noise, groups=groups, left=left, right=right)

    def _histogram(self, name: str, bins: int, assign: Callable[[Rows], np.ndarray]) -> np.ndarray:
        """Noisy counts (bins,) of rows that `assign` puts into a bin each, or (-1) into none."""
        charge = self._charge_for(
            name, bins, "discrete gaussian", "discrete laplace", counting=True
        )

        def count() -> np.ndarray:
            counts = np.zeros(bins, np.int64)
            for chunk in self._rows().chunks(1 << 16):
                index = assign(chunk)
                counts += np.bincount(index[(index >= 0) & (index < bins)], minlength=bins)
            return counts

        if charge.mechanism == "discrete laplace":
            return self._laplace(name, charge, bins, count)
        grid = GridSum(bound=1.0, noise=charge.noise, groups=bins, size=1)
        return self._answer(name, charge, grid, lambda: count()[:, None] * grid.unit)[:, 0]

    def _count(self, name: str, charge: Charge) -> None:
        if self._asked.get(name, 0) >= charge.steps:
            raise RuntimeError(f"'{name}' was measured {charge.steps} times, as planned, already")
        self._asked[name] = self._asked.get(name, 0) + 1

    def _answer(
        self,
        name: str,
        charge: Charge,
        grid: GridSum | OuterSum | OuterBlocks,
        measure: Callable[[], np.ndarray],
    ) -> np.ndarray:
        self._count(name, charge)

        def noisy() -> np.ndarray:
            total = measure()
            total *= self._data_scale  # in place: it may be large
            return grid.finalise(total, self._noise.stream(name))

        return self._replayed(name, noisy)

    def _laplace(
        self, name: str, charge: Charge, bins: int, count: Callable[[], np.ndarray]
    ) -> np.ndarray:
        self._count(name, charge)

        def measure() -> np.ndarray:
            if charge.noise == 0:
                return count().astype(np.float64)
            # Rounded up to a millionth, so the noise is never less than was charged.
            scale = Fraction(math.ceil(charge.noise * 10**6), 10**6)
            drawn = discrete_laplace(self._noise.stream(name), scale, bins)
            return (count() * self._data_scale + drawn).astype(np.float64)

        return self._replayed(name, measure)

    def _replayed(self, name: str, measure: Callable[[], np.ndarray]) -> np.ndarray:
        """An answer that was already given in this job, or a new one, kept for a resumed run."""
        if self._job is None:
            return measure()
        known = self._job.load(name)
        if known is None:
            known = measure()
            self._job.save(name, known)
        return known


class _OneBlock(eqx.Module):
    """Factors of one outer product, as one block."""

    factors: Any

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return ((self.factors.left, self.factors.right),)

    @property
    def norm_bound(self) -> float:
        return float(self.factors.norm_bound)

    def __call__(self, rows: Any) -> tuple[tuple[Any, Any], ...]:
        return (self.factors(rows),)


def chunk_rows(size: int, slots: int) -> int:
    """Rows per chunk: of one shape for all numbers of rows, so that a row's features (their last
    bit, too) do not depend on how many others there are."""
    return max(64, min(4096, CHUNK_BYTES // (8 * max(size, slots)) // 64 * 64))


@eqx.filter_jit
def _evaluate(features: Any, *arrays: Any) -> Any:
    """Features of one row at a time, by construction: no map can see a row's neighbours."""

    def one(*row: Any) -> Any:
        made = features(*(part[None] for part in row))
        return jax.tree_util.tree_map(lambda array: array[0], made)

    return jax.vmap(one)(*arrays)


def _padded(array: np.ndarray, size: int, with_value: int = 0) -> np.ndarray:
    """Rows appended up to a fixed shape, so that compiled code is compiled once."""
    missing = size - len(array)
    if missing == 0:
        return array
    width = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, constant_values=with_value)
