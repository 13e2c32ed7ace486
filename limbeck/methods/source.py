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
import numpy as np

from ..errors import LimbeckError
from ..nets import Generator, build_generator, filled_network, generate, network_arrays
from ..schema import Category, Schema
from .apportion import apportion
from .marginals.soft_rows import SoftRows


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A generator with the noisy shares of the classes."""

    generator: Generator
    settings: Mapping[str, Any]
    """What the generator is built from again, before its numbers are filled in."""
    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""

    kind = "generator"

    def draw(self, schema: Schema, rows: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows and label codes (rows,), classes in their noisy proportions."""
        rng = np.random.default_rng(seed)
        labels = rng.permutation(apportion(self.class_weights, rows))
        codes = rng.standard_normal((rows, self.generator.code), dtype=np.float32)
        slots = generate(self.generator, codes, labels)
        if schema.image:
            return slots, labels
        # A generator gives chances of categories and of gaps: one of each is drawn.
        return schema.collapse(slots, np.random.default_rng([seed, 1])), labels

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

    def draw(self, schema: Schema, rows: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The encoded rows and label codes (rows,) themselves: there are no others."""
        if rows != len(self.labels):
            raise LimbeckError(
                f"This release is a fixed set of {len(self.labels)} rows; {rows} cannot be drawn from "
                "it. `limbeck redistill --per-class` makes a set of another size, where the method "
                "keeps its measurements."
            )
        if schema.image:
            return np.clip(self.slots, 0.0, 1.0), self.labels
        return _likeliest_cells(schema, self.slots), self.labels

    def facts(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        found = {"slots": self.slots, "labels": self.labels}
        more = {"targets": self.targets, "soft": self.soft, "stored": self.stored}
        return found | {name: array for name, array in more.items() if array is not None}

    @classmethod
    def load(
        cls, schema: Schema, facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Distilled:
        return cls(**arrays)


RowSource = Generated | Distilled | SoftRows
"""What the rows of a release are drawn from."""
SOURCES: dict[str, type[Generated] | type[Distilled] | type[SoftRows]] = {
    "generator": Generated,
    "distilled": Distilled,
    "softrows": SoftRows,
}


def _likeliest_cells(schema: Schema, slots: np.ndarray) -> np.ndarray:
    """Cells (rows, columns) with the likeliest category, and a gap where one is likelier than not: a
    distilled row is shown as it is rather than drawn from."""
    slots = np.nan_to_num(slots)
    cells = np.empty((len(slots), len(schema.inputs)), np.float32)
    for number, (column, at) in enumerate(schema.blocks()):
        if isinstance(column, Category):
            cells[:, number] = slots[:, at].argmax(axis=1)
            continue
        cells[:, number] = np.clip(slots[:, at.start], 0.0, 1.0)
        if column.slots > 1:
            cells[slots[:, at.start + 1] > 0.5, number] = np.nan
    return cells
