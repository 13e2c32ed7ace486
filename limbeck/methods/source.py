"""Where released rows come from: a generator or soft rows, which give as many as wanted, or a fixed
distilled set.

All draw *encoded* rows: a table's as cells (rows, columns), one number per column as `Schema.decode`
takes them; images as slots (rows, slots), their pixels in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from ..errors import LimbeckError
from ..nets import Generator, build_generator, filled_network, generate, network_arrays, settle
from ..schema import Category, Schema, in_bins
from .apportion import apportion
from .by_class import ByClass
from .diffusion.diffused import Diffused
from .graphical.table_rows import TableRows
from .marginals.soft_rows import SoftRows
from .wanted import ANYTHING, Wanted

SETTLING_ROWS = 5000
"""Generated rows over which the batch statistics of a trained generator are fixed."""


@dataclass(frozen=True, kw_only=True)
class Generated(ByClass):
    """A generator with the noisy shares of the classes."""

    generator: Generator
    settings: Mapping[str, Any]
    """What the generator is built from again, before its numbers are filled in."""
    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""

    kind = "generator"

    def of_classes(
        self, schema: Schema, labels: np.ndarray, rng: np.random.Generator, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """One row for each label code."""
        codes = rng.standard_normal((len(labels), self.generator.code), dtype=np.float32)
        slots = generate(self.generator, codes, labels)
        if schema.image:
            return slots, labels
        # A generator gives chances of categories and of gaps: one of each is drawn.
        cells = schema.collapse(slots, np.random.default_rng([seed, 1]))
        return in_bins(schema, cells, labels), labels

    def facts(self) -> dict[str, Any]:
        return dict(self.settings)

    def arrays(self) -> dict[str, np.ndarray]:
        return network_arrays(self.generator) | {"class_weights": self.class_weights}

    @classmethod
    def load(
        cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Generated:
        weights = arrays.pop("class_weights")
        fresh = build_generator(schema, facts, key=jax.random.key(0))
        return cls(generator=filled_network(fresh, arrays), settings=facts, class_weights=weights)


def trained_source(
    generator: Generator, settings: Mapping[str, Any], class_weights: np.ndarray, *, key: jax.Array
) -> Generated:
    """The source of rows that a trained generator is, its batch statistics fixed."""
    labels = jnp.arange(SETTLING_ROWS) % len(class_weights)
    settled = settle(generator, labels, key=key)
    return Generated(generator=settled, settings=settings, class_weights=class_weights)


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """A fixed, small set: the exact numbers that a learner should train on."""

    slots: np.ndarray
    """Encoded rows (rows, slots), float32; pixels may lie outside [0, 1] where a method lets them."""
    labels: np.ndarray
    """Label codes (rows,)."""
    targets: np.ndarray | None = None
    """Learned labels (rows, classes), for the kernel of a method that learns them."""
    soft: np.ndarray | None = None
    """Soft labels, shares of the classes (rows, classes), meant for networks."""
    stored: np.ndarray | None = None
    """Images (images, slots) of which each holds several of the rows, small; the rows are cut from them."""

    kind = "distilled"

    def draw(
        self, schema: Schema, rows: int, *, seed: int, wanted: Wanted = ANYTHING
    ) -> tuple[np.ndarray, np.ndarray]:
        """The encoded rows and label codes (rows,) themselves: there are no others."""
        if not wanted.anything:
            raise LimbeckError(
                f"This release is a fixed set of {len(self.labels)} rows: choose among them yourself. "
                "Rows that meet a condition are drawn from releases of marginals and of generators."
            )
        if rows != len(self.labels):
            raise LimbeckError(
                f"This release is a fixed set of {len(self.labels)} rows; {rows} cannot be drawn from "
                "it. `limbeck redistill --per-class` makes a set of another size, where the method "
                "keeps its measurements."
            )
        if schema.image:
            return np.clip(self.slots, 0.0, 1.0), self.labels
        return _decided_cells(schema, self.slots, self.labels), self.labels

    def facts(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        always = {"slots": self.slots, "labels": self.labels}
        more = {"targets": self.targets, "soft": self.soft, "stored": self.stored}
        return always | {name: array for name, array in more.items() if array is not None}

    @classmethod
    def load(
        cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Distilled:
        return cls(**arrays)


RowSource = Generated | Distilled | SoftRows | TableRows | Diffused
"""What the rows of a release are drawn from."""
SOURCES: dict[str, type[RowSource]] = {
    "generator": Generated,
    "distilled": Distilled,
    "softrows": SoftRows,
    "tables": TableRows,
    "denoiser": Diffused,
}


def _decided_cells(schema: Schema, slots: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Cells (rows, columns) of soft rows: each class gets as many of each category, and as many gaps,
    as the weights of its rows add up to, and rows get what they have most weight on.

    The likeliest category of every row alone would lose all but the commonest: a class in which a
    third of the rows smoke would have no smoker.
    """
    slots = np.nan_to_num(slots)
    cells = np.empty((len(slots), len(schema.inputs)), np.float32)
    for number, (column, at) in enumerate(schema.blocks()):
        gaps = None if isinstance(column, Category) or column.slots == 1 else at.start + 1
        if not isinstance(column, Category):
            cells[:, number] = np.clip(slots[:, at.start], 0.0, 1.0)
        for code in np.unique(labels):
            rows = np.flatnonzero(labels == code)
            if isinstance(column, Category):
                cells[rows, number] = _dealt(slots[rows, at])
            elif gaps is not None:
                share = np.clip(slots[rows, gaps], 0.0, 1.0)
                cells[rows[_dealt(np.stack([1 - share, share], axis=1)) == 1], number] = np.nan
    return cells


def _dealt(weights: np.ndarray) -> np.ndarray:
    """A choice (rows,) for each row of weights (rows, choices): all choices together as often as their
    weights add up to, and each row's as heavy as that allows.

    >>> _dealt(np.array([[0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [0.55, 0.45]]))
    array([0, 0, 0, 1])
    """
    weights = np.maximum(weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    even = 1 / weights.shape[1]
    shares = np.divide(weights, total, out=np.full_like(weights, even), where=total > 0)
    deck = apportion(shares.sum(axis=0) / len(shares), len(shares))
    rows, cards = linear_sum_assignment(-shares[:, deck])
    return deck[cards][np.argsort(rows)]
