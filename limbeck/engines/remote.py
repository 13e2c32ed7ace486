"""Rows that stay where they are: this process holds their schema, and an engine that sums them there."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data import ROWS_AT_MOST, Dataset, Rows, Source
from ..errors import DataError
from ..privacy import MapSpec, Planned, RowAccess, Session, State, Unit, Work
from ..schema import Raw, Schema


class RemoteEngine(abc.ABC):
    """An engine together with the rows that it sums."""

    name: ClassVar[str]
    processors: set[str]
    """What the rows were summed on, as `parts.processor_text` tells it; empty: not in floating point."""

    @abc.abstractmethod
    def version(self) -> str:
        """Of the software that brings partial sums together."""

    @abc.abstractmethod
    def keyed_sum(self, key: bytes) -> np.ndarray:
        """`parts.keyed_sum` of all rows."""

    @abc.abstractmethod
    def partial(self, work: Work, state: State, access: RowAccess) -> Any:
        """The partial sum of all rows at a step."""

    def facts(self) -> Mapping[str, Any]:
        """What a certificate says of the engine."""
        processors = [json.loads(text) for text in sorted(self.processors)]
        told = {"processors": processors} if processors else {}
        return {"name": self.name, "version": self.version(), **told}

    def prepare(
        self,
        planned: Planned,
        unit: Unit,
        schema: Schema,
        spec: Any,
        state: State,
        access: RowAccess,
    ) -> Session:
        """A question at work on the rows. Refuses a map that other processes cannot build."""
        if spec is not None and not isinstance(spec, MapSpec):
            raise RuntimeError(
                f"'{planned.question.name}' is asked with a map that only this process has; {self.name} "
                "needs a MapSpec"
            )
        work = Work(planned=planned, unit=unit, schema=schema, spec=spec, state=state)
        return RemoteSession(self, work, access)


@dataclass(frozen=True)
class RemoteSession(Session):
    """A question at work where the rows are: each step is one pass over them."""

    engine: RemoteEngine
    work: Work
    access: RowAccess

    def partial(self, step: int, state: State) -> Any:
        return self.engine.partial(self.work, state, self.access)


class RemoteDataset(Dataset):
    """A schema and rows elsewhere, which no one can have here."""

    def __init__(
        self, schema: Schema, source: Source, engine: Callable[[Schema], RemoteEngine]
    ) -> None:
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
