"""A cluster in this process: as much of a Spark DataFrame as `SparkEngine` uses, whose tasks travel as bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

import limbeck as lk
from limbeck.engines.remote import RemoteDataset
from limbeck.engines.spark import SparkEngine


@dataclass(frozen=True)
class Frame:
    """Rows in parts, each worked on by a task of its own."""

    parts: list[list[pa.RecordBatch]]

    sparkSession = SimpleNamespace(version="none")

    @property
    def rdd(self) -> Any:
        return SimpleNamespace(getNumPartitions=lambda: len(self.parts))

    def mapInArrow(self, task: Callable[[Any], Iterable[pa.RecordBatch]], form: str) -> Frame:
        sent = pickle.dumps(task)
        done = [list(pickle.loads(sent)(iter(part))) for part in self.parts]
        assert all(b.schema.names == _names(form) for part in done for b in part)
        return Frame(done)

    def select(self, *names: str) -> Frame:
        plain = [name.strip("`") for name in names]
        return Frame([[batch.select(plain) for batch in part] for part in self.parts])

    def repartition(self, by: int | str) -> Frame:
        """So many parts, or two in one of which all rows of a person are."""
        batches = [batch for part in self.parts for batch in part]
        if isinstance(by, int):
            return Frame([batches[start::by] for start in range(by)])
        halves = [
            [batch.filter(pa.array([_half(v) == half for v in batch.column(by).to_pylist()])) for batch in batches]
            for half in (0, 1)
        ]  # fmt: skip
        return Frame(halves)

    def persist(self) -> Frame:
        return self

    def unpersist(self) -> None:
        return None

    def collect(self) -> list[dict[str, Any]]:
        return [row for part in self.parts for batch in part for row in batch.to_pylist()]


def _names(form: str) -> list[str]:
    return [field.split()[0] for field in form.split(", ")]


def _half(value: bytes) -> int:
    return sum(value) % 2


class Nowhere:
    """A source of rows that nobody reads."""

    def check(self, schema: lk.Schema) -> None:
        return None

    def chunks(self, schema: lk.Schema) -> Iterator[Any]:
        raise AssertionError


def on_cluster(rows: Any, schema: lk.Schema, cuts: Iterable[int]) -> lk.Dataset:
    """A pandas frame in parts that end at the cuts, as a data set whose rows are elsewhere."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    ends = [0, *cuts, len(rows)]
    parts = [table[a:b].to_batches() for a, b in zip(ends, ends[1:], strict=False)]
    return RemoteDataset(schema, Nowhere(), partial(SparkEngine, Frame(parts)))
