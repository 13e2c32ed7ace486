"""The real rows of a paper's data set, to train and to test on; or why they cannot be had here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import datasets
from ..data import Dataset, bare_rows, read
from ..datasets import Pictures
from ..errors import DataError, LimbeckError
from ..schema import Lifetime, Schema

AMPLE = Lifetime(epsilon=30.0, delta=0.5, filter="sum")
"""Practice runs on public data are booked in ledgers of their own, each with room for one run."""

EXTRA: dict[str, Callable[[], tuple[Schema, Any, Any]]] = {}
"""Data sets besides the registry's: schema, training rows, test rows. None but those of tests."""


class NotRun(Exception):
    """A cell that cannot be run here; the text says why."""


@dataclass(frozen=True, eq=False)
class Bench:
    """Training and test rows of one data set, under a schema with a lifetime budget for any cell."""

    name: str
    schema: Schema
    train: Dataset
    test: Dataset

    def rows(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Slots and label codes of the labelled rows of "train" or "test"."""
        rows = bare_rows(getattr(self, part))
        kept = np.flatnonzero(rows.labels >= 0)
        return self.schema.expand(rows.cells[kept]), np.asarray(rows.labels[kept])


@lru_cache(maxsize=1)
def bench(name: str) -> Bench:
    """Load a data set. Where it cannot be had, `NotRun` says how to get it."""
    if name in EXTRA:
        schema, train, test = EXTRA[name]()
    else:
        reason = missing(name)
        if reason:
            raise NotRun(reason)
        try:
            public = datasets.load(name)
        except DataError as error:
            raise NotRun(f"data: {error}") from None
        schema, train, test = public.schema, _plain(public.train), _plain(public.test)
    schema = replace(schema, lifetime=AMPLE)
    return Bench(name, schema, read(train, schema), read(test, schema))


def declared_rows(name: str) -> int:
    """How many training rows the data set's schema declares; 0: it does not say."""
    schema = EXTRA[name]()[0] if name in EXTRA else datasets.schema(name)
    return schema.rows or 0


def delta_of(name: str, wanted: float) -> float:
    """The paper's delta, or a smaller one where it is not below one over the declared rows."""
    return min(wanted, 0.9 / (declared_rows(name) or 1))


def missing(name: str) -> str:
    """Why a data set cannot be had; "" if it may."""
    if name in EXTRA:
        return ""
    try:
        reason = datasets.missing(name)
    except LimbeckError as error:
        reason = str(error)
    return reason and f"data: {reason}"


def _plain(part: Any) -> Any:
    return (part.images, part.labels) if isinstance(part, Pictures) else part
