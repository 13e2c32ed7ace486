"""Rows that stay where they are: this process holds their schema, and an engine that sums them there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from ..data import ROWS_AT_MOST, Dataset, Rows, Source
from ..errors import DataError
from ..privacy import MapSpec, Work
from ..schema import Raw, Schema


class Remote(Protocol):
    """An engine together with the rows that it sums."""

    name: str

    def keyed_sum(self, key: bytes) -> np.ndarray:
        """`parts.keyed_sum` of all rows."""


class RemoteDataset(Dataset):
    """A schema and rows elsewhere, which no one can have here."""

    def __init__(self, schema: Schema, source: Source, engine: Callable[[Schema], Remote]) -> None:
        super().__init__(schema, source)
        self._make = engine
        self.engine: Any = engine(schema)

    def with_schema(self, schema: Schema) -> Dataset:
        return RemoteDataset(schema, self._source, self._make)

    def _encoded(self, progress: Callable[[int], None] = lambda rows: None) -> Rows:
        """Nothing is read here; who wants rows is refused when a run is planned."""
        return Rows(np.zeros((0, 0), np.float32), np.zeros(0, np.int32))

    def _bounded(self, key: bytes) -> Rows:
        raise DataError(f"The rows are with {self.engine.name}, and are not read here.")

    def _values(self, name: str) -> Iterator[Raw]:
        raise DataError(f"The rows are with {self.engine.name}, and are not read here.")

    def _content(self) -> bytes:
        if self._raw_digest is None:
            self._raw_digest = self._summed(b"content")
        return self._raw_digest

    def _digest(self, key: bytes) -> str:
        own = hashlib.blake2b(b"digest of rows", key=key, digest_size=32).digest()
        return self._summed(own).hex()  # the workers are told no key that noise is made with

    def _summed(self, key: bytes) -> bytes:
        found = self.engine.keyed_sum(key)
        if int(found[-1]) > ROWS_AT_MOST:
            raise DataError(
                f"'{self.schema.dataset}' has more rows than the {ROWS_AT_MOST:,} that limbeck can add up "
                "exactly. Make several data sets of it, or take a part."
            )
        return hashlib.blake2b(found.tobytes(), digest_size=32).digest()


def check_portable(work: Work, engine: str) -> None:
    """Refuse a map that other processes cannot build."""
    if work.spec is not None and not isinstance(work.spec, MapSpec):
        raise RuntimeError(
            f"'{work.planned.question.name}' is asked with a map that only this process has; {engine} needs "
            "a MapSpec"
        )
