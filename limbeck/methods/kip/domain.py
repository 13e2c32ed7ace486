"""The schema's domain: what keeps learned rows to where rows can be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...features import Support
from ...schema import Category, Schema
from .kernel import View


def kept_to_domain(
    schema: Schema, support: Support, view: View
) -> Callable[[np.ndarray], np.ndarray]:
    """What moves a support's free numbers, after a step, to where the schema allows rows to be."""

    def kept(free: np.ndarray) -> np.ndarray:
        rows = within_domain(schema, view.back(support.place(free)))
        return support.pick(view(rows)).astype(np.float32)

    return kept


def within_domain(schema: Schema, slots: np.ndarray) -> np.ndarray:
    """Encoded rows (rows, slots) moved to where rows can be: numbers in [0, 1], and weights of a
    column's categories that add up to one."""
    slots = np.clip(np.nan_to_num(slots), 0.0, 1.0)
    for column, at in schema.blocks():
        if isinstance(column, Category):
            total = slots[:, at].sum(axis=1, keepdims=True)
            even = np.full_like(slots[:, at], 1 / column.slots)
            slots[:, at] = np.divide(slots[:, at], total, out=even, where=total > 0)
    return slots
